"""The journal alone: what is folded when, units, and what others wrote (R-2, R-20)."""

import asyncio

import pytest

from psych_runtime.errors import CorruptLog
from psych_runtime.ports.answers import Committed, SeqConflict
from psych_runtime.ports.store import MAX_UNIT_BYTES, Change, Unit
from psych_runtime.runtime.signals import Lost, Stale
from psych_schema.record import Record
from tests.unit.runtime.made import (
    SYSTEM,
    TENANT,
    Made,
    advisory,
    begun,
    cancel,
    catch_up,
    ended,
    held,
    settled,
    steer,
    types_of,
    write,
)


async def deciding(made: Made, *records: Record) -> "asyncio.Task[None]":
    """Start a decision."""
    return await begun(asyncio.create_task(made.journal.decide(*records)))


def built(made: Made) -> Unit:
    """Return the next unit, which there must be."""
    unit = made.journal.build()
    assert unit is not None
    return unit


def types_in(unit: Unit) -> list[str]:
    """Return the types of a unit's own records."""
    first = unit.changes[0]
    assert isinstance(first, Change)
    return [sealed.row.type for sealed in first.records]


async def test_r_2_note_is_folded_at_once_and_written_later() -> None:
    """The live state has it before the store has."""
    made = await held()
    made.journal.note(advisory(made.run))
    assert len(made.journal.conversation.messages) == 2
    assert made.journal.position.seq == 2

    unit = built(made)
    assert await made.store.commit([unit]) == [Committed()]
    made.journal.landed(unit)
    assert made.journal.position.seq == 3
    assert made.journal.idle()


async def test_r_2_decision_is_folded_only_when_committed() -> None:
    """Until then nobody sees it, and its caller waits."""
    made = await held()
    deciding_task = await deciding(made, settled(made.run))
    unit = built(made)
    assert made.journal.state.phase == "running"
    assert not deciding_task.done()

    assert await made.store.commit([unit]) == [Committed()]
    made.journal.landed(unit)
    await deciding_task
    assert made.journal.state.phase == "settled"


async def test_r_2_decision_goes_behind_the_notes() -> None:
    """One unit, in the order in which things were said."""
    made = await held()
    made.journal.note(advisory(made.run), advisory(made.run))
    task = await deciding(made, ended(made.run))
    assert types_in(built(made)) == ["advisory.added", "advisory.added", "attempt.ended"]
    assert not task.done()


async def test_r_2_illegal_note_is_refused_and_leaves_nothing() -> None:
    """A bug of the caller is told at once."""
    made = await held()
    with pytest.raises(CorruptLog):
        made.journal.note(cancel(made.run, SYSTEM.new_id("ent")))
    assert made.journal.build() is None


async def test_r_2_illegal_decision_is_refused_at_once() -> None:
    """It never reaches a unit."""
    made = await held()
    made.journal.note(steer(made.run))  # folded like any record; completed leaves none unread
    with pytest.raises(CorruptLog):
        await made.journal.decide(settled(made.run))


async def test_r_1_units_have_at_most_ninety_records() -> None:
    """A hundred notes are two units; the decision waits for the second."""
    made = await held()
    made.journal.note(*(advisory(made.run) for _ in range(100)))
    task = await deciding(made, ended(made.run))
    first = built(made)
    assert len(types_in(first)) == 90
    await made.store.commit([first])
    made.journal.landed(first)
    second = built(made)
    assert types_in(second) == ["advisory.added"] * 10 + ["attempt.ended"]
    await made.store.commit([second])
    made.journal.landed(second)
    await task


async def test_r_1_units_are_bounded_in_bytes() -> None:
    """Large notes are spread; each unit stays under the bound, none is lost."""
    made = await held()
    made.journal.note(*(advisory(made.run, "x" * 250_000) for _ in range(20)))
    task = await deciding(made, ended(made.run))
    written: list[str] = []
    while not made.journal.idle():
        unit = built(made)
        first = unit.changes[0]
        size = sum(len(s.row.body) + len(s.row.content or "") for s in first.records)
        assert size < MAX_UNIT_BYTES
        assert await made.store.commit([unit]) == [Committed()]
        made.journal.landed(unit)
        written += types_in(unit)
    await task
    assert written == ["advisory.added"] * 20 + ["attempt.ended"]


async def test_r_20_foreign_record_first_makes_decisions_stale_and_keeps_notes() -> None:
    """The notes go again behind it, in a unit with another id."""
    made = await held()
    made.journal.note(advisory(made.run))
    task = await deciding(made, ended(made.run))
    lost = built(made)
    await write(made, steer(made.run))
    assert await made.store.commit([lost]) == [SeqConflict(made.run)]
    await catch_up(made)
    with pytest.raises(Stale):
        await task
    assert made.kicks
    assert made.journal.state.any("entry", "queued")

    again = built(made)
    assert types_in(again) == ["advisory.added"]
    assert again.commit_id != lost.commit_id
    assert await made.store.commit([again]) == [Committed()]


async def test_r_20_own_unit_is_recognised_when_read_back() -> None:
    """The acknowledgement was lost; the records say whose they are."""
    made = await held()
    made.journal.note(advisory(made.run))
    task = await deciding(made, ended(made.run))
    await made.store.commit([built(made)])
    await catch_up(made)

    await task
    assert made.journal.position.seq == 4
    assert made.journal.idle()
    assert not made.kicks


async def test_r_20_own_unit_is_recognised_before_foreign_records() -> None:
    """Landed, and then somebody wrote: both are folded, in order."""
    made = await held()
    made.journal.note(advisory(made.run))
    task = await deciding(made, advisory(made.run))
    await made.store.commit([built(made)])
    await write(made, steer(made.run))
    await catch_up(made)

    await task
    assert made.journal.position.seq == 5
    assert made.journal.state.any("entry", "queued")


async def test_r_4_record_of_a_higher_epoch_loses_the_run() -> None:
    """Somebody took it: nothing is written any more, every decision fails."""
    made = await held()
    task = await deciding(made, ended(made.run))
    await write(made, advisory(made.run), epoch=2)
    await catch_up(made)

    with pytest.raises(Lost):
        await task
    with pytest.raises(Lost):
        made.journal.note(advisory(made.run))
    assert not made.journal.pending()


async def test_r_4_record_of_the_own_epoch_by_another_hand_is_corruption() -> None:
    """Nobody else may write under it."""
    made = await held()
    await write(made, advisory(made.run), epoch=1)
    await catch_up(made)

    assert isinstance(made.journal.lost, CorruptLog)
    assert made.journal.lost.reason == "own_epoch_not_own"


async def test_r_20_refused_unit_leaves_its_notes() -> None:
    """A linked change lost: decisions are judged anew, notes are not given up."""
    made = await held()
    made.journal.note(advisory(made.run))
    task = await deciding(made, ended(made.run))
    made.journal.refused(built(made))

    with pytest.raises(Stale):
        await task
    assert types_in(built(made)) == ["advisory.added"]


async def test_r_20_refusal_of_an_older_unit_means_nothing() -> None:
    """Only what is in flight can be refused."""
    made = await held()
    made.journal.note(advisory(made.run))
    older = built(made)
    await made.store.commit([older])
    made.journal.landed(older)
    task = await deciding(made, ended(made.run))
    current = built(made)
    made.journal.refused(older)
    await made.store.commit([current])
    made.journal.landed(current)

    await task


async def test_r_2_cancelled_caller_does_not_take_a_decision_back() -> None:
    """What was decided is written; nobody is left to be told."""
    made = await held()
    task = await deciding(made, ended(made.run))
    task.cancel()
    await asyncio.wait({task})
    unit = built(made)
    await made.store.commit([unit])
    made.journal.landed(unit)

    assert await types_of(made) == ["run.admitted", "attempt.started", "attempt.ended"]
    assert made.journal.state.phase == "ready"


async def test_r_2_decision_that_a_note_made_illegal_is_stale() -> None:
    """It was legal when asked for; it is judged again behind the notes of its unit."""
    made = await held()
    task = await deciding(made, settled(made.run))
    made.journal.note(steer(made.run))
    assert types_in(built(made)) == ["queue.enqueued"]

    with pytest.raises(Stale):
        await task


async def test_r_16_newer_record_is_passed_and_remembered() -> None:
    """The head moves on, so that the attempt can still let the Run go."""
    made = await held()
    await write(made, steer(made.run).model_copy(update={"v": 7}))
    rows = await made.store.read(TENANT, made.run, after=2)
    body = rows[0].body.replace("queue.enqueued", "queue.teleported")
    newer = rows[0].model_copy(update={"type": "queue.teleported", "body": body})
    made.journal.absorb([newer])

    assert made.journal.needs_version == 7
    assert made.journal.position.seq == 3
    assert made.journal.lost is None


async def test_r_14_at_never_falls_behind_the_record_before() -> None:
    """A writer whose clock is slow is raised to the head's instant."""
    made = await held()
    slow = advisory(made.run)
    early = slow.model_copy(update={"at": slow.at.replace(year=slow.at.year - 1)})
    made.journal.note(early)
    unit = built(made)
    first = unit.changes[0]
    head = (await made.store.header(TENANT, made.run)).head_at

    assert first.records[0].record.at == head
