"""Letting go in order: what is waited for, what is cut, who goes on (RUN-9)."""

import asyncio
import threading
from collections.abc import AsyncGenerator

from psych_runtime.api import interrupt
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.model import ModelEvent, ModelRequest
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    ModelFailed,
    ModelStarted,
    RunSettled,
    ToolCompleted,
    ToolStarted,
)
from tests.functional.engine.durability.crashes import Bench, held_in_a_call, write_newer
from tests.functional.engine.flaky import Flaky, lost_acknowledgement
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    kinds_of,
    of_type,
    only,
    run_to_end,
    runtime,
    texts_of,
)


async def test_run_9_running_tool_is_waited_for_and_the_run_handed_over(
    store: Store, crew: Crew
) -> None:
    """Within the grace time its result is kept; the next worker goes on from there."""
    bench, _, made, first, run = await held_in_a_call(store, crew, grace_seconds=30.0)
    ending = asyncio.create_task(crew.stop(first))
    await asyncio.sleep(0)
    assert not ending.done()
    bench.release.set()
    await ending

    header = await store.header(ACME.tenant, run)
    assert (header.state, header.worker, header.wake_at, header.crashes) == ("ready", None, None, 0)
    assert (await kinds_of(store, run))[-2:] == ["tool.completed", "attempt.ended"]
    assert only(await of_type(store, run, AttemptEnded)).reason == "drained"

    await crew.start(made)
    await run_to_end(store, run)
    attempts = await of_type(store, run, AttemptStarted)
    assert [one.reason for one in attempts] == ["fresh", "handed_over"]
    assert bench.ran == ["charge"]


async def test_run_9_tool_is_cut_when_the_grace_time_is_over(store: Store, crew: Crew) -> None:
    """An async tool that is not safe to repeat ends as aborted, and is not run again."""
    bench, _, made, first, run = await held_in_a_call(store, crew, grace_seconds=0.0)
    await crew.stop(first)

    assert only(await of_type(store, run, ToolCompleted)).outcome == "aborted"
    await crew.start(made)
    await run_to_end(store, run)
    assert bench.ran == ["charge"]


async def test_run_9_non_interruptible_tool_is_not_cut_before_the_grace_time(
    store: Store, crew: Crew
) -> None:
    """Neither draining nor an interrupt cuts it; its result stands before the end."""
    bench = Bench()

    @tool(interruptible=False)
    async def charge() -> str:
        """Charge the card."""
        bench.ran.append("charge")
        await bench.release.wait()
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    first = await crew.start(runtime(store, model, charge), grace_seconds=30.0)
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await interrupt(store, run, scope=ACME)
    ending = asyncio.create_task(crew.stop(first))
    seen = first.alive_at()
    await eventually(lambda: first.alive_at() > seen + 0.8)  # the interrupt is known by now
    assert await of_type(store, run, ToolCompleted) == []
    bench.release.set()
    await ending
    await run_to_end(store, run)

    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert only(await of_type(store, run, RunSettled)).state == "aborted"


async def test_run_9_grace_time_wins_over_non_interruptible(store: Store, crew: Crew) -> None:
    """When it is over, such a tool is cut, too: somebody else must go on."""
    bench = Bench()

    @tool(interruptible=False)
    async def charge() -> str:
        """Charge the card."""
        bench.ran.append("charge")
        await bench.release.wait()
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    first = await crew.start(runtime(store, model, charge), grace_seconds=0.0)
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await crew.stop(first)

    assert only(await of_type(store, run, ToolCompleted)).outcome == "aborted"
    assert (await store.header(ACME.tenant, run)).state == "ready"


async def test_run_9_safe_call_is_left_open_for_the_next_attempt(store: Store, crew: Crew) -> None:
    """It is not given an outcome; the next worker runs it again under its key."""
    held = await held_in_a_call(store, crew, safe=True, grace_seconds=0.0)
    bench, _, made, first, run = held
    await crew.stop(first)
    assert await of_type(store, run, ToolCompleted) == []
    bench.hold = False

    await crew.start(made)
    await run_to_end(store, run)
    assert [one.tries for one in await of_type(store, run, ToolStarted)] == [1, 2]
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert len(set(bench.keys)) == 1


async def test_run_9_safe_sync_call_is_left_open_unsafe_one_is_unknown(
    store: Store, crew: Crew
) -> None:
    """A thread cannot be stopped: only what may run twice is given to the next attempt."""
    release = threading.Event()
    ran: list[str] = []

    @tool(safe_to_retry=True)
    def put() -> str:
        """Put the document."""
        ran.append("put")
        if ran.count("put") == 1:
            release.wait(30)
        return "stored"

    @tool
    def charge() -> str:
        """Charge the card."""
        ran.append("charge")
        release.wait(30)
        return "charged"

    crew.at_end(release.set)
    model = FakeModel().turn(tool_calls=[("put", {}), ("charge", {})]).turn(text="Done.")
    made = runtime(store, model, put, charge)
    first = await crew.start(made, grace_seconds=0.0)
    run = await admit(store, agent("put", "charge"))
    await eventually(lambda: len(ran) == 2)
    await crew.stop(first)
    assert only(await of_type(store, run, ToolCompleted)).outcome == "unknown"

    await crew.start(made)
    await run_to_end(store, run)
    assert sorted(ran) == ["charge", "put", "put"]
    outcomes = [one.outcome for one in await of_type(store, run, ToolCompleted)]
    assert outcomes == ["unknown", "ok"]


async def test_run_9_model_call_is_closed_with_its_text_and_made_again(
    store: Store, crew: Crew
) -> None:
    """What was said so far is in the log; the same turn goes on elsewhere."""
    slow = FakeModel().turn(text="one two three")
    said = asyncio.Event()

    class Slow(FakeModel):
        async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            async for event in slow.stream(request):
                yield event
                said.set()
                await asyncio.Event().wait()

    first = await crew.start(runtime(store, Slow()), grace_seconds=0.0)
    run = await admit(store, agent())
    await eventually(said.is_set)
    await crew.stop(first)
    failed = only(await of_type(store, run, ModelFailed))
    assert failed.said is not None
    assert (failed.failure.code, failed.next) == ("interrupted", "retry")
    assert texts_of([failed.said]) == ["one "]

    await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
    await run_to_end(store, run)
    assert [one.turn for one in await of_type(store, run, ModelStarted)] == [1, 1]


async def test_run_9_calls_that_have_not_begun_stay_asked(store: Store, crew: Crew) -> None:
    """One at a time: the second is not begun while draining, and runs elsewhere, once."""
    bench = Bench()

    @tool(concurrent=False)
    async def charge(number: int) -> str:
        """Charge the card.

        Args:
            number: which one
        """
        bench.ran.append(str(number))
        if number == 1:
            await bench.release.wait()
        return "charged"

    calls = [("charge", {"number": 1}), ("charge", {"number": 2})]
    model = FakeModel().turn(tool_calls=calls).turn(text="Done.")
    made = runtime(store, model, charge)
    first = await crew.start(made, grace_seconds=30.0)
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    ending = asyncio.create_task(crew.stop(first))
    await asyncio.sleep(0)
    bench.release.set()
    await ending
    assert bench.ran == ["1"]

    await crew.start(made)
    await run_to_end(store, run)
    assert bench.ran == ["1", "2"]
    assert [one.outcome for one in await of_type(store, run, ToolCompleted)] == ["ok", "ok"]


async def test_run_9_cancelling_the_worker_is_a_drain_without_grace(
    store: Store, crew: Crew
) -> None:
    """The Run is handed over before the cancellation comes through."""
    held = await held_in_a_call(store, crew, safe=True, grace_seconds=30.0)
    first, run = held.worker, held.run
    task = crew.running(first)
    task.cancel()
    await asyncio.wait({task})

    assert task.cancelled()
    header = await store.header(ACME.tenant, run)
    assert (header.state, header.worker) == ("ready", None)


async def test_run_9_idle_worker_ends_at_once(store: Store, crew: Crew) -> None:
    """Nothing is held: nothing is waited for."""
    worker = await crew.start(runtime(store, FakeModel()), grace_seconds=3600.0)
    await crew.stop(worker)
    assert not worker.holdings()


async def test_run_9_store_that_is_away_does_not_hold_up_the_end(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Past grace and lease the worker ends; whoever takes over finds an open call."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    clock = ShiftedSystem()
    made = runtime(flaky, model, bench.unsafe(), system=clock)
    first = await crew.start(made, grace_seconds=0.0, lease_seconds=0.5)
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    flaky.faults.away = True
    ending = asyncio.create_task(crew.stop(first))

    def has_ended() -> bool:
        clock.shift_seconds += 1.0
        return ending.done()

    await eventually(has_ended)
    assert not first.holdings()

    await crew.start(runtime(store, model, bench.unsafe()), lease_seconds=0.5)
    await run_to_end(store, run)
    assert bench.ran == ["charge"]
    assert only(await of_type(store, run, ToolCompleted)).outcome == "unknown"


async def test_run_9_run_that_a_newer_build_wrote_to_is_drained_too(
    store: Store, crew: Crew
) -> None:
    """A tool of such a Run may end by itself, but not hold up the end of the worker."""
    held = await held_in_a_call(store, crew, safe=True, grace_seconds=0.0)
    first, run = held.worker, held.run
    await write_newer(store, run)

    def has_met_it() -> bool:
        attempt = first.holdings().get(run)
        return attempt is not None and attempt.journal.needs_version is not None

    await eventually(has_met_it)
    await asyncio.wait_for(crew.stop(first), 20)

    header = await store.header(ACME.tenant, run)
    assert (header.state, header.worker) == ("ready", None)


async def test_run_9_claim_in_doubt_does_not_hold_up_the_end(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Nobody knows whether it landed: the worker ends, and another one executes the Run."""
    flaky.faults.before["commit"] = lost_acknowledgement
    model = FakeModel().turn(text="Hello.")
    first = await crew.start(runtime(flaky, model), lease_seconds=0.5)
    run = await admit(store, agent())
    await eventually(lambda: flaky.faults.calls["commit"] >= 2)
    await asyncio.wait_for(crew.stop(first), 20)

    await crew.start(runtime(store, model), lease_seconds=0.5)
    await run_to_end(store, run)
    assert len(model.requests) == 1


async def test_run_9_worker_that_never_got_an_id_ends_too(store: Store, flaky: Flaky) -> None:
    """Stopped while the store was away from the very start."""
    flaky.faults.away = True
    worker = Worker(runtime(flaky, FakeModel()))
    running = asyncio.create_task(worker.run())
    await eventually(lambda: flaky.faults.calls["enlist"] >= 1)
    worker.stop()
    await asyncio.wait_for(running, 20)
    assert worker.lease.worker is None
