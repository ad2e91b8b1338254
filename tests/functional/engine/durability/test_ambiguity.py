"""Acknowledgements that get lost, batches that land late, writers that race (R-20, ADM, D11)."""

import asyncio
from collections import Counter

import pytest

from psych_runtime.api import dispatch, publish
from psych_runtime.errors import IdempotencyConflict, StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Store, Unit
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.record import AttemptStarted, QueueEnqueued, RunAdmitted
from tests.functional.engine.durability.crashes import Bench, overtake_settlement
from tests.functional.engine.flaky import Flaky, lost_acknowledgement, units_of
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
    sound,
)

TWO_TURNS = [
    "run.admitted",
    "attempt.started",
    "turn.started",
    "tools.offered",
    "model.started",
    "model.completed",
    "tool.started",
    "tool.completed",
    "turn.started",
    "model.started",
    "model.completed",
    "run.settled",
]


async def test_r_20_every_acknowledgement_lost_once(store: Store, flaky: Flaky, crew: Crew) -> None:
    """Each unit is sent twice and stands in the log once; the tool runs once."""
    bench = Bench()
    bench.hold = False
    seen: Counter[str] = Counter()

    async def lose_first(argument: object) -> None:
        for unit in units_of(argument):
            seen[unit.commit_id] += 1
        if any(seen[unit.commit_id] == 1 for unit in units_of(argument)):
            await lost_acknowledgement(argument)

    flaky.faults.after["commit"] = lose_first
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await run_to_end(store, run)

    assert await kinds_of(store, run) == TWO_TURNS
    assert bench.ran == ["charge"]
    await eventually(lambda: set(seen.values()) == {2})


async def test_r_20_batch_that_was_refused_comes_back_under_the_same_ids(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Each commit fails before it reaches the store; what is sent again is the same unit."""
    bench = Bench()
    bench.hold = False
    seen: Counter[str] = Counter()

    async def fail_first(argument: object) -> None:
        for unit in units_of(argument):
            seen[unit.commit_id] += 1
        if any(seen[unit.commit_id] == 1 for unit in units_of(argument)):
            raise StoreUnavailable(problem="nothing arrived")

    flaky.faults.before["commit"] = fail_first
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await run_to_end(store, run)

    assert await kinds_of(store, run) == TWO_TURNS
    assert bench.ran == ["charge"]
    assert set(seen.values()) == {2}


async def test_r_20_batches_that_land_late_change_nothing(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Each unit reaches the store, times out for its writer, and arrives again at the end."""
    late: list[list[Unit]] = []
    seen: Counter[str] = Counter()

    async def delay_first(argument: object) -> None:
        units = units_of(argument)
        for unit in units:
            seen[unit.commit_id] += 1
        if any(seen[unit.commit_id] == 1 for unit in units):
            late.append(units)
            raise StoreUnavailable(problem="it is still on its way")

    flaky.faults.before["commit"] = delay_first
    await crew.start(runtime(flaky, FakeModel().turn(text="Hello.")))
    run = await admit(store, agent())
    header = await run_to_end(store, run)
    for units in late:
        assert Committed() not in await store.commit(units)

    assert late
    assert await store.header(ACME.tenant, run) == header
    await sound(store, run)


async def test_r_20_foreign_record_between_a_lost_acknowledgement_and_its_repetition(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The own unit is recognised although others have written behind it since."""
    bench = Bench()
    bench.hold = False
    seen: Counter[str] = Counter()

    async def lose_and_write(argument: object) -> None:
        for unit in units_of(argument):
            seen[unit.commit_id] += 1
            types = [s.row.type for change in unit.changes for s in change.records]
            if seen[unit.commit_id] == 1 and "run.settled" not in types:
                await send(store, unit.changes[0].run_id, "next_run", unit.commit_id)
                await lost_acknowledgement(argument)

    flaky.faults.after["commit"] = lose_and_write
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.").turn(text="Next.")
    worker = await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await run_to_end(store, run)
    worker.stop()

    kinds = [kind for kind in await kinds_of(store, run) if kind != "queue.enqueued"]
    assert kinds == TWO_TURNS
    assert bench.ran == ["charge"]


async def test_r_20_decision_is_judged_anew_when_others_wrote_first(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """A follow-up that wins the race against run.settled is answered before the end."""
    raced = overtake_settlement(flaky, store, "follow_up", "One more thing.")
    model = FakeModel().turn(text="Hello.").turn(text="That, too.")
    await crew.start(runtime(flaky, model))
    run = await admit(store, agent())
    await run_to_end(store, run)

    assert raced == [run]
    kinds = await kinds_of(store, run)
    assert kinds.count("run.settled") == 1
    assert kinds.index("queue.enqueued") < kinds.index("queue.consumed")
    assert len(model.requests) == 2


async def test_d_11_fifty_senders_at_once_are_all_in_the_log_once(store: Store, crew: Crew) -> None:
    """No sender sees an error; there is one order, and two workers execute beside it."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.").turn(text="All read.")
    for _ in range(2):
        await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    receipts = await asyncio.gather(*(send(store, run, "steer", f"message {n}") for n in range(50)))
    bench.release.set()
    await run_to_end(store, run)

    entries = await of_type(store, run, QueueEnqueued)
    assert sorted(r.seq for r in receipts) == [entry.seq for entry in entries]
    assert {r.entry_id for r in receipts} == {entry.entry_id for entry in entries}
    assert len(entries) == 50
    assert bench.ran == ["charge"]


async def test_r_20_same_key_same_request_is_one_entry(store: Store, flaky: Flaky) -> None:
    """Also when the first acknowledgement was lost: the receipt is the first one's."""
    run = await admit(store, agent())
    flaky.faults.once("after", "commit", lost_acknowledgement)
    first = await send(flaky, run, "steer", "Hello.", key="k")
    second = await send(store, run, "steer", "Hello.", key="k")

    assert first == second
    assert only(await of_type(store, run, QueueEnqueued)).entry_id == first.entry_id


async def test_r_20_same_key_other_request_is_refused(store: Store) -> None:
    """The conflict names the Run, and nothing was written."""
    run = await admit(store, agent())
    await send(store, run, "steer", "Hello.", key="k")
    with pytest.raises(IdempotencyConflict) as caught:
        await send(store, run, "steer", "Goodbye.", key="k")

    assert caught.value.run_id == run
    assert len(await of_type(store, run, QueueEnqueued)) == 1


async def test_r_20_same_key_at_once_is_one_entry(store: Store) -> None:
    """Twenty racers with one key: one entry, one receipt."""
    run = await admit(store, agent())
    receipts = await asyncio.gather(
        *(send(store, run, "steer", "Hello.", key="k") for _ in range(20))
    )

    assert len({receipt.entry_id for receipt in receipts}) == 1
    assert len(await of_type(store, run, QueueEnqueued)) == 1


async def test_adm_1_admission_and_first_record_are_one(store: Store, flaky: Flaky) -> None:
    """A commit that never arrives leaves neither; one that arrives leaves both."""
    version = await publish(store, agent(), scope=ACME)
    seen: list[Unit] = []

    async def note(argument: object) -> None:
        seen.extend(units_of(argument))
        assert not (await store.list_runs(ACME.tenant)).headers

    flaky.faults.before["commit"] = note
    made = await dispatch(flaky, version, scope=ACME, input={"message": "Go."})

    header = only((await store.list_runs(ACME.tenant)).headers)
    assert (header.run_id, header.head) == (made.run_id, 1)
    assert await kinds_of(store, made.run_id) == ["run.admitted"]
    assert len(only(seen).changes) == 1


async def test_adm_2_lost_acknowledgement_of_a_dispatch_is_no_second_run(
    store: Store, flaky: Flaky
) -> None:
    """The caller learns that it was admitted, once."""
    version = await publish(store, agent(), scope=ACME)
    flaky.faults.once("after", "commit", lost_acknowledgement)
    made = await dispatch(flaky, version, scope=ACME, input={"message": "Go."}, idempotency_key="k")

    assert made.created
    assert only((await store.list_runs(ACME.tenant)).headers).run_id == made.run_id


async def test_adm_2_same_key_at_once_is_one_run(store: Store) -> None:
    """Ten callers, one Run; exactly one of them created it."""
    version = await publish(store, agent(), scope=ACME)
    made = await asyncio.gather(
        *(
            dispatch(store, version, scope=ACME, input={"message": "Go."}, idempotency_key="k")
            for _ in range(10)
        )
    )

    assert len({one.run_id for one in made}) == 1
    assert [one.created for one in made].count(True) == 1


async def test_adm_2_same_key_other_request_is_refused(store: Store) -> None:
    """The second request learns the first Run's id and leaves no trace."""
    first = await admit(store, agent(), "one", idempotency_key="k")
    with pytest.raises(IdempotencyConflict) as caught:
        await admit(store, agent(), "two", idempotency_key="k")

    assert caught.value.run_id == first
    assert only((await store.list_runs(ACME.tenant)).headers).run_id == first


async def test_adm_2_same_key_other_tenant_is_another_run(store: Store) -> None:
    """Keys belong to a tenant."""
    globex = ACME.model_copy(update={"tenant": "globex"})
    ours = await admit(store, agent(), idempotency_key="k")
    theirs = await admit(store, agent(), scope=globex, idempotency_key="k")

    assert ours != theirs


async def test_adm_2_key_is_known_after_the_run_has_settled(store: Store, crew: Crew) -> None:
    """A late retry gets the first Run, not another execution."""
    model = FakeModel().turn(text="Hello.")
    await crew.start(runtime(store, model))
    first = await admit(store, agent(), idempotency_key="k")
    await run_to_end(store, first)

    assert await admit(store, agent(), idempotency_key="k") == first
    assert len(model.requests) == 1


async def test_adm_3_run_survives_without_a_worker(store: Store, crew: Crew) -> None:
    """Admitted with nobody there (D13): the first worker that comes executes it."""
    run = await admit(store, agent())
    assert (await store.header(ACME.tenant, run)).state == "ready"

    await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
    await run_to_end(store, run)

    assert only(await of_type(store, run, RunAdmitted)).version


async def test_r_15_many_workers_execute_each_run_once(store: Store, crew: Crew) -> None:
    """Six workers race for forty Runs: losing is normal, nothing is doubled."""
    ran: Counter[str] = Counter()

    @tool
    async def charge(context: ToolContext) -> str:
        """Charge the card."""
        ran[context.run_id] += 1
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    runs = [await admit(store, agent("charge")) for _ in range(40)]
    for _ in range(6):
        await crew.start(runtime(store, model, charge), concurrency=8)
    for run in runs:
        await run_to_end(store, run)
        assert len(await of_type(store, run, AttemptStarted)) == 1

    assert ran == Counter(runs)


async def test_r_15_worker_holds_no_more_than_its_slots(store: Store, crew: Crew) -> None:
    """Five Runs, two slots: never three at once."""
    inside = most = 0
    both = asyncio.Event()  # are at work: the first one waits for the second

    @tool
    async def work() -> str:
        """Work."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 2:
            both.set()
        await both.wait()
        await asyncio.sleep(0.02)
        inside -= 1
        return "ok"

    model = FakeModel().turn(tool_calls=[("work", {})]).turn(text="Done.")
    runs = [await admit(store, agent("work")) for _ in range(5)]
    await crew.start(runtime(store, model, work), concurrency=2)
    for run in runs:
        await run_to_end(store, run)

    assert most == 2


async def test_r_22_two_turns_cost_the_claim_and_four_commits(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """One unsafe tool, no deltas, a policy that answers at once."""
    bench = Bench()
    bench.hold = False
    run = await admit(store, agent("charge"))
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.unsafe()))
    await run_to_end(store, run)

    assert flaky.faults.calls["commit"] == 5
    assert len(flaky.faults.units) == 5


async def test_r_22_flushes_of_many_runs_share_commits(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """At concurrency 16 there are fewer commits than units."""
    bench = Bench()
    bench.hold = False
    runs = [await admit(store, agent("charge")) for _ in range(16)]
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(flaky, model, bench.unsafe()), concurrency=16)
    for run in runs:
        await run_to_end(store, run)

    assert len(flaky.faults.units) == 16 * 5
    assert flaky.faults.calls["commit"] < len(flaky.faults.units)
