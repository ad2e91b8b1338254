"""Deadlines: whoever holds the Run, or nobody, somebody settles it (RUN-7, R-14), and retries."""

import asyncio
from datetime import timedelta

import pytest

from psych_runtime._system import System
from psych_runtime.api import interrupt, publish
from psych_runtime.core.codec import Position, seal
from psych_runtime.core.fold import fold, step
from psych_runtime.core.header import header_change
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Admit, Change, Store, Unit
from psych_runtime.runtime.admission import admit as admission
from psych_runtime.runtime.admission import run_admitted
from psych_runtime.store.contract._build import now_of
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.record import (
    AttemptStarted,
    ModelFailed,
    Record,
    RunSettled,
    RunSuspended,
    ThreadRef,
    ToolCompleted,
    WaitOpened,
)
from tests.functional.engine.durability.crashes import Bench, hold_as_dead, write_newer
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    entries_of,
    eventually,
    kinds_of,
    of_type,
    only,
    run_to_end,
    runtime,
    send,
)

CLOCKED = pytest.mark.parametrize("kind", ["memory", "sqlite", "dynamodb"])
"""Where a retry's instant stands in a record: a server's own clock cannot be turned to it."""


async def end_of(store: Store, run: str) -> tuple[str, str | None]:
    """Wait for the end; return its state and reason."""
    await run_to_end(store, run)
    settled = only(await of_type(store, run, RunSettled))
    return settled.state, settled.reason.code if settled.reason else None


async def test_run_7_running_run_is_stopped(store: Store, crew: Crew, clock: ShiftedSystem) -> None:
    """Its tool is cut, the Run timed out; no caller is needed."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"), deadline_seconds=3.0)
    await eventually(lambda: bench.ran)
    clock.shift_seconds += 3.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    assert only(await of_type(store, run, ToolCompleted)).outcome == "aborted"
    assert (await store.header(ACME.tenant, run)).epoch == 1


async def test_run_7_run_before_its_deadline_is_left_alone(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """The neighbour with a later deadline completes."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, bench.unsafe()))
    short = await admit(store, agent("charge"), deadline_seconds=50.0)
    long = await admit(store, agent("charge"), deadline_seconds=100.0)
    await eventually(lambda: len(bench.ran) == 2)
    clock.shift_seconds += 50.0
    assert await end_of(store, short) == ("timed_out", "timed_out")
    bench.release.set()

    assert await end_of(store, long) == ("completed", None)


async def test_run_7_queued_run_is_settled_by_any_supervisor(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """No worker here has its tool: the supervisor needs neither slot nor Version."""
    run = await admit(store, agent("charge"), deadline_seconds=50.0)
    await crew.start(runtime(store, FakeModel()))
    clock.shift_seconds += 50.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    assert await kinds_of(store, run) == ["run.admitted", "attempt.started", "run.settled"]


async def test_run_7_orphaned_run_is_settled_by_any_supervisor(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Held by a worker that is gone, and nobody can take it over."""
    run = await admit(store, agent("charge"), deadline_seconds=50.0)
    await hold_as_dead(store, run, times=1)
    await crew.start(runtime(store, FakeModel()))
    clock.shift_seconds += 50.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    assert [a.reason for a in await of_type(store, run, AttemptStarted)] == ["fresh", "reclaimed"]


async def test_run_7_settlement_by_a_supervisor_admits_the_next_run(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """A message for the next Run is not lost with a Run that nobody executed."""
    run = await admit(store, agent("charge"), deadline_seconds=50.0)
    await send(store, run, "next_run", "Again.")
    await crew.start(runtime(store, FakeModel()))
    clock.shift_seconds += 50.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    settled = only(await of_type(store, run, RunSettled))
    assert settled.next_run is not None
    assert (await store.header(ACME.tenant, settled.next_run)).previous == run


@CLOCKED
async def test_run_14_long_retry_parks_and_frees_the_slot(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """One slot: the neighbour completes while the parked Run waits, then its turn comes."""
    models = {
        "busy": FakeModel().raises_transient(429, retry_after_seconds=600.0).turn(text="At last."),
        "calm": FakeModel().turn(text="Hello."),
    }
    made = runtime(store, FakeModel.route(models))
    await crew.start(made, concurrency=1)
    busy = agent().model_copy(update={"model": agent().model.model_copy(update={"model": "busy"})})
    calm = agent().model_copy(update={"model": agent().model.model_copy(update={"model": "calm"})})
    parked = await admit(store, busy)

    async def is_parked() -> bool:
        return (await store.header(ACME.tenant, parked)).state == "suspended"

    await eventually(is_parked)
    header = await store.header(ACME.tenant, parked)
    failed = only(await of_type(store, parked, ModelFailed))
    assert (header.worker, header.wake_at) == (None, failed.retry_at)
    assert header.deadline_at is not None
    assert await end_of(store, await admit(store, calm)) == ("completed", None)

    clock.shift_seconds += 600.0
    assert await end_of(store, parked) == ("completed", None)
    attempts = await of_type(store, parked, AttemptStarted)
    assert [one.reason for one in attempts] == ["fresh", "woken"]


async def test_run_14_short_retry_is_waited_for_in_its_attempt(store: Store, crew: Crew) -> None:
    """Up to 5 s it is not worth giving the Run away."""
    model = FakeModel().raises_transient(503, retry_after_seconds=0.05).turn(text="Hello.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())

    assert await end_of(store, run) == ("completed", None)
    assert "run.suspended" not in await kinds_of(store, run)


async def test_run_7_parked_run_keeps_its_deadline(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Only waiting for people stops the clock; waiting for a provider does not."""
    model = FakeModel().raises_transient(429, retry_after_seconds=600.0).turn(text="never")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deadline_seconds=100.0)

    async def is_parked() -> bool:
        return (await store.header(ACME.tenant, run)).state == "suspended"

    await eventually(is_parked)
    clock.shift_seconds += 100.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    assert (await store.header(ACME.tenant, run)).epoch == 2


async def suspend_on_a_question(store: Store, run: str) -> None:
    """Write what an attempt writes that asks somebody: synthetic, until questions are built."""
    await hold_as_dead(store, run, times=1)
    header = await store.header(ACME.tenant, run)
    state = fold(await entries_of(store, run))
    system = System()
    wait = system.new_id("wait")
    drafts: list[Record] = [
        WaitOpened(
            run_id=run, id=system.new_id("rec"), at=system.now(), wait_id=wait, kind="question"
        ),
        RunSuspended(run_id=run, id=system.new_id("rec"), at=system.now(), waits=(wait,)),
    ]
    written = []
    for record in drafts:
        changes = step(state, record)
        state.apply(record, changes)
        written.append((record, changes))
    commit = system.new_id("com")
    sealed = seal(
        drafts,
        Position(header.head, header.head_hash, header.head_at),
        tenant=ACME.tenant,
        epoch=header.epoch,
        commit_id=commit,
        salts=iter(system.salt, ""),
    )
    change = Change(
        run,
        header.head,
        header.epoch,
        tuple(sealed),
        header_change(written, first_seq=header.head + 1, crashes=0),
    )
    assert await store.commit([Unit(commit, ACME.tenant, (change,))]) == [Committed()]


async def test_run_7_time_spent_waiting_for_people_is_not_counted(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """A day suspended on a question costs nothing; what was left goes on with the next record."""
    run = await admit(store, agent("charge"), deadline_seconds=100.0)
    clock.shift_seconds += 40.0
    await suspend_on_a_question(store, run)
    asleep = await store.header(ACME.tenant, run)
    assert (asleep.state, asleep.deadline_at) == ("suspended", None)
    assert asleep.remaining_seconds is not None
    assert 0 < asleep.remaining_seconds <= 60.0
    worker = await crew.start(runtime(store, FakeModel()))
    clock.shift_seconds += 86_400.0
    seen = worker.alive_at()
    await eventually(lambda: worker.alive_at() > seen + 1.0)  # its supervisor has looked, twice
    assert (await store.header(ACME.tenant, run)).state == "suspended"

    before = await now_of(store)
    await send(store, run, "follow_up", "Well?")
    awake = await store.header(ACME.tenant, run)
    assert (awake.state, awake.remaining_seconds) == ("ready", None)
    assert awake.deadline_at is not None
    left = awake.deadline_at - before
    assert timedelta(0) < left <= timedelta(seconds=asleep.remaining_seconds + 10)

    clock.shift_seconds += 60.0
    assert await end_of(store, run) == ("timed_out", "timed_out")


async def test_run_7_claim_after_the_deadline_starts_no_model_call(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Whoever gets it first, executor or supervisor, only settles it."""
    model = FakeModel().turn(text="never")
    runs = [await admit(store, agent(), deadline_seconds=50.0) for _ in range(5)]
    clock.shift_seconds += 50.0
    await crew.start(runtime(store, model))

    for run in runs:
        assert await end_of(store, run) == ("timed_out", "timed_out")
    assert model.requests == []


async def test_run_7_aborted_run_that_nobody_executes_is_settled(store: Store, crew: Crew) -> None:
    """Interrupting a queued Run needs no worker that could run it."""
    run = await admit(store, agent("charge"))
    await interrupt(store, run, scope=ACME)
    await crew.start(runtime(store, FakeModel()))

    assert await end_of(store, run) == ("aborted", "aborted")


async def test_run_7_runs_that_cannot_be_settled_hold_up_no_others(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Twenty overdue Runs with a newer build's records stand before one of ours."""
    newer = [await admit(store, agent("charge"), deadline_seconds=10.0) for _ in range(20)]
    for run in newer:
        await write_newer(store, run)
    clock.shift_seconds += 20.0
    ours = await admit(store, agent("charge"), deadline_seconds=5.0)
    clock.shift_seconds += 20.0
    heads = [(await store.header(ACME.tenant, run)).head for run in newer]
    await crew.start(runtime(store, FakeModel()))

    assert await end_of(store, ours) == ("timed_out", "timed_out")
    assert [(await store.header(ACME.tenant, run)).head for run in newer] == heads


async def test_run_7_run_whose_predecessor_is_gone_is_settled(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Settling needs only its own log: neither the Run nor its supervisor hangs on another's."""
    system = System()
    version = await publish(store, agent(), scope=ACME)
    record = run_admitted(
        system,
        version=version.hash,
        scope=ACME,
        input={"message": "Go."},
        thread=ThreadRef(id="lost", position=2, previous=system.new_id("run")),
        deadline_seconds=50.0,
    )
    commit = system.new_id("com")
    change: Admit = admission(record, commit_id=commit, system=system)
    await store.commit([Unit(commit, ACME.tenant, (change,))])
    worker = await crew.start(runtime(store, FakeModel().turn(text="Hello.")))

    async def was_tried() -> bool:
        return "attempt.ended" in await kinds_of(store, record.run_id)

    await eventually(was_tried)
    clock.shift_seconds += 50.0
    assert await end_of(store, record.run_id) == ("timed_out", "timed_out")
    assert not crew.running(worker).done()
    assert await end_of(store, await admit(store, agent())) == ("completed", None)


@CLOCKED
async def test_r_14_store_whose_clock_is_set_forward_does_not_make_a_parked_run_spin(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """What the store calls due is due here, too: the Run is woken once and goes on."""
    model = FakeModel().raises_transient(429, retry_after_seconds=60.0).turn(text="Hello.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())

    async def is_parked() -> bool:
        return (await store.header(ACME.tenant, run)).state == "suspended"

    await eventually(is_parked)
    clock.shift_seconds += 61.0
    await end_of(store, run)

    assert len(await of_type(store, run, AttemptStarted)) == 2


async def test_run_7_blocking_sync_tool_past_its_deadline_is_unknown(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Its thread cannot be stopped: settled after 2 s, what it brings is dropped."""
    started, release = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool
    def charge() -> str:
        """Charge the card."""
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(30)
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    await crew.start(runtime(store, model, charge))
    crew.at_end(release.set)
    run = await admit(store, agent("charge"), deadline_seconds=30.0)
    await eventually(started.is_set)
    clock.shift_seconds += 30.0

    assert await end_of(store, run) == ("timed_out", "timed_out")
    assert only(await of_type(store, run, ToolCompleted)).outcome == "unknown"
    head = (await store.header(ACME.tenant, run)).head
    release.set()
    assert (await store.header(ACME.tenant, run)).head == head


async def test_run_7_a_deadline_shorter_than_a_beat_is_kept(
    store: Store, crew: Crew, flaky: Flaky
) -> None:
    """The attempt watches its own deadline: no renewal ever tells it."""

    async def unheard(_: object) -> None:
        raise StoreUnavailable(problem="no renewal comes through")

    flaky.faults.before["renew"] = unheard
    await crew.start(runtime(flaky, FakeModel().stalls()))
    run = await admit(store, agent(), deadline_seconds=0.2)
    assert await end_of(store, run) == ("timed_out", "timed_out")
