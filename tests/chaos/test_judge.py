"""A judge that could not find anything would prove nothing: it is shown what must not happen."""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from psych_runtime.api import dispatch, publish
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.store.memory import MemoryStore
from psych_runtime.tools.policy import AllowAll
from psych_schema.common import Scope
from psych_schema.record import AttemptEnded, AttemptStarted, Record, RunSettled, ToolCompleted
from tests.chaos.evidence import (
    Admission,
    Evidence,
    RunLog,
    WorkerId,
    read_effects,
    read_logs,
    read_workers,
)
from tests.chaos.judge import Verdict, judge
from tests.chaos.nursery import TellingSystem, make_registry
from tests.chaos.storm import eventually
from tests.chaos.work import Order, OrderModel, shop
from tests.processes.nursery import Life, Stop

SCOPE = Scope(tenant="acme")
LEASE_SECONDS = 6.0
OTHER = "wrk_other"


async def live_through(folder: Path) -> Evidence:
    """Run two orders in peace; return what is left of it."""
    store = MemoryStore()
    made = Runtime(
        store=store,
        model=OrderModel(),
        registry=make_registry(folder),
        policy=AllowAll(),
        system=TellingSystem(folder, 0),
    )
    version = await publish(store, shop(), scope=SCOPE)
    working = asyncio.create_task(Worker(made, poll_seconds=0.02).run())
    admissions = []
    for order in (Order(0, 1), Order(1, 2)):
        run = await dispatch(store, version, scope=SCOPE, input={"message": order.text})
        admissions.append(Admission(order, SCOPE.tenant, (run.run_id,)))

    async def settled() -> bool:
        found = [await store.header(SCOPE.tenant, one.run_ids[0]) for one in admissions]
        return all(header.state == "settled" for header in found)

    assert await eventually(settled, 20.0)
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return Evidence(
        admissions=admissions,
        logs=await read_logs(store, [SCOPE.tenant]),
        effects=read_effects(folder),
        workers=read_workers(folder),
        lives={os.getpid(): Life(os.getpid())},
        lease_seconds=LEASE_SECONDS,
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Evidence against which nothing can be said."""
    return asyncio.run(live_through(tmp_path_factory.mktemp("good")))


def first_log(evidence: Evidence) -> RunLog:
    """Return the log of the first order's Run."""
    return evidence.logs[evidence.admissions[0].run_ids[0]]


def with_log(evidence: Evidence, log: RunLog) -> Evidence:
    """Return the evidence with another log of a Run."""
    return replace(evidence, logs={**evidence.logs, log.run_id: log})


def with_records(evidence: Evidence, records: Sequence[Record]) -> Evidence:
    """Return the evidence with other records of the first Run."""
    return with_log(evidence, replace(first_log(evidence), records=tuple(records)))


def changed[R: Record](evidence: Evidence, kind: type[R], **fields: object) -> Evidence:
    """Return the evidence with fields of the first Run's records of one class changed."""
    records = [
        one.model_copy(update=fields) if isinstance(one, kind) else one
        for one in first_log(evidence).records
    ]
    return with_records(evidence, records)


def taken_over(evidence: Evidence, at: float) -> Evidence:
    """Return the evidence with a takeover of the first Run, as another worker would write it."""
    records = list(first_log(evidence).records)
    [place] = [n for n, one in enumerate(records) if isinstance(one, AttemptStarted)]
    fields = {"worker": OTHER, "reason": "reclaimed", "at": datetime.fromtimestamp(at, UTC)}
    records.insert(place + 1, records[place].model_copy(update=fields))
    return with_records(evidence, records)


def with_life(evidence: Evidence, *ids: float, killed: float | None, stops: list[Stop]) -> Evidence:
    """Return the evidence with another life of the process, and the times of its next ids."""
    pid = os.getpid()
    later = [WorkerId(f"wrk_later_{made}", pid, 0, made) for made in ids]
    return replace(
        evidence,
        lives={pid: Life(pid, killed, stops)},
        workers=[*evidence.workers, *later],
    )


def test_run_1_what_went_well_is_no_fault(good: Evidence) -> None:
    """Two Runs in peace: each charge once, nothing to say."""
    verdict = judge(good)
    assert verdict == Verdict(admitted=2, completed=2)
    assert len([one for one in good.effects if one.tool == "charge"]) == 3


def test_run_1_an_unsafe_call_executed_twice_is_noticed(good: Evidence) -> None:
    """As by a worker that runs it again after a crash, under the next epoch."""
    [charge] = [
        e for e in good.effects if e.tool == "charge" and e.run_id == first_log(good).run_id
    ]
    found = judge(replace(good, effects=[*good.effects, charge._replace(epoch=2)]))
    assert f"{charge.run_id}: charge of turn 1 was executed 2 times" in found.doubled


def test_run_1_an_unsafe_call_made_again_under_another_id_is_noticed(good: Evidence) -> None:
    """A turn that is asked for twice charges twice, though each call ran once."""
    [charge] = [
        e for e in good.effects if e.tool == "charge" and e.run_id == first_log(good).run_id
    ]
    found = judge(replace(good, effects=[*good.effects, charge._replace(call_id="call_new")]))
    assert f"{charge.run_id}: charge of turn 1 was executed 2 times" in found.doubled
    assert f"{charge.run_id}: charge of turn 1 ran and no record says so" in found.wrong


def test_run_1_a_call_executed_twice_in_one_attempt_is_noticed(good: Evidence) -> None:
    """A safe one, too: only a new attempt may repeat it."""
    put = next(effect for effect in good.effects if effect.tool == "put")
    found = judge(replace(good, effects=[*good.effects, put]))
    assert found.doubled == [f"{put.run_id}: call {put.call_id} ran 2 times in attempt 1"]


def test_run_1_a_safe_call_repeated_after_its_end_is_noticed(good: Evidence) -> None:
    """A finished sibling: no attempt has said that it runs it again."""
    put = next(effect for effect in good.effects if effect.tool == "put")
    found = judge(replace(good, effects=[*good.effects, put._replace(epoch=2)]))
    assert found.wrong == [f"{put.run_id}: put of turn {put.turn} ran and no record says so"]


def test_run_1_an_outcome_without_its_execution_is_noticed(good: Evidence) -> None:
    """The log says ok, and nothing happened."""
    run_id = first_log(good).run_id
    effects = [one for one in good.effects if one.run_id != run_id]
    assert judge(replace(good, effects=effects)).wrong == [
        f"{run_id}: put of turn 1 is ok and was executed 0 times",
        f"{run_id}: charge of turn 1 is ok and was executed 0 times",
        f"{run_id}: look of turn 1 is ok and was executed 0 times",
    ]


def test_run_1_a_safe_call_given_up_is_noticed(good: Evidence) -> None:
    """Only what is not safe to retry may end unknown."""
    found = judge(changed(good, ToolCompleted, outcome="unknown")).wrong
    run_id = first_log(good).run_id
    assert f"{run_id}: put of turn 1 is unknown and was executed 1 times" in found
    assert not [fault for fault in found if "charge" in fault and "executed" in fault]


def test_run_1_another_last_word_is_noticed(good: Evidence) -> None:
    """The output repeats what the tools returned."""
    [fault] = judge(changed(good, RunSettled, output="put 1 of another")).wrong
    assert fault.startswith(f"{first_log(good).run_id}: it ended with 'put 1 of another'")


def test_run_1_a_run_that_failed_is_noticed(good: Evidence) -> None:
    """Nothing in the work can fail, so it was us."""
    verdict = judge(changed(good, RunSettled, state="failed"))
    assert verdict.wrong == [f"{first_log(good).run_id}: it ended failed: None"]
    assert verdict.completed == 1


@pytest.mark.parametrize("state", ["ready", "running", "corrupt"])
def test_run_3_a_run_that_does_not_end_is_lost(good: Evidence, state: str) -> None:
    """Whatever its log says."""
    log = replace(first_log(good), state=state)
    assert judge(with_log(good, log)).lost == [f"{log.run_id}: it is {state}, not settled"]


def test_run_3_an_admitted_run_that_is_not_there_is_lost(good: Evidence) -> None:
    """The caller was told an id."""
    run_id = first_log(good).run_id
    logs = {key: log for key, log in good.logs.items() if key != run_id}
    found = judge(replace(good, logs=logs))
    assert found.lost == [f"{run_id}: admitted, and not in the store"]


def test_st_2_an_order_with_two_runs_is_noticed(good: Evidence) -> None:
    """Told, as two ids of one key, or not told, as a Run that nobody has asked for."""
    first, second = good.admissions
    both = first._replace(run_ids=(*first.run_ids, *second.run_ids))
    assert judge(replace(good, admissions=[both, second])).doubled == [
        f"order 0: 1 turns: Runs {first.run_ids[0]}, {second.run_ids[0]}"
    ]
    found = judge(replace(good, admissions=[first]))
    assert found.doubled == [f"{second.run_ids[0]}: in the store, and no order's Run"]


def test_run_1_a_log_that_does_not_verify_is_noticed(good: Evidence) -> None:
    """What verifying says is said on."""
    log = replace(first_log(good), problems=("prev_differs at 3: it does not fit",))
    found = judge(with_log(good, log))
    assert found.wrong == [f"{log.run_id}: prev_differs at 3: it does not fit"]


def test_run_1_an_attempt_that_died_of_an_error_is_noticed(good: Evidence) -> None:
    """The Run recovers from it, and yet it was a bug."""
    first, *rest = first_log(good).records
    ended = AttemptEnded(run_id=first.run_id, id=first.id, at=first.at, reason="error", code="bug")
    found = judge(with_records(good, [first, ended, *rest]))
    assert found.wrong == [f"{first.run_id}: an attempt died of an error: bug"]


def test_run_1_a_worker_that_ends_by_itself_is_noticed(good: Evidence) -> None:
    """Nobody had killed it."""
    found = judge(replace(good, ended_alone=[7], raised=["OSError: gone"]))
    assert found.wrong == [
        "process 7: a worker ended that nobody has killed",
        "the API raised OSError: gone",
    ]


def test_r_6_a_takeover_of_a_live_worker_is_noticed(good: Evidence) -> None:
    """Its process was neither killed nor stopped."""
    verdict = judge(taken_over(good, time.time() + 60.0))
    [former] = {worker.id for worker in good.workers}
    assert verdict.taken_alive == [
        f"{first_log(good).run_id}: {OTHER} took it from {former}, which was alive"
    ]
    assert verdict.recoveries == []


def test_r_6_a_takeover_before_the_kill_is_noticed(good: Evidence) -> None:
    """That it was killed later explains nothing."""
    [made] = [worker.made for worker in good.workers]
    killed = with_life(good, killed=made + 100.0, stops=[])
    assert len(judge(taken_over(killed, made + 60.0)).taken_alive) == 1


def test_r_6_a_takeover_of_a_worker_that_had_long_recovered_is_noticed(good: Evidence) -> None:
    """It once stood still, went on under its id, and was declared dead a minute later."""
    [made] = [worker.made for worker in good.workers]
    stops = [Stop(made + 10.0, made + 18.0)]
    lived_on = with_life(good, made + 80.0, killed=None, stops=stops)
    assert len(judge(taken_over(lived_on, made + 82.0)).taken_alive) == 1


def test_r_5_another_worker_of_the_process_tells_nothing_of_this_one(good: Evidence) -> None:
    """Several in one process are killed together; each has ids of its own."""
    [made] = [worker.made for worker in good.workers]
    killed = with_life(good, killed=made + 50.0, stops=[])
    sibling = WorkerId("wrk_sibling", os.getpid(), 1, made + 0.1)
    both = replace(killed, workers=[*killed.workers, sibling])
    assert judge(taken_over(both, made + 57.0)).taken_alive == []


def test_r_5_a_takeover_after_the_kill_is_a_recovery(good: Evidence) -> None:
    """Its neighbour: what was killed must be taken over."""
    [made] = [worker.made for worker in good.workers]
    killed = with_life(good, killed=made + 50.0, stops=[])
    verdict = judge(taken_over(killed, made + 57.0))
    assert verdict.taken_alive == []
    assert [one.worker for one in verdict.recoveries] == [OTHER]


@pytest.mark.parametrize("next_ids", [[], [68.5]], ids=["sleeping", "awake"])
def test_r_5_a_takeover_of_a_stopped_worker_is_a_recovery(
    good: Evidence, next_ids: list[float]
) -> None:
    """While it stands, or when it has just learnt that it is dead."""
    [made] = [worker.made for worker in good.workers]
    stop = Stop(made + 50.0, made + 68.0 if next_ids else None)
    stopped = with_life(good, *[made + one for one in next_ids], killed=None, stops=[stop])
    verdict = judge(taken_over(stopped, made + 57.0))
    assert verdict.taken_alive == []
    assert len(verdict.recoveries) == 1
