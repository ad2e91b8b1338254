"""send and cancel, whoever comes first (RUN-5, RUN-6, ADM-2, R-18, D11, C11)."""

import asyncio
from collections import Counter

import pytest

from psych_runtime._messages import cancel, send
from psych_runtime._reads import thread
from psych_runtime.api import interrupt
from psych_runtime.errors import EntryOver, IdempotencyConflict
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.receipt import Receipt
from psych_schema.record import (
    AbortRequested,
    QueueConsumed,
    QueueEnqueued,
    RunAdmitted,
    RunSettled,
)
from psych_schema.view import ThreadView
from tests.functional.engine.durability.crashes import Bench, die
from tests.functional.engine.flaky import Flaky, lost_acknowledgement, units_of
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    only,
    run_to_end,
    runtime,
    sound,
    texts_of,
)


def answers(number: int, *, charges: bool = False) -> FakeModel:
    """Return a model that says A0, A1, ..., after a call of `charge` if so said."""
    model = FakeModel()
    if charges:
        model.turn(tool_calls=[("charge", {})])
    for place in range(number):
        model.turn(text=f"A{place}")
    return model


async def in_a_tool(store: Store, crew: Crew, model: FakeModel) -> tuple[Bench, str]:
    """Start a Run and wait until its tool runs."""
    bench = Bench()
    await crew.start(runtime(store, model, bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    return bench, run


async def ended(store: Store, crew: Crew, model: FakeModel) -> str:
    """Return a Run that has ended."""
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    return run


def kinds_in(argument: object) -> list[str]:
    """Return the types of the records that a commit would write."""
    units = units_of(argument)
    return [s.row.type for unit in units for change in unit.changes for s in change.records]


async def line_of(store: Store, run: str) -> list[str]:
    """Wait until every Run of a thread has ended; return their ids in order."""

    async def over() -> bool:
        tail = await store.tail(ACME.tenant, run)
        return tail is not None and tail.state == "settled"

    await eventually(over)
    page = await thread(store, run, scope=ACME, limit=100)
    for one in page.runs:
        await sound(store, one.run_id)
    assert [one.position for one in page.runs] == list(range(1, len(page.runs) + 1))
    return [one.run_id for one in page.runs]


def said_by_users(page: ThreadView) -> list[str | None]:
    """Return what people said, in the order in which the models met it."""
    return [one.text for run in page.runs for one in run.said if one.kind == "user"]


# next_run and an interrupt


async def test_run_5_interrupt_then_next_run_while_the_run_lives(store: Store, crew: Crew) -> None:
    """Abort and message stand in its log in order; its settlement begins the one next Run."""
    run = await admit(store, agent())
    aborted = await interrupt(store, run, scope=ACME, by="ann", reason="enough")
    receipt = await send(store, run, scope=ACME, message="Again.", queue="next_run", by="ann")
    await crew.start(runtime(store, answers(1)))
    line = await line_of(store, run)

    assert (receipt.run_id, receipt.seq) == (run, aborted.seq + 1)
    assert only(await of_type(store, run, AbortRequested)).seq == aborted.seq
    assert only(await of_type(store, run, QueueEnqueued)).entry_id == receipt.entry_id
    assert only(await of_type(store, run, RunSettled)).next_run == line[1]
    page = await thread(store, run, scope=ACME)
    first, second = page.runs
    assert [one.kind for one in first.said] == ["user", "abort"]
    assert first.unread == ()
    assert [(one.kind, getattr(one, "by", None)) for one in second.said] == [
        ("user", "ann"),
        ("model", None),
    ]
    assert said_by_users(page) == ["Go.", "Again."]


async def test_run_5_interrupt_then_next_run_when_it_has_ended(store: Store, crew: Crew) -> None:
    """The same thread comes of it: the message begins the next Run itself."""
    _, run = await in_a_tool(store, crew, answers(1, charges=True))
    await interrupt(store, run, scope=ACME, by="ann", reason="enough")
    await run_to_end(store, run)
    receipt = await send(store, run, scope=ACME, message="Again.", queue="next_run", by="ann")
    line = await line_of(store, run)

    assert line == [run, receipt.run_id]
    page = await thread(store, run, scope=ACME)
    first, second = page.runs
    assert [one.kind for one in first.said] == ["user", "call", "abort"]
    assert first.unread == ()
    assert [(one.kind, getattr(one, "by", None)) for one in second.said] == [
        ("user", "ann"),
        ("model", None),
    ]
    assert said_by_users(page) == ["Go.", "Again."]
    assert (await store.header(ACME.tenant, run)).referenced


async def test_run_5_next_run_that_overtakes_the_settlement(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Two senders write right before run.settled does: one next Run with both, in order."""
    receipts: list[Receipt] = []

    async def overtake(argument: object) -> None:
        if "run.settled" in kinds_in(argument) and not receipts:
            run_id = units_of(argument)[0].changes[0].run_id
            receipts.extend(
                [
                    await send(store, run_id, scope=ACME, message=text, queue="next_run")
                    for text in ("one", "two")
                ]
            )

    flaky.faults.before["commit"] = overtake
    await crew.start(runtime(flaky, answers(2)))
    run = await admit(store, agent())
    line = await line_of(store, run)

    assert [one.run_id for one in receipts] == [run, run]
    assert len(line) == 2
    assert only(await of_type(store, run, RunSettled)).next_run == line[1]
    message = only(await of_type(store, line[1], RunAdmitted)).input
    assert message == {
        "message": [{"kind": "text", "text": "one"}, {"kind": "text", "text": "two"}]
    }


async def test_run_5_next_run_that_the_settlement_overtakes(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Two senders looked while the Run lived; it ended first: each is read once all the same."""
    bench, run = await in_a_tool(store, crew, answers(3, charges=True))

    async def end_first(argument: object) -> None:
        if "queue.enqueued" in kinds_in(argument):
            bench.release.set()
            await run_to_end(store, run)

    flaky.faults.before["commit"] = end_first
    receipts = await asyncio.gather(
        *(send(flaky, run, scope=ACME, message=t, queue="next_run") for t in ("one", "two"))
    )
    line = await line_of(store, run)

    assert all(one.run_id in line[1:] for one in receipts)
    page = await thread(store, run, scope=ACME)
    words = "".join(text or "" for text in said_by_users(page))
    assert sorted((words.count("one"), words.count("two"))) == [1, 1]


async def test_run_5_ten_senders_behind_a_settled_run(store: Store, crew: Crew) -> None:
    """One begins the next Run, the others find it: none is lost, none is read twice."""
    run = await ended(store, crew, answers(12))
    texts = [f"<{number}>" for number in range(10)]
    receipts = await asyncio.gather(
        *(send(store, run, scope=ACME, message=text, queue="next_run") for text in texts)
    )
    line = await line_of(store, run)

    firsts = Counter(one.run_id for one in receipts if one.seq == 1)
    assert firsts[line[1]] == 1
    assert set(firsts.values()) == {1}
    words = "".join(text or "" for text in said_by_users(await thread(store, run, scope=ACME)))
    assert [words.count(text) for text in texts] == [1] * 10


async def test_run_5_lost_acknowledgement_begins_one_next_run(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """The unit is sent again, and the receipt is that of the Run which is there."""
    run = await ended(store, crew, answers(2))
    flaky.faults.once("after", "commit", lost_acknowledgement)
    receipt = await send(flaky, run, scope=ACME, message="2?", queue="next_run")

    assert await line_of(store, run) == [run, receipt.run_id]


# The key of a request


async def test_adm_2_key_of_a_message_that_begins_a_run(store: Store, crew: Crew) -> None:
    """The same request gives the same receipt, also when the thread has gone on since."""
    run = await ended(store, crew, answers(2))

    async def ask(text: str) -> Receipt:
        return await send(store, run, scope=ACME, message=text, queue="next_run", key="k")

    first = await ask("2?")
    assert await ask("2?") == first
    line = await line_of(store, run)
    assert await ask("2?") == first
    with pytest.raises(IdempotencyConflict) as caught:
        await ask("3?")

    assert line == [run, first.run_id]
    assert (caught.value.key, caught.value.run_id) == ("k", first.run_id)
    row = only(await store.read(ACME.tenant, first.run_id, limit=1))
    assert first.seq == row.seq == 1
    assert await store.key(ACME.tenant, run, f"next:{run}:{first.entry_id}") is not None


async def test_adm_2_key_stands_under_the_run_that_was_named(store: Store, crew: Crew) -> None:
    """The message goes to the living end of the thread; its key is the named Run's."""
    worker = await crew.start(runtime(store, answers(1)))
    run = await admit(store, agent())
    await run_to_end(store, run)
    await crew.stop(worker)
    following = (await send(store, run, scope=ACME, message="2?", queue="next_run")).run_id
    first, again = [
        await send(store, run, scope=ACME, message="3?", queue="next_run", key="k")
        for _ in range(2)
    ]

    assert first == again
    assert first.run_id == following
    assert len(await of_type(store, following, QueueEnqueued)) == 1
    assert await store.key(ACME.tenant, run, "k") is not None
    assert await store.key(ACME.tenant, following, "k") is None


async def test_adm_2_ten_requests_with_one_key_are_one(store: Store, crew: Crew) -> None:
    """All at once behind a settled Run: one successor, ten equal receipts."""
    run = await ended(store, crew, answers(2))
    receipts = await asyncio.gather(
        *(send(store, run, scope=ACME, message="2?", queue="next_run", key="k") for _ in range(10))
    )

    assert len({one.model_dump_json() for one in receipts}) == 1
    assert await line_of(store, run) == [run, receipts[0].run_id]


# steer and follow_up


async def test_run_6_fifty_concurrent_sends_are_in_the_log_in_one_order(
    store: Store, crew: Crew
) -> None:
    """Each stands where its receipt says, and the model reads them in that order, each once."""
    model = answers(1, charges=True)
    bench, run = await in_a_tool(store, crew, model)
    texts = [f"<{number}>" for number in range(50)]
    receipts = await asyncio.gather(
        *(send(store, run, scope=ACME, message=text, by=text) for text in texts)
    )
    by_seq = {one.seq: text for one, text in zip(receipts, texts, strict=True)}
    written = await of_type(store, run, QueueEnqueued)
    bench.release.set()
    await line_of(store, run)

    assert {one.seq: one.by for one in written} == by_seq
    order = [by_seq[seq] for seq in sorted(by_seq)]
    assert len(order) == 50
    assert texts_of(model.requests[-1].messages)[-50:] == order
    read = [e for one in await of_type(store, run, QueueConsumed) for e in one.entries]
    assert read == [one.entry_id for one in written]


async def test_run_6_both_queues_survive_the_death_of_the_worker(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Sent while it ran, read by another one: the steer at once, the follow-up at the end."""
    bench = Bench()
    first = await crew.start(runtime(flaky, answers(0, charges=True), bench.unsafe()))
    run = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    await send(store, run, scope=ACME, message="And then?", queue="follow_up")
    await send(store, run, scope=ACME, message="Be brief.", queue="steer")
    await die(flaky, store, first)
    model = answers(2, charges=True)
    await crew.start(runtime(store, model, bench.unsafe()))
    await run_to_end(store, run)

    one, two = [texts_of(request.messages) for request in model.requests]
    assert one[-1] == "Be brief."
    assert "And then?" not in one
    assert two[-2:] == ["A0", "And then?"]
    assert two.count("Be brief.") == 1
    assert only(await of_type(store, run, RunSettled)).output == "A1"


# cancel against consume


async def test_r_18_cancel_that_overtakes_the_model_call(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It is written right before queue.consumed is: the call is made without the message."""
    taken: list[Receipt] = []
    run = await admit(store, agent())
    receipts = [await send(store, run, scope=ACME, message=text) for text in ("No.", "Yes.")]

    async def overtake(argument: object) -> None:
        if "queue.consumed" in kinds_in(argument) and not taken:
            taken.append(await cancel(store, run, str(receipts[0].entry_id), scope=ACME))

    flaky.faults.before["commit"] = overtake
    model = answers(1)
    await crew.start(runtime(flaky, model))
    await run_to_end(store, run)

    assert taken
    assert [texts_of(request.messages) for request in model.requests] == [["Go.", "Yes."]]
    assert only(await of_type(store, run, QueueConsumed)).entries == (receipts[1].entry_id,)


async def test_r_18_cancel_that_the_model_call_overtakes(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It looked while the message was queued; the model was given it first: it is too late."""
    run = await admit(store, agent())
    receipt = await send(store, run, scope=ACME, message="Yes.")

    async def consume(_: object) -> None:
        await crew.start(runtime(store, answers(1)))
        await eventually(lambda: of_type(store, run, QueueConsumed))

    flaky.faults.once("before", "commit", consume)
    with pytest.raises(EntryOver) as caught:
        await cancel(flaky, run, str(receipt.entry_id), scope=ACME)

    assert (caught.value.entry_id, caught.value.reason) == (receipt.entry_id, "consumed")
    await run_to_end(store, run)


async def test_r_18_cancel_and_send_at_once(store: Store, crew: Crew) -> None:
    """Twenty messages, each cancelled while a worker reads: each is read or cancelled, not both."""
    run = await admit(store, agent())
    receipts = [await send(store, run, scope=ACME, message=f"<{n}>") for n in range(20)]

    async def take_back(receipt: Receipt) -> str:
        try:
            await cancel(store, run, str(receipt.entry_id), scope=ACME)
        except EntryOver as error:
            return error.reason
        return "cancelled"

    model = answers(1)
    _, *fates = await asyncio.gather(
        crew.start(runtime(store, model)), *(take_back(one) for one in receipts)
    )
    await run_to_end(store, run)

    read = "".join(texts_of(model.requests[-1].messages))
    assert set(fates) <= {"cancelled", "consumed"}
    assert [f"<{n}>" in read for n in range(20)] == [fate == "consumed" for fate in fates]
