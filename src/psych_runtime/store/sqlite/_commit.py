"""A commit inside the writer's transaction: each unit is judged by reads, then written (R-1).

So a unit that is refused has written nothing, and no savepoint is needed. Ordinary changes
touch no indexed column.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from psych_runtime.ports.answers import (
    Answer,
    CapReached,
    Committed,
    KeyTaken,
    LeaseLost,
    RunNotFound,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.store import (
    UNSET,
    Admit,
    After,
    Change,
    HeaderChange,
    Remaining,
    Unit,
    Unset,
)
from psych_runtime.store._notices import News
from psych_runtime.store.sqlite._caps import Caps
from psych_runtime.store.sqlite._rows import Value, dump_open, header_values, load_open
from psych_runtime.store.sqlite._texts import Texts
from psych_runtime.store.units import admitted, edit_open, enters, leaves, news_of
from psych_schema.base import format_instant
from psych_schema.common import AbortPhase, RunPhase

__all__ = ["Commit", "Outcome"]


class Outcome(NamedTuple):
    """The answers of a commit, and what it tells whoever waits."""

    answers: list[Answer]
    news: News


class _Before(NamedTuple):
    """A header as judged; the order is that of the statement."""

    tenant: str
    epoch: int
    head: int
    schema_version: int
    head_hash: str
    head_at: str
    open: str
    state: RunPhase
    worker: str | None
    crashes: int
    wake_at: str | None
    deadline_at: str | None
    remaining_seconds: float | None
    abort: AbortPhase | None
    referenced: int
    capped: int


class Commit:
    """One commit; `now` is the store's clock in its transaction."""

    def __init__(self, connection: sqlite3.Connection, texts: Texts, now: datetime) -> None:
        self._connection = connection
        self._texts = texts
        self._now = now
        self._caps = Caps(connection, texts)
        self._records: list[dict[str, Value]] = []

    def apply(self, units: Sequence[Unit]) -> Outcome:
        """Judge and write the units in order; the records of all in one statement."""
        answers: list[Answer] = []
        landed: list[Unit] = []
        for unit in units:
            befores: dict[str, _Before] = {}
            answer = self._judge(unit, befores)
            if answer is None:
                self._write(unit, befores)
                landed.append(unit)
                answer = Committed()
            answers.append(answer)
        if self._records:
            self._connection.executemany(self._texts.insert_record, self._records)
        return Outcome(answers, news_of(landed))

    def _judge(self, unit: Unit, befores: dict[str, _Before]) -> Answer | None:
        execute = self._connection.execute
        fence: Answer | None = None
        head: Answer | None = None
        for change in unit.changes:
            names = {"run_id": change.run_id}
            if isinstance(change, Admit):
                if execute(self._texts.judge_run, names).fetchone() is not None:
                    head = head or SeqConflict(change.run_id)
                continue
            row = execute(self._texts.judge_change, names).fetchone()
            if row is None or row[0] != unit.tenant:
                return RunNotFound(change.run_id)
            before = befores[change.run_id] = _Before._make(row)
            if change.fence is not None and change.fence != before.epoch:
                fence = fence or LeaseLost(change.run_id)
            if change.expect_head != before.head:
                head = head or SeqConflict(change.run_id)
        return fence or head or self._judge_names(unit) or self._judge_cap(unit, befores)

    def _judge_names(self, unit: Unit) -> Answer | None:
        execute = self._connection.execute
        for key in unit.keys:
            row = execute(self._texts.read_key, vars(key)).fetchone()
            if row is not None:
                return KeyTaken(row[2], row[3], row[4])
        places: set[tuple[str, int]] = set()
        for change in unit.changes:
            if isinstance(change, Admit):
                header = change.header
                place = header.thread, header.position
                taken = execute(self._texts.read_place, vars(header)).fetchone() is not None
                if taken or place in places:
                    return ThreadTaken(*place)
                places.add(place)
        return None

    def _judge_cap(self, unit: Unit, befores: dict[str, _Before]) -> Answer | None:
        """Refuse a unit of which more Runs become running than there is room for (R-15)."""
        entrants = sum(
            enters(befores[change.run_id].state, change.header)
            for change in unit.changes
            if isinstance(change, Change)
        )
        cap = self._caps.row(unit.tenant) if entrants else None
        if cap is None or cap.running + entrants <= cap.limit:
            return None
        return CapReached(unit.tenant)

    def _write(self, unit: Unit, befores: dict[str, _Before]) -> None:
        for change in unit.changes:
            if isinstance(change, Admit):
                self._admit(change)
            else:
                self._change(change, befores[change.run_id])
            self._records += [vars(sealed.row) for sealed in change.records]
        for key in unit.keys:
            self._connection.execute(self._texts.insert_key, vars(key))

    def _admit(self, admit: Admit) -> None:
        header = admitted(admit, self._now)
        self._connection.execute(self._texts.insert_run, header_values(header))
        self._connection.execute(self._texts.insert_thread, vars(header))

    def _change(self, change: Change, before: _Before) -> None:
        values: dict[str, Value] = {
            "run_id": change.run_id,
            "tenant": before.tenant,
            "fence": before.epoch,
            "from_head": before.head,
            "head": before.head,
            "head_hash": before.head_hash,
            "head_at": before.head_at,
            "schema_version": before.schema_version,
        }
        if change.records:
            last = change.records[-1]
            newest = max(sealed.record.v for sealed in change.records)
            values["head"] = last.row.seq
            values["head_hash"] = last.hash
            values["head_at"] = format_instant(last.record.at)
            values["schema_version"] = max(before.schema_version, newest)
        edit, text = change.header, self._texts.advance_head
        if edit.opened or edit.closed:
            text = self._texts.edit_open
            values["open"] = dump_open(edit_open(load_open(before.open), edit))
        if _edits_columns(edit):
            text = self._texts.change_header
            values.setdefault("open", before.open)
            self._edit(edit, before, values)
        if self._connection.execute(text, values).rowcount != 1:
            raise RuntimeError(f"run {change.run_id} changed inside a transaction")

    def _edit(self, edit: HeaderChange, before: _Before, values: dict[str, Value]) -> None:
        for column in ("state", "worker", "epoch", "crashes", "abort", "referenced"):
            plain: Value | Unset = getattr(edit, column)
            values[column] = getattr(before, column) if isinstance(plain, Unset) else plain
        for column in ("wake_at", "deadline_at"):
            moment: object = getattr(edit, column)
            if isinstance(moment, After):
                moment = self._now + timedelta(seconds=moment.seconds)
            if isinstance(moment, datetime):
                values[column] = format_instant(moment)
            else:
                values[column] = getattr(before, column) if moment is UNSET else None
        values["capped"] = before.capped
        if enters(before.state, edit):
            values["capped"] = int(self._caps.count(before.tenant, 1))
        elif leaves(bool(before.capped), edit):
            self._caps.count(before.tenant, -1)
            values["capped"] = 0
        values["remaining_seconds"] = before.remaining_seconds
        if isinstance(edit.remaining_seconds, Remaining):
            if before.deadline_at is not None:
                left = datetime.fromisoformat(before.deadline_at) - self._now
                values["remaining_seconds"] = max(0.0, left.total_seconds())
        elif edit.remaining_seconds is None:
            values["remaining_seconds"] = None


def _edits_columns(edit: HeaderChange) -> bool:
    return not (
        edit.state is UNSET
        and edit.worker is UNSET
        and edit.epoch is UNSET
        and edit.crashes is UNSET
        and edit.wake_at is UNSET
        and edit.deadline_at is UNSET
        and edit.remaining_seconds is UNSET
        and edit.abort is UNSET
        and edit.referenced is UNSET
    )
