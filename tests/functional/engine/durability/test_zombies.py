"""Workers that were away too long: they write nothing and start nothing (RUN-2, R-5, R-6, R-9)."""

import asyncio
from functools import partial

from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.record import AttemptEnded, AttemptStarted, ToolCompleted
from tests.functional.engine.durability.crashes import Bench, die
from tests.functional.engine.flaky import Flaky, Gate, units_of
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    declare_dead,
    eventually,
    kinds_of,
    of_type,
    only,
    run_to_end,
    runtime,
)


async def refuse(_: object) -> None:
    """Keep renewals from a store that is there otherwise."""
    raise StoreUnavailable(problem="only renewals are lost")


def later_than(worker: Worker, seen: float) -> bool:
    """Tell whether the worker's loop has turned since."""
    return worker.alive_at() > seen


def names_of(units: object) -> list[str]:
    """Return the types of the records in a commit."""
    changes = [change for unit in units_of(units) for change in unit.changes]
    return [sealed.row.type for change in changes for sealed in change.records]


async def test_run_2_woken_worker_writes_nothing(store: Store, flaky: Flaky, crew: Crew) -> None:
    """Its Run was taken and settled meanwhile: its tool's late result is discarded (D9)."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    first = await crew.start(runtime(flaky, model, bench.unsafe()))
    dead = first.lease.worker
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran == ["charge"])
    await die(flaky, store, first)
    await crew.start(runtime(store, model, bench.unsafe()))
    header = await run_to_end(store, run)

    bench.release.set()
    flaky.faults.away = False
    await eventually(lambda: first.lease.worker not in (None, dead))

    assert await store.header(ACME.tenant, run) == header
    assert bench.ran == ["charge"]
    assert not first.holdings()


async def test_r_5_worker_that_finds_itself_dead_goes_on_under_a_new_id(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The dead id never renews; the same process executes the next Run."""
    first = await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")))
    dead = first.lease.worker
    assert dead is not None
    await declare_dead(store, dead)
    await eventually(lambda: first.lease.worker not in (None, dead))

    run = await admit(store, agent())
    await run_to_end(store, run)

    assert only(await of_type(store, run, AttemptStarted)).worker == first.lease.worker
    assert await store.renew(dead, lease_seconds=6.0, run_ids=()) is None


async def test_run_2_start_that_comes_late_is_refused_and_executes_nothing(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """tool.started of the old attempt lands after the takeover: LeaseLost, no effect."""
    bench = Bench()
    bench.hold = False
    gate = Gate()
    crew.at_end(gate.open)

    async def hold_start(units: object) -> None:
        if "tool.started" in names_of(units):
            await gate.pass_through()

    flaky.faults.before["commit"] = hold_start
    flaky.faults.before["renew"] = refuse
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    first = await crew.start(runtime(flaky, model, bench.unsafe()))
    assert first.lease.worker is not None
    run = await admit(store, agent("charge"))
    await eventually(lambda: gate.waiting)
    await declare_dead(store, first.lease.worker)
    await crew.start(runtime(store, model, bench.unsafe()))
    header = await run_to_end(store, run)

    gate.open()
    await eventually(lambda: not first.holdings())

    assert bench.ran == ["charge"]
    assert await store.header(ACME.tenant, run) == header
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"


async def test_r_9_no_effect_starts_while_the_lease_is_unproven(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """A sleeper whose Run was not taken waits for a renewal, then goes on in its attempt."""
    bench = Bench()
    bench.hold = False
    slept = ShiftedSystem()
    stored = asyncio.Event()
    gate = Gate()
    crew.at_end(gate.open)

    async def after_start(units: object) -> None:
        if "tool.started" in names_of(units):
            stored.set()
            await gate.pass_through()

    flaky.faults.after["commit"] = after_start
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    worker = await crew.start(runtime(flaky, model, bench.unsafe(), system=slept))
    run = await admit(store, agent("charge"))
    await asyncio.wait_for(stored.wait(), 20)
    flaky.faults.before["renew"] = refuse
    slept.shift_seconds = 60.0
    gate.open()
    for _ in range(3):  # turns of the loop's heartbeat: time enough for a careless start
        await eventually(partial(later_than, worker, worker.alive_at()))
    assert bench.ran == []

    del flaky.faults.before["renew"]
    await run_to_end(store, run)

    assert bench.ran == ["charge"]
    assert len(await of_type(store, run, AttemptStarted)) == 1


async def test_d7_two_workers_with_one_stale_list_make_one_attempt(
    store: Store, crew: Crew
) -> None:
    """Both read the Run as claimable before either claims; the claim itself decides."""
    barrier = asyncio.Barrier(2)
    model = FakeModel().turn(text="Hello.")
    run = await admit(store, agent())

    async def both(_: object) -> None:
        await barrier.wait()

    for _ in range(2):
        one = Flaky(store)
        one.faults.once("after", "ready", both)
        await crew.start(runtime(one, model))
    await run_to_end(store, run)

    assert len(await of_type(store, run, AttemptStarted)) == 1
    assert len(model.requests) == 1


async def test_r_6_store_that_was_away_costs_no_live_worker_its_run(
    store: Store, flaky: Flaky, crew: Crew, clock: ShiftedSystem
) -> None:
    """A minute without the store: every lease is over, and nobody is declared dead (ST-9)."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    made = runtime(flaky, model, bench.unsafe())
    for _ in range(4):
        await crew.start(made, lease_seconds=1.0, concurrency=1)
    runs = [await admit(store, agent("charge")) for _ in range(4)]
    await eventually(lambda: len(bench.ran) == 4)

    flaky.faults.away = True
    clock.shift_seconds += 60.0
    flaky.faults.away = False
    asked = flaky.faults.calls["bury"]
    await eventually(lambda: flaky.faults.calls["bury"] >= asked + 24)
    bench.release.set()

    for run in runs:
        header = await run_to_end(store, run)
        assert header.epoch == 1
        assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"


async def test_r_6_worker_that_stays_away_is_declared_dead(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """With contact unbroken for a lease the others may judge, and go on with its Run."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("put", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.safe()), lease_seconds=0.6)
    run = await admit(store, agent("put"))
    await eventually(lambda: bench.ran == ["put"])
    bench.hold = False
    flaky.faults.away = True

    await crew.start(runtime(store, model, bench.safe()), lease_seconds=0.6)
    header = await run_to_end(store, run)

    assert header.epoch == 2
    assert bench.ran == ["put", "put"]


async def test_r_5_stray_run_is_claimed_anew(store: Store, crew: Crew) -> None:
    """The store says ours, nobody here knows it: never under the epoch found, no crash counted."""
    worker = await crew.start(runtime(store, FakeModel().turn(text="Hi.")), lease_seconds=1.0)
    assert worker.lease.worker is not None
    system = System()
    version_of = await admit(store, agent())
    await run_to_end(store, version_of)
    await crew.stop(worker)
    run = await admit(store, agent())
    worker = await crew.start(
        runtime(Blind(store), FakeModel().turn(text="Hi.")), lease_seconds=1.0
    )
    header = await store.header(ACME.tenant, run)
    assert worker.lease.worker is not None
    claim = Claim.of(header, worker=worker.lease.worker, crashes=0)
    await store.commit([claim_unit(header, claim, system=system)])
    await run_to_end(store, run)

    attempts = await of_type(store, run, AttemptStarted)
    assert [(a.epoch, a.reason, a.crashes) for a in attempts] == [
        (1, "fresh", 0),
        (2, "reclaimed", 0),
    ]


class Blind(Flaky):
    """A store that never shows anything claimable: what is left are strays."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.faults.before["ready"] = refuse


async def test_r_8_notes_outlive_a_store_that_is_away(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """A result that came while the store was away is written once it is back, in one attempt."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran == ["charge"])
    flaky.faults.away = True
    bench.release.set()
    tried = flaky.faults.calls["commit"]
    await eventually(lambda: flaky.faults.calls["commit"] >= tried + 2)
    flaky.faults.away = False

    header = await run_to_end(store, run)

    assert header.epoch == 1
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"


async def test_r_8_document_that_cannot_be_stored_yet_is_not_a_failed_attempt(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The store's trouble is not the Run's: no crash is counted, nothing is given back."""
    flaky.faults.once("before", "put_document", refuse)
    await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")))
    run = await admit(store, agent())
    await run_to_end(store, run)

    assert await of_type(store, run, AttemptEnded) == []
    assert (await kinds_of(store, run)).count("attempt.started") == 1


async def test_r_8_log_that_cannot_be_read_yet_is_read_later(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Neither the own log nor the predecessor's: the attempt waits for the store."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    first = await admit(store, agent())
    worker = await crew.start(runtime(flaky, model))
    await run_to_end(store, first)
    await crew.stop(worker)
    lost: list[object] = []

    async def twice_each(run_id: object) -> None:
        if lost.count(run_id) < 2:  # the own log is also read while it is being claimed
            lost.append(run_id)
            raise StoreUnavailable(problem="this read was lost")

    second = await admit(store, agent(), "And then?", continues=first)
    flaky.faults.before["read"] = twice_each
    await crew.start(runtime(flaky, model))
    await run_to_end(store, second)

    assert sorted(map(str, lost)) == sorted([first, first, second, second])
    assert len(await of_type(store, second, AttemptStarted)) == 1


async def test_r_4_loss_of_a_run_cancels_what_may_be_interrupted_only(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The one tool is cut at once; the other is let run to its end, its result discarded."""
    release = asyncio.Event()
    ends: list[str] = []

    async def work(name: str) -> str:
        try:
            await release.wait()
        except asyncio.CancelledError:
            ends.append(f"{name} was cancelled")
            raise
        ends.append(f"{name} ended")
        return "ok"

    @tool
    async def read() -> str:
        """Read."""
        return await work("read")

    @tool(interruptible=False)
    async def charge() -> str:
        """Charge the card."""
        return await work("charge")

    model = FakeModel().turn(tool_calls=[("read", {}), ("charge", {})]).turn(text="Done.")
    worker = await crew.start(runtime(flaky, model, read, charge))
    dead = worker.lease.worker
    run = await admit(store, agent("read", "charge"))

    async def both_run() -> bool:
        return (await kinds_of(store, run)).count("tool.started") == 2

    await eventually(both_run)
    await die(flaky, store, worker)
    await crew.start(runtime(store, model, read, charge))
    header = await run_to_end(store, run)
    flaky.faults.away = False
    await eventually(lambda: worker.lease.worker not in (None, dead))
    await eventually(lambda: ends == ["read was cancelled"])
    release.set()
    await eventually(lambda: ends == ["read was cancelled", "charge ended"])

    assert await store.header(ACME.tenant, run) == header
