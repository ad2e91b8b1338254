"""How an attempt writes: `note` what has happened, `decide` what must stand first (R-2).

A note is folded at once and flushed in the background, never dropped; a decision is a barrier
behind the notes and folded when committed. Both live on the executor's loop.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from psych_runtime._system import System
from psych_runtime.core.awaited import Awaited
from psych_runtime.core.codec import Entry, Position, decode, outline, outline_commit, sealing
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import Changes, RunState, advance, step
from psych_runtime.core.header import header_change
from psych_runtime.core.streaks import Streaks
from psych_runtime.errors import CorruptLog, LogError, NewerRecord
from psych_runtime.ports.store import (
    MAX_UNIT_BYTES,
    MAX_UNIT_RECORDS,
    Admit,
    Change,
    Sealed,
    Unit,
)
from psych_runtime.runtime.signals import Lost, Stale
from psych_schema.record import Record
from psych_schema.store import KeyRow, RecordRow

__all__ = ["Flushes", "Journal", "Linked"]

_SPARE_BYTES: Final = 100_000  # of a unit's bound, for headers and keys


type Linked = Callable[[str], Sequence[Change | Admit]]
"""Makes the linked changes of a unit, given its commit id."""


class Flushes(Protocol):
    """Who sends what a journal has."""

    def dirty(self, journal: "Journal") -> None:
        """Flush at the end of this loop step."""


class _Noted(NamedTuple):
    record: Record
    changes: Changes


class _Decision(NamedTuple):
    written: tuple[_Noted, ...]
    looked: int  # which state it was judged by
    linked: Linked | None
    keys: tuple[KeyRow, ...]
    done: asyncio.Future[None]


class _Flight(NamedTuple):
    """A unit that was sent and whose fate is not known."""

    unit: Unit
    end: Position
    notes: int
    decisions: tuple[_Decision, ...]
    looked: int  # which state the decisions were judged by


class Journal:
    """One attempt's pen: the live state, what is not written yet, and the flight."""

    def __init__(
        self,
        *,
        tenant: str,
        run_id: str,
        epoch: int,
        crashes: int,
        state: RunState,
        conversation: Conversation,
        awaited: Awaited,
        streaks: Streaks,
        flushes: Flushes,
        system: System,
        on_foreign: Callable[[], None],
    ) -> None:
        self.tenant = tenant
        self.run_id = run_id
        self.epoch = epoch
        self.state = state
        self.conversation = conversation
        self.awaited = awaited
        self.streaks = streaks
        self.lost: Exception | None = None
        self.needs_version: int | None = None  # a newer build writes to this Run, too
        self.busy = False  # a flush or a read is under way
        self._crashes = crashes
        self._flushes = flushes
        self._system = system
        self._on_foreign = on_foreign
        self._notes: list[_Noted] = []
        self._decisions: list[_Decision] = []
        self._flight: _Flight | None = None
        self._look = False
        self._moves = 0  # of the state: what was judged after the last needs no other look

    # what the attempt calls

    def note(self, *records: Record) -> None:
        """Fold what has happened; it will be written. Raises Lost, CorruptLog for a bug."""
        self._raise_if_lost()
        self._moves += 1
        for record in records:
            changes = step(self.state, record)
            self.state.apply(record, changes)
            self._hear(record)
            self._notes.append(_Noted(record, changes))
        self._flushes.dirty(self)

    def _hear(self, record: Record) -> None:
        self.conversation.add(record)
        self.awaited.add(record)
        self.streaks.add(record)

    async def decide(
        self,
        *records: Record,
        linked: Linked | None = None,
        keys: Sequence[KeyRow] = (),
    ) -> None:
        """Write `records`, and in the same unit what `linked` makes of its id, or raise.

        Raises Stale when somebody else wrote first, Lost when the Run is gone, CorruptLog for a
        decision that the state forbids. Cancelling the caller does not take it back.
        """
        self._raise_if_lost()
        _, written = _try(self.state, records)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)
        decision = _Decision(written, self._moves, linked, tuple(keys), done)
        self._decisions.append(decision)
        self._flushes.dirty(self)
        await asyncio.shield(done)

    def nudge(self) -> None:
        """Somebody wrote: read it soon."""
        self._look = True
        self._flushes.dirty(self)

    def deaf(self) -> None:
        """Tell nobody any more what others write: a journal and its attempt name each other."""
        self._on_foreign = _nobody

    def lose(self, why: Exception) -> None:
        """Give the Run up: nothing more is written, every decision fails."""
        if self.lost is not None:
            return
        self.lost = why
        pending = [*self._decisions, *(self._flight.decisions if self._flight else ())]
        for decision in pending:
            _fail(decision, why)
        self._decisions = []
        self._flight = None
        self._on_foreign()

    def _raise_if_lost(self) -> None:
        if self.lost is not None:
            raise Lost(str(self.lost)) from self.lost

    # what the flusher calls

    @property
    def position(self) -> Position:
        """The head as far as this attempt knows it."""
        return self.state.position

    def pending(self) -> bool:
        """Tell whether there is something to send or to look at, and nobody at it."""
        waiting = self._notes or self._decisions or self._look
        return not self.busy and self.lost is None and bool(waiting)

    def idle(self) -> bool:
        """Tell whether everything is written."""
        return not (self.busy or self._notes or self._decisions or self._flight)

    def unwritten(self) -> list[Record]:
        """Return the notes that are not known to be written, in order."""
        return [noted.record for noted in self._notes]

    def build(self) -> Unit | None:
        """Return the next unit: notes first, then every decision; None for a look only."""
        self._look = False
        notes = self._notes[:MAX_UNIT_RECORDS]
        room = MAX_UNIT_RECORDS - len(notes)
        wanted = sum(len(d.written) for d in self._decisions)
        whole = len(notes) == len(self._notes) and wanted <= room
        decisions = tuple(self._decisions) if whole else ()
        written, decisions = self._judge(notes, decisions)
        if not written:
            return None
        commit_id = self._system.new_id("com")
        sealed = self._seal(written, commit_id)
        if len(sealed) < len(written):
            decisions = ()
            sealed = sealed[: len(notes)]
        written = written[: len(sealed)]
        change = Change(
            self.run_id,
            self.position.seq,
            self.epoch,
            tuple(sealed),
            header_change(written, first_seq=self.position.seq + 1, crashes=self._crashes),
        )
        linked = [one for d in decisions if d.linked for one in d.linked(commit_id)]
        unit = Unit(
            commit_id, self.tenant, (change, *linked), tuple(k for d in decisions for k in d.keys)
        )
        last = sealed[-1]
        end = Position(last.record.seq, last.hash, last.record.at)
        self._flight = _Flight(unit, end, min(len(notes), len(sealed)), decisions, self._moves)
        if decisions:
            self._decisions = []
        return unit

    def _judge(
        self, notes: list[_Noted], decisions: tuple[_Decision, ...]
    ) -> tuple[list[_Noted], tuple[_Decision, ...]]:
        """Step the decisions behind the notes; one that is illegal by now is stale."""
        if len(decisions) == 1 and decisions[0].looked == self._moves:
            return [*notes, *decisions[0].written], decisions
        written = list(notes)
        kept: list[_Decision] = []
        trial = self.state
        for decision in decisions:
            try:
                trial, judged = _try(trial, [record for record, _ in decision.written])
            except CorruptLog:
                self._decisions.remove(decision)
                _fail(decision, Stale())
                continue
            written += judged
            kept.append(decision._replace(written=judged))
        return written, tuple(kept)

    def _seal(self, written: list[_Noted], commit_id: str) -> list[Sealed]:
        pen = sealing(
            [record for record, _ in written],
            self.position,
            tenant=self.tenant,
            epoch=self.epoch,
            commit_id=commit_id,
            salts=iter(self._system.salt, ""),
        )
        sealed: list[Sealed] = []
        room = MAX_UNIT_BYTES - _SPARE_BYTES
        for one in pen:
            room -= len(one.row.body) + 4 * len(one.row.content or "")
            if room < 0 and sealed:
                break
            sealed.append(one)
        return sealed

    def landed(self, unit: Unit) -> None:
        """The store says that `unit` is committed."""
        if self._flight is not None and self._flight.unit.commit_id == unit.commit_id:
            self._land(self._flight)

    def refused(self, unit: Unit) -> None:
        """`unit` cannot land as it is: its decisions are stale, its notes stay."""
        if self._flight is not None and self._flight.unit.commit_id == unit.commit_id:
            flight, self._flight = self._flight, None
            for decision in flight.decisions:
                _fail(decision, Stale())

    def absorb(self, rows: Sequence[RecordRow]) -> None:
        """Take what stands behind the head: the own flight, or what others wrote.

        Raises NewerRecord for a row that does not even tell its hash: `pass_over` it.
        """
        foreign = False
        for row in rows:
            if self.lost is not None:
                return
            flight = self._flight
            if flight is not None and outline_commit(row) == flight.unit.commit_id:
                if row.seq == flight.end.seq:
                    self._land(flight)
                continue
            try:
                foreign |= self._absorb_foreign(row)
            except NewerRecord:
                raise
            except LogError as error:
                self.lose(error)
        if foreign:
            self._stale()

    def pass_over(self, newer: NewerRecord, head: Position) -> None:
        """Leave what others wrote up to `head` to a build that reads it (R-16)."""
        self.needs_version = newer.needs_version
        self.state.position = head
        self._stale()

    def _absorb_foreign(self, row: RecordRow) -> bool:
        about = outline(row)
        if about.epoch > self.epoch:
            self.lose(Lost(f"run {self.run_id} is at epoch {about.epoch}"))
            return False
        if about.epoch == self.epoch:
            raise CorruptLog(reason="own_epoch_not_own", run_id=self.run_id, seq=row.seq)
        if self.needs_version is not None:  # it may follow from what is not in this state
            self.state.position = about.position
            return True
        try:
            entry: Entry = decode(row)
        except NewerRecord as newer:
            self.needs_version = newer.needs_version
            self.state.position = about.position
            return True
        self._moves += 1
        advance(self.state, entry)
        self._hear(entry.record)
        return True

    def _land(self, flight: _Flight) -> None:
        """Take what is committed; what the log cannot hold, though it does, is the Run's end."""
        self.state.position = flight.end
        del self._notes[: flight.notes]
        moved = self._moves != flight.looked  # by notes, meanwhile
        self._moves += len(flight.decisions)
        for decision in flight.decisions:
            try:
                for record, changes in decision.written:
                    self.state.apply(record, step(self.state, record) if moved else changes)
                    self._hear(record)
            except CorruptLog as error:
                self.lose(error)  # this decision and those behind it fail
                return
            if not decision.done.done():
                decision.done.set_result(None)
        self._flight = None

    def _stale(self) -> None:
        """Others wrote: what was sent can never land, every decision is judged anew."""
        stale = [*self._decisions, *(self._flight.decisions if self._flight else ())]
        self._flight = None
        self._decisions = []
        for decision in stale:
            _fail(decision, Stale())
        self._on_foreign()


def _try(state: RunState, records: Iterable[Record]) -> tuple[RunState, tuple[_Noted, ...]]:
    """Return the state after `records`, `state` stays as it is. Raises CorruptLog."""
    trial = state.overlay()
    written: list[_Noted] = []
    for record in records:
        changes = step(trial, record)
        trial.apply(record, changes)
        written.append(_Noted(record, changes))
    return trial, tuple(written)


def _nobody() -> None:
    """Hear, and do nothing."""


def _fail(decision: _Decision, why: Exception) -> None:
    if not decision.done.done():
        decision.done.set_exception(why)


def _retrieve(done: asyncio.Future[None]) -> None:
    """Mark an error as seen: a decision whose caller was cancelled has nobody to tell."""
    if not done.cancelled():
        done.exception()
