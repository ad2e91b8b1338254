"""Queues and the line of Runs in a thread (R-18, ST-8, D15)."""

import asyncio

import pytest

from psych_runtime._erase import erase
from psych_runtime._system import System
from psych_runtime.api import dispatch, interrupt, publish
from psych_runtime.errors import NotThreadTail, StoreUnavailable
from psych_runtime.ports.answers import Committed, SeqConflict, ThreadTaken
from psych_runtime.ports.store import Admit, Change, HeaderChange, Store, Unit
from psych_runtime.runtime.admission import admit as admission
from psych_runtime.runtime.admission import run_admitted
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.receipt import Receipt
from psych_schema.record import QueueConsumed, QueueEnqueued, RunAdmitted, RunSettled, ThreadRef
from tests.functional.engine.durability.crashes import Bench, die, overtake_settlement
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
    texts_of,
)


async def in_a_tool(store: Store, crew: Crew, model: FakeModel) -> tuple[Bench, str]:
    """Start a Run and wait until its tool runs."""
    bench = Bench()
    await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    return bench, run


def has_learned(worker: Worker, run_id: str, receipt: Receipt) -> bool:
    """Tell whether the attempt has read what was sent: within 500 ms (R-19)."""
    return worker.holdings()[run_id].journal.position.seq >= receipt.seq


async def test_r_18_steer_reaches_the_next_model_call(store: Store, crew: Crew) -> None:
    """Sent while a tool runs: the very next request has it, behind the tool's answer."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    worker = await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    receipt = await send(store, run, "steer", "Be brief.")
    await eventually(lambda: has_learned(worker, run, receipt))
    bench.release.set()
    await run_to_end(store, run)

    assert texts_of(model.requests[1].messages)[-2:] == ["charge is done", "Be brief."]
    assert only(await of_type(store, run, QueueConsumed)).entries == (receipt.entry_id,)


async def test_r_18_follow_up_waits_for_the_answer(store: Store, crew: Crew) -> None:
    """It is not in the next call; when the agent would finish, it goes on instead."""
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="One.").turn(text="Two.")
    bench, run = await in_a_tool(store, crew, model)
    await send(store, run, "follow_up", "And then?")
    bench.release.set()
    await run_to_end(store, run)

    assert texts_of(model.requests[1].messages)[-1] == "charge is done"
    assert texts_of(model.requests[2].messages)[-2:] == ["One.", "And then?"]
    assert only(await of_type(store, run, RunSettled)).output == "Two."


async def test_r_18_steer_that_comes_too_late_counts_as_a_follow_up(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It overtakes run.settled: the Run answers it before it ends."""
    overtake_settlement(flaky, store, "steer", "Be brief.")
    model = FakeModel().turn(text="A long answer.").turn(text="Short.")
    await crew.start(runtime(flaky, model))
    run = await admit(store, agent())
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert (settled.output, settled.unconsumed) == ("Short.", ())


async def test_r_18_next_run_is_admitted_in_the_unit_of_the_settlement(
    store: Store, crew: Crew
) -> None:
    """One commit id; the next Run takes version, scope, priority and deadline, and the words."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model, bench.unsafe()))
    scope = ACME.model_copy(update={"principal": "ann"})
    run = await admit(store, agent("charge"), scope=scope, priority=3, deadline_seconds=77.0)
    await eventually(lambda: bench.ran)
    await send(store, run, "next_run", "First.")
    await send(store, run, "next_run", "Second.")
    bench.release.set()
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert settled.next_run is not None
    header = await run_to_end(store, settled.next_run)
    before = await store.header(ACME.tenant, run)
    admitted = only(await of_type(store, settled.next_run, RunAdmitted))
    first = only(await of_type(store, run, RunAdmitted))
    assert admitted.commit == settled.commit
    assert (header.thread, header.position, header.previous) == (before.thread, 2, run)
    assert (admitted.version, admitted.scope) == (first.version, scope)
    assert (admitted.priority, admitted.deadline_seconds) == (3, 77.0)
    assert before.referenced
    assert texts_of(model.requests[2].messages) == [
        "Go.",
        "",
        "charge is done",
        "One.",
        "First.Second.",
    ]


async def test_mod_8_next_runs_prompt_extends_the_predecessors(store: Store, crew: Crew) -> None:
    """Message by message the same, then what is new."""
    model = FakeModel().turn(text="One.").turn(text="Two.").turn(text="Three.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), "1?")
    await run_to_end(store, run)
    for question in ("2?", "3?"):
        run = await admit(store, agent(), question, continues=run)
        await run_to_end(store, run)

    one, two, three = [request.messages for request in model.requests]
    assert two[: len(one)] == one
    assert three[: len(two)] == two
    assert texts_of(three) == ["1?", "One.", "2?", "Two.", "3?"]


async def test_st_8_lost_acknowledgement_of_a_settlement_admits_one_next_run(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The unit is sent again, both of its Runs are there, once."""

    async def lose(argument: object) -> None:
        if any(len(unit.changes) == 2 for unit in units_of(argument)):
            del flaky.faults.after["commit"]
            await lost_acknowledgement(argument)

    flaky.faults.after["commit"] = lose
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="One.").turn(text="Two.")
    bench, run = await in_a_tool(flaky, crew, model)
    await send(store, run, "next_run", "Again.")
    bench.release.set()
    await run_to_end(store, run)
    settled = only(await of_type(store, run, RunSettled))
    assert settled.next_run is not None
    await run_to_end(store, settled.next_run)

    assert len((await store.list_runs(ACME.tenant)).headers) == 2
    assert "commit" not in flaky.faults.after


async def test_st_8_settlement_that_never_arrives_leaves_neither(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The worker dies with it: no next Run; the one who takes over admits it with the end."""

    async def refuse_settlement(argument: object) -> None:
        if any(len(unit.changes) == 2 for unit in units_of(argument)):
            flaky.faults.away = True

    flaky.faults.before["commit"] = refuse_settlement
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="One.").turn(text="Two.")
    bench = Bench()
    first = await crew.start(runtime(flaky, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await send(store, run, "next_run", "Again.")
    bench.release.set()
    await eventually(lambda: flaky.faults.away)
    await die(flaky, store, first)
    assert only((await store.list_runs(ACME.tenant)).headers).run_id == run

    await crew.start(runtime(store, model, bench.unsafe()))
    await run_to_end(store, run)
    settled = only(await of_type(store, run, RunSettled))
    assert settled.next_run is not None
    await run_to_end(store, settled.next_run)
    assert len((await store.list_runs(ACME.tenant)).headers) == 2


async def test_st_8_unit_whose_second_half_loses_changes_nothing(store: Store) -> None:
    """Synthetic: a change beside an admission whose place in the thread is taken, or stale."""
    system = System()
    run = await admit(store, agent())
    header = await store.header(ACME.tenant, run)
    version = header.version

    def unit(position: int, head: int) -> Unit:
        thread = ThreadRef(id=header.thread, position=position)
        record = run_admitted(system, version=version, scope=ACME, input=None, thread=thread)
        commit = system.new_id("com")
        change = Change(run, head, None, (), HeaderChange(referenced=True))
        more: Admit = admission(record, commit_id=commit, system=system)
        return Unit(commit, ACME.tenant, (change, more))

    assert await store.commit([unit(1, header.head)]) == [ThreadTaken(header.thread, 1)]
    assert await store.commit([unit(2, header.head + 1)]) == [SeqConflict(run)]
    assert await store.header(ACME.tenant, run) == header
    assert await store.commit([unit(2, header.head)]) == [Committed()]
    assert (await store.header(ACME.tenant, run)).referenced


async def test_r_18_what_an_interrupt_leaves_is_listed(store: Store, crew: Crew) -> None:
    """Unread steers and follow-ups stand in unconsumed; next_run still becomes the next Run."""
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Next.")
    _, run = await in_a_tool(store, crew, model)
    left = [await send(store, run, queue, queue) for queue in ("steer", "follow_up")]
    await send(store, run, "next_run", "Go on.")
    await interrupt(store, run, scope=ACME)
    await run_to_end(store, run)

    settled = only(await of_type(store, run, RunSettled))
    assert settled.state == "aborted"
    assert sorted(settled.unconsumed) == sorted(str(one.entry_id) for one in left)
    assert settled.next_run is not None
    assert only(await of_type(store, settled.next_run, RunAdmitted)).input == {"message": "Go on."}


async def test_r_18_entry_consumed_before_a_crash_is_not_consumed_again(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The call that read it is made again with it; the message stands in the prompt once."""
    bench = Bench()
    slow = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="x", chunk_delay_seconds=30)
    first = await crew.start(runtime(flaky, slow, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await send(store, run, "steer", "Be brief.")
    bench.release.set()
    await eventually(lambda: len(slow.requests) == 2)
    await die(flaky, store, first)

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, bench.unsafe()))
    await run_to_end(store, run)

    assert len(await of_type(store, run, QueueConsumed)) == 1
    assert texts_of(only(model.requests).messages).count("Be brief.") == 1
    assert bench.ran == ["charge"]


async def test_r_18_entries_of_a_waiting_run_keep_their_order(store: Store, crew: Crew) -> None:
    """Sent before any worker came: all are read, first come first."""
    run = await admit(store, agent())
    for number in range(3):
        await send(store, run, "steer", f"{number}")
    model = FakeModel().turn(text="Hello.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)

    assert texts_of(model.requests[0].messages) == ["Go.", "0", "1", "2"]
    assert len(await of_type(store, run, QueueEnqueued)) == 3


async def test_r_18_continuing_a_live_run_is_refused(store: Store) -> None:
    """The error names the tail and its state; nothing was admitted."""
    run = await admit(store, agent())
    with pytest.raises(NotThreadTail) as caught:
        await admit(store, agent(), continues=run)

    assert (caught.value.tail, caught.value.state) == (run, "ready")
    assert len((await store.list_runs(ACME.tenant)).headers) == 1


async def test_r_18_continuing_what_is_not_the_tail_is_refused(store: Store, crew: Crew) -> None:
    """Only the end of the line can be continued."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model))
    first = await admit(store, agent())
    await run_to_end(store, first)
    second = await admit(store, agent(), continues=first)
    await run_to_end(store, second)
    with pytest.raises(NotThreadTail) as caught:
        await admit(store, agent(), continues=first)

    assert caught.value.tail == second


async def test_d_15_two_that_continue_one_run_are_serialised(store: Store, crew: Crew) -> None:
    """Ten callers at once: one successor; the others learn that it is not the tail any more."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    version = await publish(store, agent(), scope=ACME)
    made = await asyncio.gather(
        *(dispatch(store, version, scope=ACME, continues=run) for _ in range(10)),
        return_exceptions=True,
    )

    refused = [one for one in made if isinstance(one, NotThreadTail)]
    assert len(refused) == 9
    assert len((await store.list_runs(ACME.tenant)).headers) == 2


async def test_r_18_lost_acknowledgement_of_a_continuation_is_no_refusal(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The caller's own successor is not taken for somebody else's."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    version = await publish(store, agent(), scope=ACME)
    flaky.faults.once("after", "commit", lost_acknowledgement)
    made = await dispatch(flaky, version, scope=ACME, input={"message": "2?"}, continues=run)
    header = await run_to_end(store, made.run_id)

    assert made.created
    assert header.position == 2


async def test_r_18_predecessor_that_is_away_for_a_moment_costs_no_attempt(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Reading what was said before is tried again, like every read."""
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(flaky, model))
    run = await admit(store, agent())
    await run_to_end(store, run)

    async def lose(run_id: object) -> None:
        if run_id == run:
            del flaky.faults.before["read"]
            raise StoreUnavailable(problem="this read was lost")

    flaky.faults.before["read"] = lose
    following = await admit(store, agent(), continues=run)
    await run_to_end(store, following)

    kinds = await kinds_of(store, following)
    assert kinds.count("attempt.started") == 1
    assert "read" not in flaky.faults.before
    assert only(await of_type(store, following, RunSettled)).state == "completed"


async def test_r_11_a_run_behind_an_erased_one_fails_at_once(store: Store, crew: Crew) -> None:
    """What was said before is gone for good: it is not tried again and again."""
    model = FakeModel()
    for text in ("One.", "Two.", "never"):
        model.turn(text=text)
    await crew.start(runtime(store, model))
    version = await publish(store, agent(), scope=ACME)
    first = await admit(store, version)
    await run_to_end(store, first)
    second = await admit(store, version, continues=first)
    await run_to_end(store, second)
    await erase(store, first, scope=ACME, by="ann")
    third = await admit(store, version, continues=second)
    header = await run_to_end(store, third)

    settled = only(await of_type(store, third, RunSettled))
    assert settled.state == "failed"
    assert settled.reason is not None
    assert settled.reason.code == "content_erased"
    assert header.crashes == 0
