"""What a second worker makes of a Run whose first one died (RUN-1, RUN-3, R-7)."""

import asyncio

import pytest

from psych_runtime.errors import StoreReadOnly
from psych_runtime.ports.policy import Decision, Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.record import (
    AttemptStarted,
    ModelFailed,
    RunSettled,
    ToolCompleted,
    ToolStarted,
)
from tests.functional.engine.durability.crashes import Bench, die, held_in_a_call, hold_as_dead
from tests.functional.engine.flaky import Flaky, units_of
from tests.functional.engine.harness import (
    ACME,
    Crew,
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


async def test_run_1_open_unsafe_call_is_unknown_and_not_run_again(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The second worker settles it in words, and the model is told."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="I will ask.")
    first = await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran == ["charge"])
    await die(flaky, store, first)

    await crew.start(runtime(store, model, bench.unsafe()))
    await run_to_end(store, run)

    assert bench.ran == ["charge"]
    done = only(await of_type(store, run, ToolCompleted))
    assert (done.outcome, done.source) == ("unknown", "executed")
    told = texts_of(model.requests[-1].messages)[-1]
    assert "may or may not" in told
    assert "happened" in told
    assert [a.reason for a in await of_type(store, run, AttemptStarted)] == ["fresh", "reclaimed"]


async def test_run_1_open_safe_call_runs_again_under_its_key(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Same call id, which is the idempotency key; the second execution is try 2 (D3)."""
    bench, model, _, first, run = await held_in_a_call(store, crew, safe=True, through=flaky)
    await die(flaky, store, first)
    bench.hold = False

    await crew.start(runtime(store, model, bench.safe()))
    header = await run_to_end(store, run)

    started = await of_type(store, run, ToolStarted)
    assert [one.tries for one in started] == [1, 2]
    assert bench.keys == [started[0].call_id, started[0].call_id]
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert header.state == "settled"


async def test_run_1_finished_sibling_never_runs_again(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Of two parallel calls only the open one is considered (D1)."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("lookup", {}), ("charge", {})]).turn(text="Done.")
    tools = (bench.quick(), bench.unsafe())
    first = await crew.start(runtime(flaky, model, *tools))
    run = await admit(store, agent("lookup", "charge"))
    await eventually(lambda: "charge" in bench.ran)

    async def looked_up() -> bool:
        return bool(await of_type(store, run, ToolCompleted))

    await eventually(looked_up)
    await die(flaky, store, first)

    await crew.start(runtime(store, model, *tools))
    await run_to_end(store, run)

    assert sorted(bench.ran) == ["charge", "lookup"]
    outcomes = [one.outcome for one in await of_type(store, run, ToolCompleted)]
    assert outcomes == ["ok", "unknown"]


async def test_run_1_result_that_was_not_stored_is_unknown(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The tool ended, its record was lost with the worker: nobody can know, so nobody guesses."""
    bench, model, _, first, run = await held_in_a_call(store, crew, through=flaky)
    await die(flaky, store, first)
    bench.release.set()

    await crew.start(runtime(store, model, bench.unsafe()))
    await run_to_end(store, run)

    assert bench.ran == ["charge"]
    assert only(await of_type(store, run, ToolCompleted)).outcome == "unknown"


async def test_run_1_open_model_call_is_made_again_in_its_turn(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It is neither counted as failed nor as a turn of its own."""
    slow = FakeModel().turn(text="never heard of", chunk_delay_seconds=30)
    first = await crew.start(runtime(flaky, slow))
    run = await admit(store, agent())
    await eventually(lambda: slow.requests)

    async def asked() -> bool:
        return "model.started" in await kinds_of(store, run)

    await eventually(asked)
    await die(flaky, store, first)

    await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
    await run_to_end(store, run)

    assert await kinds_of(store, run) == [
        "run.admitted",
        "attempt.started",
        "turn.started",
        "tools.offered",
        "model.started",
        "attempt.started",
        "model.started",
        "model.completed",
        "run.settled",
    ]
    assert await of_type(store, run, ModelFailed) == []


async def test_run_3_run_that_kills_its_workers_fails(store: Store, crew: Crew) -> None:
    """After max_attempts deaths the taker settles it and does not try it again."""
    model = FakeModel().turn(text="never")
    run = await admit(store, agent())
    await hold_as_dead(store, run, times=3)

    await crew.start(runtime(store, model), max_attempts=3)
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert settled.state == "failed"
    assert settled.reason is not None
    assert settled.reason.code == "attempts_exhausted"
    assert model.requests == []


async def test_run_3_one_death_less_is_tried_again(store: Store, crew: Crew) -> None:
    """The last allowed attempt may succeed, and an orderly end clears the count."""
    run = await admit(store, agent())
    await hold_as_dead(store, run, times=2)

    await crew.start(runtime(store, FakeModel().turn(text="At last.")), max_attempts=3)
    header = await run_to_end(store, run)

    assert only(await of_type(store, run, RunSettled)).state == "completed"
    assert header.crashes == 0
    assert [a.crashes for a in await of_type(store, run, AttemptStarted)] == [0, 1, 2]


async def test_run_3_attempt_that_ends_with_a_bug_counts(store: Store, crew: Crew) -> None:
    """A policy that raises ends the attempt with reason error; at the limit the Run fails."""

    class Broken(Policy):
        async def decide_tool(self, *_: object) -> Decision:
            raise RuntimeError("no rules today")

    @tool
    async def charge() -> str:
        """Charge the card."""
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    broken = runtime(store, model, charge, policy=Broken())
    run = await admit(store, agent("charge"))
    await crew.start(broken, max_attempts=2)
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert settled.state == "failed"
    assert settled.reason is not None
    assert settled.reason.code == "attempts_exhausted"
    kinds = await kinds_of(store, run)
    assert kinds.count("attempt.ended") == 1
    assert kinds.count("attempt.started") == 2


async def test_r_7_risky_runs_are_held_one_at_a_time(store: Store, crew: Crew) -> None:
    """Runs that crashed twice never share a worker; others run beside them."""
    running: set[str] = set()
    most = 0
    release = asyncio.Event()

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        nonlocal most
        running.add(context.run_id)
        most = max(most, len(running & risky))
        await release.wait()
        running.discard(context.run_id)
        return "ok"

    model = FakeModel().turn(tool_calls=[("work", {})]).turn(text="Done.")
    risky = {await admit(store, agent("work")) for _ in range(3)}
    for run in risky:
        await hold_as_dead(store, run, times=2)
    calm = await admit(store, agent("work"))

    await crew.start(runtime(store, model, work))
    await eventually(lambda: calm in running and running & risky)
    release.set()
    for run in (*risky, calm):
        await run_to_end(store, run)

    assert most == 1


async def test_r_7_other_runs_of_a_dead_worker_are_not_failed(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """A Run that was only near a crash goes on and ends with a clean count."""
    bench, model, _, first, run = await held_in_a_call(store, crew, safe=True, through=flaky)
    await die(flaky, store, first)
    bench.hold = False

    await crew.start(runtime(store, model, bench.safe()), max_attempts=2)
    header = await run_to_end(store, run)

    assert only(await of_type(store, run, RunSettled)).state == "completed"
    assert header.crashes == 0


async def test_r_7_risky_runs_do_not_stand_in_the_way_of_others(store: Store, crew: Crew) -> None:
    """Two slots, one of them risky; the others of its kind are first in line and wait."""
    release = asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        await release.wait()
        return "ok"

    model = FakeModel().turn(tool_calls=[("work", {})]).turn(text="Done.")
    risky = [await admit(store, agent("work")) for _ in range(4)]
    for run in risky:
        await hold_as_dead(store, run, times=2)
    await crew.start(runtime(store, model, work), concurrency=2)
    calm = await admit(store, agent("work"))

    async def is_held() -> bool:
        return (await store.header(ACME.tenant, calm)).state == "running"

    await eventually(is_held)
    release.set()
    for run in (*risky, calm):
        await run_to_end(store, run)


async def test_run_3_record_that_the_store_cannot_take_is_its_runs_trouble_alone(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Its attempt dies, which counts; the Run that was flushed with it goes on."""
    both = asyncio.Barrier(2)
    poisoned: list[str] = []

    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        await both.wait()
        return "poison" if context.run_id in poisoned else "ok"

    async def refuse(argument: object) -> None:
        for unit in units_of(argument):
            for change in unit.changes:
                if any("poison" in (sealed.row.content or "") for sealed in change.records):
                    raise ValueError("this cannot be stored")

    flaky.faults.before["commit"] = refuse
    model = FakeModel().turn(tool_calls=[("work", {})]).turn(text="Done.")
    poisoned.append(await admit(store, agent("work")))
    other = await admit(store, agent("work"))
    await crew.start(runtime(flaky, model, work), lease_seconds=0.6)
    await run_to_end(store, other)
    await run_to_end(store, poisoned[0])

    assert (await store.header(ACME.tenant, other)).epoch == 1
    assert only(await of_type(store, other, ToolCompleted)).outcome == "ok"
    attempts = await of_type(store, poisoned[0], AttemptStarted)
    assert [(a.reason, a.crashes) for a in attempts] == [("fresh", 0), ("reclaimed", 1)]
    assert only(await of_type(store, poisoned[0], ToolCompleted)).outcome == "unknown"


async def test_run_3_store_that_refuses_for_good_ends_the_worker(
    store: Store, flaky: Flaky
) -> None:
    """What waiting cannot mend is raised by `run()`: at the start, and while claiming."""

    async def refuse(_: object) -> None:
        raise StoreReadOnly(problem="a read-only file system")

    for call in ("enlist", "ready"):
        flaky.faults.before = {call: refuse}
        worker = Worker(runtime(flaky, FakeModel()))
        with pytest.raises(StoreReadOnly):
            await asyncio.wait_for(worker.run(), 20)
        assert not worker.holdings()
