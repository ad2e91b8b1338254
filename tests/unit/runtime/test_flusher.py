"""The flusher alone: one commit for many Runs, one flight per Run, doubt (R-20, R-22)."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import Context

import pytest

from psych_runtime.core.codec import decode
from psych_runtime.errors import CorruptLog, StoreUnavailable
from psych_runtime.ports.answers import Answer, LeaseLost, SeqConflict, ThreadTaken
from psych_runtime.ports.store import Unit
from psych_runtime.runtime.flusher import Flusher
from psych_runtime.runtime.signals import Lost, Stale
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RecordRow, RunRow
from tests.unit.runtime.made import (
    TENANT,
    Made,
    advisory,
    compacted,
    compacting,
    ended,
    held,
    settled,
    steer,
    types_of,
    write,
    write_hidden,
)


class Told(MemoryStore):
    """A store whose next answers a test may choose; `batches` are what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.instead: list[Answer | Exception] = []
        self.after: list[Exception | Answer] = []
        self.listening = False
        self.lost_reads = 0
        self.lost_headers = 0

    async def header(self, tenant: str, run_id: str) -> RunRow:
        if self.lost_headers:
            self.lost_headers -= 1
            raise StoreUnavailable(problem="gone")
        return await super().header(tenant, run_id)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        if self.lost_reads:
            self.lost_reads -= 1
            raise StoreUnavailable(problem="gone")
        return await super().read(tenant, run_id, after=after, limit=limit)

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        if not self.listening:
            return await super().commit(units)
        self.batches.append([unit.commit_id for unit in units])
        await asyncio.sleep(0)
        if self.instead:
            return self._say(self.instead.pop(0), units)
        answers = await super().commit(units)
        return self._say(self.after.pop(0), units) if self.after else answers

    def _say(self, answer: Answer | Exception, units: Sequence[Unit]) -> list[Answer]:
        if isinstance(answer, Exception):
            raise answer
        return [answer for _ in units]


class Flushing:
    """A flusher over `Told`, with its tasks."""

    def __init__(self) -> None:
        self.store = Told()
        self.tasks: set[asyncio.Task[None]] = set()
        self.flusher = Flusher(self.store, self._spawn, Context())

    def _spawn(self, work: Coroutine[None, None, None]) -> object:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        return task

    async def run(self) -> Made:
        """Return a Run that is flushed here."""
        self.store.listening = False
        made = await held(self.store, self.flusher)
        self.store.listening = True
        return made


async def idle(*runs: Made) -> None:
    """Wait until everything is written."""
    async with asyncio.timeout(10):
        while not all(made.journal.idle() for made in runs):
            await asyncio.sleep(0.005)


async def test_r_22_flushes_of_one_step_are_one_commit() -> None:
    """Three Runs, several notes each: three units, one commit."""
    flushing = Flushing()
    runs = [await flushing.run() for _ in range(3)]
    for made in runs:
        made.journal.note(advisory(made.run))
        made.journal.note(advisory(made.run))
    await idle(*runs)

    assert [len(batch) for batch in flushing.store.batches] == [3]
    for made in runs:
        assert (await types_of(made))[2:] == ["advisory.added"] * 2


async def test_r_22_one_flush_is_in_flight_for_a_run() -> None:
    """What comes meanwhile waits and goes together."""
    flushing = Flushing()
    made = await flushing.run()
    made.journal.note(advisory(made.run))
    await asyncio.sleep(0)
    for _ in range(5):
        made.journal.note(advisory(made.run))
    await idle(made)

    assert len(flushing.store.batches) == 2
    assert (await types_of(made))[2:] == ["advisory.added"] * 6


async def test_r_20_unit_in_doubt_is_sent_again_unchanged() -> None:
    """It was not stored: the repetition is; the id is the same."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.instead.append(StoreUnavailable(problem="gone"))
    await made.journal.decide(ended(made.run))

    first, second = flushing.store.batches
    assert first == second
    assert (await types_of(made))[2:] == ["attempt.ended"]


async def test_r_20_unit_that_was_stored_is_recognised() -> None:
    """It was stored, and its acknowledgement lost: the repetition meets itself."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.after.append(StoreUnavailable(problem="gone"))
    await made.journal.decide(ended(made.run))

    assert (await types_of(made))[2:] == ["attempt.ended"]


async def test_r_20_stored_unit_is_recognised_whatever_it_is_answered() -> None:
    """A repetition that is refused for its linked half has landed all the same."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.after.append(SeqConflict("run_of_the_linked_admission"))
    await made.journal.decide(settled(made.run))

    assert (await types_of(made))[2:] == ["run.settled"]
    assert made.journal.lost is None


async def test_r_20_refusal_for_a_linked_half_is_stale() -> None:
    """Nothing landed: the caller looks again; notes are written."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.instead.append(ThreadTaken("thread", 2))
    made.journal.note(advisory(made.run))
    with pytest.raises(Stale):
        await made.journal.decide(ended(made.run))
    await idle(made)

    assert (await types_of(made))[2:] == ["advisory.added"]


async def test_r_20_conflict_with_nothing_to_read_is_no_end() -> None:
    """A decision is never left without an answer."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.instead.append(SeqConflict(made.run))
    async with asyncio.timeout(10):
        with pytest.raises(Stale):
            await made.journal.decide(ended(made.run))
        await made.journal.decide(ended(made.run))

    assert (await types_of(made))[2:] == ["attempt.ended"]


async def test_r_20_foreign_record_makes_a_decision_stale_and_is_folded() -> None:
    """The store says conflict, the log says why."""
    flushing = Flushing()
    made = await flushing.run()
    await write(made, steer(made.run))
    with pytest.raises(Stale):
        await made.journal.decide(ended(made.run))

    assert made.journal.state.any("entry", "queued")


async def test_r_4_lost_lease_ends_the_journal() -> None:
    """Nothing is sent any more."""
    flushing = Flushing()
    made = await flushing.run()
    flushing.store.instead.append(LeaseLost(made.run))
    with pytest.raises(Lost):
        await made.journal.decide(ended(made.run))

    assert len(flushing.store.batches) == 1


async def test_r_20_run_that_is_lost_does_not_go_again_with_its_company() -> None:
    """The batch is repeated without it."""
    flushing = Flushing()
    stays, goes = await flushing.run(), await flushing.run()
    flushing.store.instead.append(StoreUnavailable(problem="gone"))
    stays.journal.note(advisory(stays.run))
    goes.journal.note(advisory(goes.run))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    goes.journal.lose(Lost("taken"))
    await idle(stays)

    assert [len(batch) for batch in flushing.store.batches] == [2, 1]
    assert (await types_of(goes))[2:] == []


async def test_r_22_unit_that_the_store_cannot_take_harms_no_other() -> None:
    """The batch is taken apart; only the bad one is lost, with the error that says why."""
    flushing = Flushing()
    good, bad = await flushing.run(), await flushing.run()
    problem = ValueError("this cannot be stored")
    flushing.store.instead += [problem, problem]
    bad.journal.note(advisory(bad.run))
    good.journal.note(advisory(good.run))
    await idle(good)

    assert bad.journal.lost is problem
    assert (await types_of(good))[2:] == ["advisory.added"]


async def test_r_20_read_that_fails_is_tried_again() -> None:
    """A nudge that cannot be followed yet is not forgotten."""
    flushing = Flushing()
    made = await flushing.run()
    await write(made, steer(made.run))
    flushing.store.lost_reads = 2
    made.journal.nudge()
    async with asyncio.timeout(10):
        while not made.kicks:
            await asyncio.sleep(0.005)

    assert made.journal.state.any("entry", "queued")


async def test_r_16_record_in_a_form_of_a_newer_build_is_passed_as_the_header_says() -> None:
    """What stood in front of it is folded, what stands behind it is not; notes go behind all."""
    flushing = Flushing()
    made = await flushing.run()
    before, behind = steer(made.run), steer(made.run)
    flushing.store.listening = False
    await write(made, before)
    hidden = await write_hidden(made)
    await write(made, behind)
    flushing.store.listening = True
    flushing.store.lost_headers = 2
    made.journal.note(advisory(made.run))
    with pytest.raises(Stale):
        await made.journal.decide(ended(made.run))
    await idle(made)

    assert made.kicks
    assert made.journal.needs_version == 2
    assert made.journal.lost is None
    assert list(made.journal.state.ids("entry", "queued")) == [before.entry_id]
    rows = await flushing.store.read(TENANT, made.run, after=3)
    assert [row.type for row in rows] == ["queue.enqueued", "queue.enqueued", "advisory.added"]
    last, own = (decode(row) for row in rows[1:])
    assert (last.record.prev, own.record.prev) == (hidden, last.hash)


async def test_r_22_decision_that_its_log_cannot_hold_ends_its_own_run_only() -> None:
    """A compaction up to nowhere: its caller is told, other Runs of the commit go on."""
    flushing = Flushing()
    bad, good = await flushing.run(), await flushing.run()
    bad.journal.note(*compacting(bad.run))
    await idle(bad)
    before = len(flushing.store.batches)
    wrong = asyncio.create_task(bad.journal.decide(compacted(bad.run)))
    right = asyncio.create_task(good.journal.decide(ended(good.run)))
    async with asyncio.timeout(10):
        with pytest.raises(CorruptLog):
            await wrong
        await right
    await idle(bad, good)

    assert [len(batch) for batch in flushing.store.batches[before:]] == [2]
    assert isinstance(bad.journal.lost, CorruptLog)
    assert bad.journal.lost.reason == "upto_unknown"
