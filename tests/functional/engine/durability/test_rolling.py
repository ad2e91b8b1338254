"""Builds that differ, tools that are missing, logs that cannot be (PUB-3, RUN-13, R-16, LOG-3)."""

import asyncio

import pytest

from psych_runtime._system import System
from psych_runtime.api import dispatch, interrupt, publish
from psych_runtime.core.codec import Position, decode, seal
from psych_runtime.errors import CorruptLog, StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.record import AttemptEnded, RunSettled, ToolCompleted
from tests.functional.engine.durability.crashes import Bench, hold_as_dead, write_newer
from tests.functional.engine.flaky import Flaky
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
    send,
)


@tool
async def charge() -> str:
    """Charge the card."""
    return "charged"


async def test_pub_3_worker_without_the_tool_leaves_the_run_alone(store: Store, crew: Crew) -> None:
    """It executes what it can; a worker that has the tool goes on."""
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    run = await admit(store, agent("charge"))
    await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
    other = await admit(store, agent())
    await run_to_end(store, other)
    assert await kinds_of(store, run) == ["run.admitted"]

    await crew.start(runtime(store, model, charge))
    await run_to_end(store, run)
    assert only(await of_type(store, run, RunSettled)).state == "completed"


async def test_pub_3_handed_over_run_waits_for_a_worker_with_its_tool(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Also a Run whose worker died: taking it without its tool would only break it."""
    run = await admit(store, agent("charge"))
    await hold_as_dead(store, run, times=1)
    await crew.start(runtime(flaky, FakeModel()))
    await eventually(lambda: flaky.faults.calls["ready"] > 3)
    assert (await store.header(ACME.tenant, run)).epoch == 1

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, charge))
    assert (await run_to_end(store, run)).epoch == 2


async def test_v_1_run_keeps_the_version_it_was_dispatched_with(store: Store, crew: Crew) -> None:
    """A newer publication of the agent, without the tool, changes nothing for it."""
    run = await admit(store, agent("charge"))
    await publish(store, agent(), scope=ACME)
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, charge))
    await run_to_end(store, run)

    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"


@pytest.mark.parametrize("short", [False, True])
async def test_run_13_run_with_a_newer_record_is_left_alone(
    store: Store, flaky: Flaky, crew: Crew, short: bool
) -> None:
    """The header's schema_version says so: it is not even claimed."""
    run = await admit(store, agent())
    await write_newer(store, run, short=short)
    before = await store.header(ACME.tenant, run)
    await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")))
    await run_to_end(store, await admit(store, agent()))

    assert before.schema_version == 2
    assert await store.header(ACME.tenant, run) == before


@pytest.mark.parametrize("short", [False, True])
async def test_run_13_newer_record_found_after_the_claim_ends_the_attempt_as_blocked(
    store: Store, flaky: Flaky, crew: Crew, short: bool
) -> None:
    """The Run is ready again, unharmed, naming the version that it needs; nobody spins."""
    run = await admit(store, agent())
    hashes: list[str] = []

    async def overtake(_: object) -> None:
        hashes.append(await write_newer(store, run, short=short))

    async def away(_: object) -> None:
        raise StoreUnavailable(problem="just now")

    flaky.faults.once("before", "read", away)  # while it is claimed: it is read after that
    flaky.faults.once("after", "commit", overtake)
    await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")))

    async def was_released() -> bool:
        return (await store.header(ACME.tenant, run)).head == 4

    await eventually(was_released)
    await run_to_end(store, await admit(store, agent()))
    rows = await store.read(ACME.tenant, run)
    assert [row.type for row in rows] == [
        "run.admitted",
        "attempt.started",
        "queue.teleported",
        "attempt.ended",
    ]
    ended = decode(rows[-1]).record
    assert isinstance(ended, AttemptEnded)
    assert (ended.reason, ended.needs_version, [ended.prev]) == ("blocked", 2, hashes)
    header = await store.header(ACME.tenant, run)
    assert (header.state, header.worker, header.crashes) == ("ready", None, 0)


@pytest.mark.parametrize("short", [False, True])
async def test_run_13_holder_that_meets_a_newer_record_finishes_what_runs(
    store: Store, crew: Crew, short: bool
) -> None:
    """Its tool ends and is recorded; then the Run is left to a newer build, with what follows."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    worker = await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    last = await write_newer(store, run, short=short)

    def has_met_it() -> bool:
        attempt = worker.holdings().get(run)
        return attempt is not None and attempt.journal.needs_version is not None

    await eventually(has_met_it)
    await write_nonsense(store, run)  # for all that this build can tell
    bench.release.set()

    async def was_released() -> bool:
        return (await store.header(ACME.tenant, run)).state == "ready"

    await eventually(was_released)
    rows = await store.read(ACME.tenant, run)
    types = [row.type for row in rows]
    assert types[-4:] == ["queue.teleported", "tool.completed", "tool.completed", "attempt.ended"]
    assert decode(rows[-3]).record.prev == last
    assert [decode(one).record.prev for one in rows[-2:]] == [
        decode(one).hash for one in rows[-3:-1]
    ]
    assert len(model.requests) == 1


async def test_run_13_a_run_with_a_newer_record_is_settled_by_who_reads_it(
    store: Store, crew: Crew
) -> None:
    """Also when it is to be aborted: whoever settles it must know what it leaves unread."""
    ran, release = asyncio.Event(), asyncio.Event()

    @tool(name="charge", interruptible=False)
    async def slow_charge() -> str:
        """Charge the card."""
        ran.set()
        await release.wait()
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})])
    worker = await crew.start(runtime(store, model, slow_charge))
    run = await admit(store, agent("charge"))
    await ran.wait()
    await interrupt(store, run, scope=ACME)
    await write_newer(store, run)

    def has_met_it() -> bool:
        attempt = worker.holdings().get(run)
        return attempt is not None and attempt.journal.needs_version is not None

    await eventually(has_met_it)
    release.set()

    async def was_released() -> bool:
        return (await store.header(ACME.tenant, run)).state == "ready"

    await eventually(was_released)
    rows = await store.read(ACME.tenant, run)
    assert [row.type for row in rows][-4:] == [
        "abort.requested",
        "queue.teleported",
        "tool.completed",
        "attempt.ended",
    ]
    ended = decode(rows[-1]).record
    assert isinstance(ended, AttemptEnded)
    assert (ended.reason, ended.needs_version) == ("blocked", 2)


@pytest.mark.parametrize("short", [False, True])
async def test_run_13_predecessor_of_a_newer_build_does_not_make_the_worker_spin(
    store: Store, crew: Crew, short: bool
) -> None:
    """The header shows nothing, only the thread's log does: tried once, left for others."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    first = await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    await crew.stop(first)
    await write_newer(store, run, short=short)
    following = await admit(store, agent(), continues=run)
    await crew.start(runtime(store, model))

    async def was_released() -> bool:
        return "attempt.ended" in await kinds_of(store, following)

    await eventually(was_released)
    await run_to_end(store, await admit(store, agent()))
    assert await kinds_of(store, following) == ["run.admitted", "attempt.started", "attempt.ended"]
    ended = only(await of_type(store, following, AttemptEnded))
    assert (ended.reason, ended.needs_version) == ("blocked", 2)


async def test_run_13_a_thousand_runs_of_others_hold_up_none_of_ours(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Half lack their tool, half are a newer build's; ours stands behind them, in one tenant."""
    system = System()
    lacking = await publish(store, agent("charge"), scope=ACME)
    await asyncio.gather(*(dispatch(store, lacking, scope=ACME, system=system) for _ in range(500)))
    newer = await asyncio.gather(
        *(dispatch(store, lacking, scope=ACME, system=system) for _ in range(500))
    )
    await asyncio.gather(*(write_newer(store, one.run_id) for one in newer))
    ours = await admit(store, agent())
    await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")), poll_seconds=1000.0)
    await run_to_end(store, ours)

    assert flaky.faults.calls["ready"] <= 4


async def test_run_13_many_versions_that_cannot_run_here_are_passed_without_a_pause(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Each look learns some of them; the next follows at once, not a poll later."""
    for number in range(9):
        await admit(store, agent("charge", name=f"helper{number}"))
    ours = await admit(store, agent())
    made = runtime(flaky, FakeModel().turn(text="Hello."))
    await crew.start(made, concurrency=2, poll_seconds=1000.0)

    await run_to_end(store, ours)


async def write_nonsense(store: Store, run: str, *, readable: bool = True) -> None:
    """Append a record that no writer may write there: an end of a call that nobody asked for.

    Not `readable`: its outcome is none of the schema's.
    """
    system = System()
    header = await store.header(ACME.tenant, run)
    draft = ToolCompleted(
        run_id=run,
        id=system.new_id("rec"),
        at=system.now(),
        call_id=system.new_id("call"),
        outcome="ok",
        duration_seconds=0.0,
        source="executed",
    )
    commit = system.new_id("com")
    sealed = seal(
        [draft],
        Position(header.head, header.head_hash, header.head_at),
        tenant=ACME.tenant,
        epoch=0,
        commit_id=commit,
        salts=iter(system.salt, ""),
    )
    if not readable:
        body = sealed[0].row.body.replace('"ok"', '"never"')
        sealed = [sealed[0]._replace(row=sealed[0].row.model_copy(update={"body": body}))]
    change = Change(run, header.head, None, tuple(sealed), HeaderChange())
    assert await store.commit([Unit(commit, ACME.tenant, (change,))]) == [Committed()]


async def corrupted(store: Store, run: str) -> None:
    """Wait until the header says corrupt."""

    async def is_corrupt() -> bool:
        return (await store.header(ACME.tenant, run)).state == "corrupt"

    await eventually(is_corrupt)


async def test_log_3_corrupt_log_is_marked_and_left_untouched(store: Store, crew: Crew) -> None:
    """Nothing is written behind it any more; other Runs go on; senders learn it."""
    run = await admit(store, agent())
    await write_nonsense(store, run)
    await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
    await corrupted(store, run)
    before = await store.read(ACME.tenant, run)
    await run_to_end(store, await admit(store, agent()))

    header = await store.header(ACME.tenant, run)
    assert (header.worker, header.wake_at, header.deadline_at) == (None, None, None)
    assert [row.type for row in before] == ["run.admitted", "tool.completed", "attempt.started"]
    with pytest.raises(CorruptLog):
        await send(store, run, "steer", "Hello?")
    with pytest.raises(CorruptLog):
        await interrupt(store, run, scope=ACME)
    assert await store.read(ACME.tenant, run) == before


async def test_log_3_corruption_in_hand_ends_the_attempt(store: Store, crew: Crew) -> None:
    """A foreign record that cannot be is found while a tool runs: marked, nothing repaired."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    worker = await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await write_nonsense(store, run)
    await corrupted(store, run)
    await eventually(lambda: not worker.holdings())

    assert [row.type for row in await store.read(ACME.tenant, run)][-1] == "tool.completed"
    assert len(model.requests) == 1


async def test_log_3_corrupt_run_past_its_end_is_marked_by_a_supervisor(
    store: Store, crew: Crew
) -> None:
    """Nobody could execute it, and it was interrupted: it is corrupt, not aborted."""
    run = await admit(store, agent("charge"))
    await interrupt(store, run, scope=ACME)
    await write_nonsense(store, run)
    head = (await store.header(ACME.tenant, run)).head
    await crew.start(runtime(store, FakeModel()))
    await corrupted(store, run)

    assert (await store.header(ACME.tenant, run)).head == head


async def test_log_3_corrupt_predecessor_is_not_the_successors_corruption(
    store: Store, crew: Crew
) -> None:
    """Its own log is sound: it fails in order after its attempts, and keeps its log."""
    model = FakeModel().turn(text="One.").turn(text="never")
    first = await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    await crew.stop(first)
    await write_nonsense(store, run, readable=False)
    following = await admit(store, agent(), continues=run)
    await crew.start(runtime(store, model), max_attempts=1)
    await run_to_end(store, following)

    settled = only(await of_type(store, following, RunSettled))
    assert settled.reason is not None
    assert settled.reason.code == "attempts_exhausted"


async def test_log_3_unreadable_record_is_corrupt_too(store: Store, crew: Crew) -> None:
    """What no schema has is found by the reader, like what no table allows."""
    run = await admit(store, agent())
    await write_nonsense(store, run, readable=False)
    await crew.start(runtime(store, FakeModel().turn(text="never")))
    await corrupted(store, run)
