"""What an attempt did with its journal and what it was told: the model that a log is held to."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from psych_runtime._system import System
from psych_runtime.core.awaited import Awaited
from psych_runtime.core.codec import decode
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance, step
from psych_runtime.core.streaks import Streaks
from psych_runtime.errors import CorruptLog
from psych_runtime.runtime.journal import Flushes, Journal, Linked
from psych_runtime.runtime.signals import Lost, Stale
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record, ToolStarted
from psych_schema.store import KeyRow, RecordRow
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.logs import copied
from tests.unit.core.walk import propose

__all__ = ["Decided", "Pen", "Told"]

TENANT = "acme"
ENDS = ("run.settled", "run.suspended", "attempt.ended")
SAYS = {
    "queue.consumed",
    "advisory.added",
    "model.completed",
    "tool.completed",
    "tool.refused",
    "context.compacted",
}
"""What the conversation is made of."""

OF_ATTEMPT = [
    kind
    for kind, row in TRANSITIONS.items()
    if row.by[0] == "attempt" and kind not in ("attempt.started", *ENDS)
]
NOTES = [kind for kind in OF_ATTEMPT if TRANSITIONS[kind].mode != "decision"]


class Told:
    """A log as it stands in the store, judged row by row."""

    def __init__(self) -> None:
        self.states = [RunState()]
        self.records: list[Record] = []
        self.seqs: dict[str, int] = {}

    @property
    def state(self) -> RunState:
        return self.states[-1]

    def read(self, rows: list[RecordRow]) -> None:
        """Take the rows behind those that are known. CorruptLog: a gap, a tear, a wrong record."""
        for row in rows:
            state = copied(self.state)
            entry = decode(row)
            advance(state, entry)
            assert entry.record.id not in self.seqs, f"{entry.record.type} is there twice"
            self.seqs[entry.record.id] = entry.record.seq
            self.records.append(entry.record)
            self.states.append(state)

    def conversation(self, upto: int) -> Conversation:
        """Return what was said in the first records."""
        said = Conversation()
        for record in self.records[:upto]:
            said.add(record)
        return said


@dataclass(eq=False)
class Decided:
    """A decision, and what its caller was told."""

    records: tuple[Record, ...]
    task: "asyncio.Task[None]"
    behind: int  # how many notes stand before it
    known: int  # the head that the attempt knew
    special: bool  # it has a key, or another Run's change in its unit
    company: bool = False  # another decision was open at the same time

    def open(self) -> bool:
        return not self.task.done()

    def outcome(self) -> str:
        """Return what its caller knows."""
        if self.open():
            return "open"
        if self.task.cancelled():
            return "cancelled"
        error = self.task.exception()
        if error is None:
            return "done"
        return "stale" if isinstance(error, Stale) else "lost"


@dataclass(eq=False)
class Pen:
    """One attempt."""

    journal: Journal
    paper: LogBuilder  # proposes records for what the attempt sees
    noted: list[Record] = field(default_factory=list)
    decided: list[Decided] = field(default_factory=list)
    kicks: int = 0
    seen: int = 0  # how far it had read, and
    kicked: int = 0  # how often it was woken, when that was looked at last
    given_up: bool = False  # somebody said so, or the store broke

    @classmethod
    def made(cls, told: Told, run_id: str, flushes: Flushes, system: System) -> "Pen":
        """Return an attempt that has just claimed the Run."""
        paper = LogBuilder(system=system)
        state = copied(told.state)
        conversation = told.conversation(len(told.records))

        def kick() -> None:
            pen.kicks += 1

        journal = Journal(
            tenant=TENANT,
            run_id=run_id,
            epoch=state.epoch,
            crashes=0,
            state=state,
            conversation=conversation,
            awaited=Awaited(),
            streaks=Streaks(),
            flushes=flushes,
            system=system,
            on_foreign=kick,
        )
        paper.run_id, paper.state, paper.conversation = run_id, state, conversation
        pen = cls(journal, paper, seen=len(told.records))
        return pen

    @property
    def run_id(self) -> str:
        return self.journal.run_id

    @property
    def epoch(self) -> int:
        return self.journal.epoch

    @property
    def place(self) -> tuple[str, int]:
        return self.run_id, self.epoch

    @property
    def is_lost(self) -> bool:
        return self.journal.lost is not None

    # what it does; in the loop

    async def refuses(self) -> None:
        """Check that a Run that is lost takes nothing more."""
        record = propose(self.paper, Random(0), "memory.changed")
        assert record is not None
        with pytest.raises(Lost):
            self.journal.note(record)
        with pytest.raises(Lost):
            await self.journal.decide(record)

    def note(self, random: Random, in_flight: list[Record]) -> None:
        """Note something that has happened, if anything can have."""
        for kind in random.sample(NOTES, len(NOTES)):
            record = propose(self.paper, random, kind)
            if record is None or not self._may_note(record, in_flight):
                continue
            self.journal.note(record)
            self.noted.append(record)
            return

    def note_many(self, count: int) -> None:
        """Note so many things that forbid nothing, all at once."""
        if self.journal.state.phase != "running":
            return
        random = Random(count)
        found = (propose(self.paper, random, "memory.changed") for _ in range(count))
        records = [one for one in found if one is not None]
        self.journal.note(*records)
        self.noted += records

    def decide(
        self,
        random: Random,
        *,
        ends: bool = False,
        linked: Linked | None = None,
        keys: tuple[KeyRow, ...] = (),
    ) -> None:
        """Decide something, one record or a few, if anything can be decided."""
        records = tuple(self._batch(random, ends))
        if not records:
            return
        work = self.journal.decide(*records, linked=linked, keys=keys)
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        known, special = self.journal.position.seq, bool(linked or keys)
        made = Decided(records, task, len(self.noted), known, special)
        for one in (one for one in self.decided if one.outcome() in ("open", "cancelled")):
            one.company = made.company = True
        self.decided.append(made)

    def _batch(self, random: Random, ends: bool) -> Iterator[Record]:
        """Yield records that may follow one another."""
        if ends and any(one.open() for one in self.decided):
            return  # an attempt ends when none of its tasks lives
        trial = self.journal.state.overlay()
        for _ in range(random.choice((1, 1, 2, 3))):
            kinds = ENDS if ends else OF_ATTEMPT
            for kind in random.sample(kinds, len(kinds)):
                if kind == "context.compacted" and trial.objects != self.journal.state.objects:
                    continue  # it names what was said last, which the ones before it may change
                record = propose(self.paper, random, kind)
                if record is not None and not refused(trial, record):
                    trial.apply(record, step(trial, record))
                    yield record
                    break
            if ends:
                return

    def _may_note(self, record: Record, in_flight: list[Record]) -> bool:
        """Tell whether it can be noted now: beside what is decided and under way, in any order."""
        if isinstance(record, ToolStarted) and record.approval_id is not None:
            return False
        if refused(self.journal.state, record):
            return False
        if record.type in SAYS and any(one.type in SAYS for one in in_flight):
            return False
        one = after(self.journal.state, *in_flight, record)
        return one is not None and one == after(self.journal.state, record, *in_flight)


def after(state: RunState, *records: Record) -> RunState | None:
    """Return a state with these records in it; None when they may not follow."""
    trial = copied(state)
    try:
        for record in records:
            trial.apply(record, step(trial, record))
    except CorruptLog:
        return None
    return trial


def refused(state: RunState, record: Record) -> bool:
    """Tell whether this may not follow."""
    return after(state, record) is None
