"""send and cancel: what is refused, and what a refusal says (R-18, R-30, RUN-6, ADM-2)."""

import json
from collections.abc import Sequence

import pytest

from psych_runtime._erase import erase
from psych_runtime._messages import cancel, send
from psych_runtime._system import System
from psych_runtime.api import dispatch, interrupt
from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.errors import (
    ContentErased,
    CorruptLog,
    EntryNotFound,
    EntryOver,
    IdempotencyConflict,
    InvalidArgument,
    InvalidPayload,
    PayloadTooLarge,
    QueueFull,
    RunNotFound,
    RunSettled,
    RunStopping,
)
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.runtime.requests import JsonLike
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Queue, Scope
from psych_schema.model import JsonPart, TextPart
from psych_schema.receipt import Receipt
from psych_schema.record import QueueCancelled, QueueEnqueued, RunAdmitted
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    of_type,
    only,
    records_of,
    run_to_end,
    runtime,
    sound,
    texts_of,
)

QUEUES: list[Queue] = ["steer", "follow_up", "next_run"]
GLOBEX = Scope(tenant="globex")


async def settled(store: Store, crew: Crew, model: FakeModel | None = None) -> str:
    """Return a Run that has ended."""
    await crew.start(runtime(store, FakeModel().turn(text="One.") if model is None else model))
    run = await admit(store, agent())
    await run_to_end(store, run)
    return run


async def mark_corrupt(store: Store, run: str) -> None:
    """Say of a Run that nobody can trust its log, as a worker does that finds it so."""
    head = (await store.header(ACME.tenant, run)).head
    change = Change(run, head, None, (), HeaderChange(state="corrupt"))
    unit = Unit(System().new_id("com"), ACME.tenant, (change,))
    assert await store.commit([unit]) == [Committed()]


def text_of(size_bytes: int) -> str:
    """Return a text whose message has exactly so many bytes."""
    around = len('{"role":"user","parts":[{"kind":"text","text":""}]}')
    return "x" * (size_bytes - around)


# What is taken


@pytest.mark.parametrize("queue", QUEUES)
async def test_run_6_receipt_is_of_the_record(store: Store, queue: Queue) -> None:
    """Who, what and where: its queue, its words, who says it, at the seq of the receipt."""
    run = await admit(store, agent())
    receipt = await send(store, run, scope=ACME, message="Hm.", queue=queue, by="ann", key="k")
    header = await store.header(ACME.tenant, run)
    record = only(await of_type(store, run, QueueEnqueued))

    assert (record.queue, record.by, record.key) == (queue, "ann", "k")
    assert record.message is not None
    assert record.message.parts == (TextPart(text="Hm."),)
    assert receipt == Receipt(
        run_id=run, seq=record.seq, entry_id=record.entry_id, head_hash=header.head_hash
    )
    await sound(store, run)


async def test_run_6_message_of_parts(store: Store, crew: Crew) -> None:
    """Texts and values reach the model as they were passed."""
    run = await admit(store, agent())
    parts: list[JsonLike] = [
        {"kind": "text", "text": "Look:"},
        {"kind": "json", "value": {"n": [1, None]}},
    ]
    await send(store, run, scope=ACME, message=parts)
    model = FakeModel().turn(text="Seen.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)

    assert only(model.requests).messages[-1].parts == (
        TextPart(text="Look:"),
        JsonPart(value={"n": [1, None]}),
    )


async def test_r_18_next_run_to_a_settled_thread_takes_what_its_last_run_had(
    store: Store, crew: Crew
) -> None:
    """Version, scope, priority, deadline and deltas; whichever Run of the thread is named."""
    model = FakeModel().turn(text="One.").turn(text="Two.").turn(text="Three.")
    await crew.start(runtime(store, model))
    scope = ACME.model_copy(update={"principal": "ann"})
    run = await admit(store, agent(), scope=scope, priority=3, deadline_seconds=77.0, deltas=True)
    await run_to_end(store, run)
    second = await send(store, run, scope=ACME, message="2?", queue="next_run", by="bob")
    await run_to_end(store, second.run_id)
    third = await send(store, run, scope=ACME, message="3?", queue="next_run")
    await run_to_end(store, third.run_id)

    first = only(await of_type(store, run, RunAdmitted))
    record = only(await of_type(store, second.run_id, RunAdmitted))
    header = await store.header(ACME.tenant, third.run_id)
    assert (record.version, record.scope, record.priority) == (first.version, scope, 3)
    assert (record.deadline_seconds, record.deltas) == (77.0, True)
    assert (record.by, record.input) == ("bob", {"message": "2?"})
    assert (header.thread, header.position, header.previous) == (run, 3, second.run_id)
    assert texts_of(model.requests[-1].messages) == ["Go.", "One.", "2?", "Two.", "3?"]


# What is refused


@pytest.mark.parametrize("queue", ["steer", "follow_up"])
async def test_run_6_send_to_a_settled_run(store: Store, crew: Crew, queue: Queue) -> None:
    """A typed error that says how to go on; nothing was written."""
    run = await settled(store, crew)
    before = await store.header(ACME.tenant, run)
    with pytest.raises(RunSettled, match="next_run"):
        await send(store, run, scope=ACME, message="Hm.", queue=queue)

    assert await store.header(ACME.tenant, run) == before


@pytest.mark.parametrize("queue", ["steer", "follow_up"])
async def test_run_6_send_to_a_stopping_run(store: Store, queue: Queue) -> None:
    """It reads nothing more; only what is for the next Run is taken."""
    run = await admit(store, agent())
    await interrupt(store, run, scope=ACME)
    with pytest.raises(RunStopping, match="next_run"):
        await send(store, run, scope=ACME, message="Hm.", queue=queue)

    assert (await send(store, run, scope=ACME, message="Hm.", queue="next_run")).run_id == run


async def test_run_6_a_repetition_gets_its_receipt_when_the_run_has_settled(
    store: Store, crew: Crew
) -> None:
    """ADM-2: the key is looked at before the state is; another request is refused."""
    run = await admit(store, agent())
    first = await send(store, run, scope=ACME, message="Hm.", key="k")
    await crew.start(runtime(store, FakeModel().turn(text="One.")))
    await run_to_end(store, run)

    assert await send(store, run, scope=ACME, message="Hm.", key="k") == first
    parts: list[JsonLike] = [{"kind": "text", "text": "Hm."}]
    assert await send(store, run, scope=ACME, message=parts, key="k") == first
    others: Sequence[tuple[str, Queue, str | None]] = (
        ("Hm!", "steer", None),
        ("Hm.", "follow_up", None),
        ("Hm.", "steer", "ann"),
    )
    for message, queue, by in others:
        with pytest.raises(IdempotencyConflict) as caught:
            await send(store, run, scope=ACME, message=message, queue=queue, by=by, key="k")
        assert (caught.value.key, caught.value.run_id) == ("k", run)


async def test_adm_2_key_of_an_interrupt_is_no_key_of_a_message(store: Store) -> None:
    """Keys of one Run are in one place: who takes the same for another request learns it."""
    run = await admit(store, agent())
    await interrupt(store, run, scope=ACME, key="k")
    with pytest.raises(IdempotencyConflict):
        await send(store, run, scope=ACME, message="Hm.", queue="next_run", key="k")


@pytest.mark.parametrize("queue", QUEUES)
async def test_ten_4_run_of_another_tenant_is_no_run(store: Store, queue: Queue) -> None:
    """Neither for a message nor for its cancelling."""
    run = await admit(store, agent())
    receipt = await send(store, run, scope=ACME, message="Hm.", queue=queue)
    with pytest.raises(RunNotFound):
        await send(store, run, scope=GLOBEX, message="Hm.", queue=queue)
    with pytest.raises(RunNotFound):
        await cancel(store, run, str(receipt.entry_id), scope=GLOBEX)


@pytest.mark.parametrize(
    "message",
    [
        "",
        [],
        [{"kind": "text", "text": ""}],
        [{"kind": "text"}],
        [{"kind": "smell", "text": "x"}],
        ["x"],
        [{"kind": "json", "value": float("nan")}],
        "\ud800",
        b"x",
        None,
        {"kind": "text", "text": "x"},
    ],
)
async def test_log_5_message_that_is_none(store: Store, message: str) -> None:
    """Typed, before anything is written."""
    run = await admit(store, agent())
    with pytest.raises(InvalidPayload) as caught:
        await send(store, run, scope=ACME, message=message)

    assert caught.value.what == "message"
    assert (await store.header(ACME.tenant, run)).head == 1


async def test_str_1_other_arguments_that_are_none(store: Store) -> None:
    """A queue, an actor, a key, an entry."""
    run = await admit(store, agent())
    wrong: list[tuple[str, dict[str, object]]] = [
        ("queue", {"queue": "later"}),
        ("by", {"by": ""}),
        ("by", {"by": " \t\n"}),
        ("key", {"key": "next:x"}),
    ]
    for what, options in wrong:
        with pytest.raises(InvalidArgument) as caught:
            await send(store, run, scope=ACME, message="Hm.", **options)  # type: ignore[arg-type]
        assert caught.value.what == what
    with pytest.raises(InvalidArgument):
        await cancel(store, run, None, scope=ACME)  # type: ignore[arg-type]
    assert (await store.header(ACME.tenant, run)).head == 1


@pytest.mark.parametrize("queue", QUEUES)
async def test_r_30_message_at_the_bound_is_taken_and_above_it_refused(
    store: Store, crew: Crew, queue: Queue
) -> None:
    """One byte decides; a megabyte is refused alike, and nothing was written."""
    run = await admit(store, agent())
    for text in ("x" * 1_000_000, text_of(MAX_CONTENT_BYTES + 1)):
        with pytest.raises(PayloadTooLarge) as caught:
            await send(store, run, scope=ACME, message=text, queue=queue)
        assert caught.value.bound_bytes == MAX_CONTENT_BYTES
    assert (await store.header(ACME.tenant, run)).head == 1
    text = text_of(MAX_CONTENT_BYTES)
    await send(store, run, scope=ACME, message=text, queue=queue)
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)
    tail = await store.tail(ACME.tenant, run)
    assert tail is not None
    await run_to_end(store, tail.run_id)

    assert texts_of(model.requests[-1].messages)[-1] == text


# How much a Run holds


async def test_r_18_queues_hold_64_messages_together(store: Store) -> None:
    """One more is refused, in any queue, until one is taken back."""
    run = await admit(store, agent())
    receipts = [
        await send(store, run, scope=ACME, message=f"{n}", queue=QUEUES[n % 3]) for n in range(64)
    ]
    for queue in QUEUES:
        with pytest.raises(QueueFull) as caught:
            await send(store, run, scope=ACME, message="65", queue=queue)
        assert (caught.value.run_id, caught.value.reason, caught.value.bound) == (
            run,
            "entries",
            64,
        )
    await cancel(store, run, str(receipts[0].entry_id), scope=ACME)
    await send(store, run, scope=ACME, message="65")

    assert len((await store.header(ACME.tenant, run)).open) == 64


async def test_r_18_messages_for_the_next_run_fit_into_one_input(store: Store, crew: Crew) -> None:
    """The last that does is taken, one byte more is not; the other queues do not count."""
    run = await admit(store, agent())
    await send(store, run, scope=ACME, message="x" * 200_000, queue="steer")
    await send(store, run, scope=ACME, message="x" * 200_000, queue="next_run")
    two = [{"kind": "text", "text": "x" * 200_000}, {"kind": "text", "text": ""}]
    rest = MAX_CONTENT_BYTES - len(json.dumps({"message": two}, separators=(",", ":")))
    with pytest.raises(QueueFull) as caught:
        await send(store, run, scope=ACME, message="y" * (rest + 1), queue="next_run")
    assert (caught.value.reason, caught.value.bound) == ("bytes", MAX_CONTENT_BYTES)
    await send(store, run, scope=ACME, message="y" * rest, queue="next_run")
    model = FakeModel().turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)
    tail = await store.tail(ACME.tenant, run)
    assert tail is not None
    await run_to_end(store, tail.run_id)

    assert texts_of(model.requests[-1].messages)[-1] == "x" * 200_000 + "y" * rest


# Threads that cannot go on


async def test_log_3_thread_whose_last_run_is_corrupt(store: Store) -> None:
    """Nothing can follow in its log, and nothing behind it."""
    run = await admit(store, agent())
    await mark_corrupt(store, run)
    for queue in QUEUES:
        with pytest.raises(CorruptLog) as caught:
            await send(store, run, scope=ACME, message="Hm.", queue=queue)
        assert caught.value.run_id == run
    assert len((await store.list_runs(ACME.tenant)).headers) == 1


async def test_r_11_thread_whose_last_run_is_erased(store: Store, crew: Crew) -> None:
    """What it would go on with is gone."""
    run = await settled(store, crew)
    await erase(store, run, scope=ACME, by="ann")
    with pytest.raises(ContentErased) as caught:
        await send(store, run, scope=ACME, message="Hm.", queue="next_run")

    assert caught.value.run_id == run
    assert len((await store.list_runs(ACME.tenant)).headers) == 1
    with pytest.raises(RunSettled, match="has been erased; begin another thread"):
        await send(store, run, scope=ACME, message="Hm.")


@pytest.mark.parametrize(
    "part", [{"kind": "text", "text": "a", "x": 1}, {"kind": "json", "value": 1, "text": "a"}]
)
async def test_r_18_a_part_has_no_unknown_members(store: Store, part: dict[str, JsonLike]) -> None:
    """Nobody would read them; the error names those that there are."""
    run = await admit(store, agent())
    version = (await store.header(ACME.tenant, run)).version
    parts: list[JsonLike] = [{"kind": "text", "text": "Hm."}, part]
    with pytest.raises(InvalidPayload, match=r"part 1: unknown member '(x|text)'; (text|json) has"):
        await send(store, run, scope=ACME, message=parts)
    with pytest.raises(InvalidPayload, match="part 1: unknown member"):
        await dispatch(store, version, scope=ACME, input={"message": parts})
    assert len(await records_of(store, run)) == 1
    assert len((await store.list_runs(ACME.tenant)).headers) == 1


# cancel


@pytest.mark.parametrize("queue", QUEUES)
async def test_r_18_cancelled_message_is_never_read(store: Store, crew: Crew, queue: Queue) -> None:
    """By none of the Runs; the log says who took it back."""
    run = await admit(store, agent())
    receipt = await send(store, run, scope=ACME, message="No.", queue=queue)
    await cancel(store, run, str(receipt.entry_id), scope=ACME, by="bob")
    model = FakeModel().turn(text="One.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)

    record = only(await of_type(store, run, QueueCancelled))
    assert (record.entry_id, record.by) == (receipt.entry_id, "bob")
    assert texts_of(only(model.requests).messages) == ["Go."]
    assert len((await store.list_runs(ACME.tenant)).headers) == 1


async def test_adm_2_key_of_a_cancel(store: Store) -> None:
    """The same request gives the same receipt; without a key it says that it is cancelled."""
    run = await admit(store, agent())
    entry, other = [
        str((await send(store, run, scope=ACME, message="No.")).entry_id) for _ in range(2)
    ]
    first = await cancel(store, run, entry, scope=ACME, key="k")

    assert await cancel(store, run, entry, scope=ACME, key="k") == first
    with pytest.raises(EntryOver) as caught:
        await cancel(store, run, entry, scope=ACME)
    assert caught.value.reason == "cancelled"
    with pytest.raises(IdempotencyConflict):
        await cancel(store, run, other, scope=ACME, key="k")
    assert len(await of_type(store, run, QueueCancelled)) == 1


async def test_r_18_cancel_says_why_it_is_too_late(store: Store, crew: Crew) -> None:
    """Consumed, passed on to the next Run, or left by a Run that was stopped."""
    run = await admit(store, agent())
    stopped = await admit(store, agent())
    read = await send(store, run, scope=ACME, message="1")
    passed = await send(store, run, scope=ACME, message="2", queue="next_run")
    left = await send(store, stopped, scope=ACME, message="3")
    await interrupt(store, stopped, scope=ACME)
    model = FakeModel().turn(text="One.").turn(text="Two.").turn(text="Three.")
    await crew.start(runtime(store, model))
    await run_to_end(store, run)
    await run_to_end(store, stopped)
    tail = await store.tail(ACME.tenant, run)
    assert tail is not None
    await run_to_end(store, tail.run_id)
    began = await send(store, run, scope=ACME, message="4", queue="next_run")

    late = [
        (run, read, "consumed"),
        (run, passed, "passed_on"),
        (stopped, left, "left"),
        (began.run_id, began, "passed_on"),
        (tail.run_id, began, "passed_on"),
    ]
    for named, receipt, reason in late:
        with pytest.raises(EntryOver) as caught:
            await cancel(store, named, str(receipt.entry_id), scope=ACME)
        assert (caught.value.run_id, caught.value.entry_id, caught.value.reason) == (
            named,
            receipt.entry_id,
            reason,
        )


async def test_r_18_cancel_of_what_the_run_was_never_sent(store: Store) -> None:
    """Another Run's message, an approval, no id at all: none is told from the others."""
    run = await admit(store, agent())
    other = await admit(store, agent())
    receipt = await send(store, other, scope=ACME, message="1")
    for entry in (str(receipt.entry_id), System().new_id("ent"), System().new_id("apr"), "", "x"):
        with pytest.raises(EntryNotFound) as caught:
            await cancel(store, run, entry, scope=ACME)
        assert (caught.value.run_id, caught.value.entry_id) == (run, entry)
    assert (await store.header(ACME.tenant, run)).head == 1


async def test_log_3_cancel_in_a_corrupt_run(store: Store) -> None:
    """Nothing can follow in its log."""
    run = await admit(store, agent())
    receipt = await send(store, run, scope=ACME, message="1")
    await mark_corrupt(store, run)
    for entry in (str(receipt.entry_id), System().new_id("ent")):
        with pytest.raises(CorruptLog):
            await cancel(store, run, entry, scope=ACME)
