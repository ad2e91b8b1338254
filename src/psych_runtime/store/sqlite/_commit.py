"""Commits inside the writer's transaction: units are judged in order, then all are written (R-1).

What the units are about is read at once, and kept as each unit leaves it; so a unit that is
refused has written nothing, and no savepoint is needed.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
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
from psych_runtime.ports.store import UNSET, Admit, After, Change, HeaderChange, Remaining, Unit
from psych_runtime.store.sqlite._caps import Caps
from psych_runtime.store.sqlite._pending import Pending
from psych_runtime.store.sqlite._rows import Value, dump_open, header_values, key_of, load_open
from psych_runtime.store.sqlite._texts import Texts
from psych_runtime.store.units import admitted, edit_open, enters, leaves
from psych_schema.base import format_instant
from psych_schema.common import AbortPhase, RunPhase
from psych_schema.store import KeyRow

__all__ = ["Commit"]

type _Place = tuple[str, str, int]


class _Before(NamedTuple):
    """A header as judged; the order is that of the statement."""

    run_id: str
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
        self._pending = Pending(texts)
        self._runs: dict[str, _Before | None] = {}
        self._taken: set[_Place] = set()
        self._keys: dict[tuple[str, str, str], KeyRow] = {}

    def apply(self, units: Sequence[Unit]) -> list[Answer]:
        """Judge the units in order, write those that nothing stands against, return the answers."""
        self._look({change.run_id for unit in units for change in unit.changes})
        self._look_for_places(
            [_place(c) for unit in units for c in unit.changes if isinstance(c, Admit)]
        )
        answers = [self._judge(unit) or self._write(unit) for unit in units]
        self._pending.write(self._connection)
        return answers

    def _look(self, run_ids: Collection[str]) -> None:
        names = {"run_ids": json.dumps(list(run_ids))}
        rows = self._connection.execute(self._texts.judge_changes, names)
        self._runs = dict.fromkeys(run_ids)
        self._runs.update((row[0], _Before._make(row)) for row in rows)

    def _look_for_places(self, places: Sequence[_Place]) -> None:
        if places:
            names = {"places": json.dumps(places)}
            self._taken.update(self._connection.execute(self._texts.read_places, names))

    # what stands against a unit

    def _judge(self, unit: Unit) -> Answer | None:
        fence: Answer | None = None
        head: Answer | None = None
        for change in unit.changes:
            before = self._runs[change.run_id]
            if isinstance(change, Admit):
                if before is not None:
                    head = head or SeqConflict(change.run_id)
                continue
            if before is None or before.tenant != unit.tenant:
                return RunNotFound(change.run_id)
            if change.fence is not None and change.fence != before.epoch:
                fence = fence or LeaseLost(change.run_id)
            if change.expect_head != before.head:
                head = head or SeqConflict(change.run_id)
        return fence or head or self._judge_names(unit) or self._judge_cap(unit)

    def _judge_names(self, unit: Unit) -> Answer | None:
        for key in unit.keys:
            known = self._known(key)
            if known is not None:
                return KeyTaken(known.key, known.digest, known.receipt)
        places: set[_Place] = set()
        for change in unit.changes:
            if isinstance(change, Admit):
                place = _place(change)
                if place in self._taken or place in places:
                    return ThreadTaken(*place[1:])
                places.add(place)
        return None

    def _known(self, key: KeyRow) -> KeyRow | None:
        known = self._keys.get(_name(key))
        if known is None:
            row = self._connection.execute(self._texts.read_key, vars(key)).fetchone()
            known = None if row is None else key_of(row)
        return known

    def _judge_cap(self, unit: Unit) -> Answer | None:
        """Refuse a unit of which more Runs become running than there is room for (R-15)."""
        entrants = sum(
            enters(before.state, change.header)
            for change in unit.changes
            if isinstance(change, Change) and (before := self._runs[change.run_id]) is not None
        )
        cap = self._caps.row(unit.tenant) if entrants else None
        if cap is None or cap.running + entrants <= cap.limit:
            return None
        return CapReached(unit.tenant)

    # what a unit writes

    def _write(self, unit: Unit) -> Committed:
        for change in unit.changes:
            before = self._runs[change.run_id]
            if isinstance(change, Admit):
                self._admit(change)
            elif before is not None:
                self._change(change, before)
            self._pending.records += [vars(sealed.row) for sealed in change.records]
        for key in unit.keys:
            self._pending.keys.append(vars(key))
            self._keys[_name(key)] = key
        return Committed()

    def _admit(self, admit: Admit) -> None:
        values = header_values(admitted(admit, self._now))
        self._pending.runs.append(values)
        self._taken.add(_place(admit))
        self._runs[admit.run_id] = _Before._make([values[name] for name in _Before._fields])

    def _change(self, change: Change, before: _Before) -> None:
        values = self._edit(change.header, before)
        edited = bool(values)
        if change.records:
            last = change.records[-1]
            newest = max(sealed.record.v for sealed in change.records)
            values["head"] = last.row.seq
            values["head_hash"] = last.hash
            values["head_at"] = format_instant(last.record.at)
            values["schema_version"] = max(before.schema_version, newest)
        edit = change.header
        if edit.opened or edit.closed:
            values["open"] = dump_open(edit_open(load_open(before.open), edit))
        after = {**before._asdict(), **values}
        self._runs[change.run_id] = _Before._make(after.values())
        self._pending.change(change.run_id, after, edited=edited)

    def _edit(self, edit: HeaderChange, before: _Before) -> dict[str, Value]:
        """Return the columns that a change sets beside those that follow its records."""
        values: dict[str, Value] = {}
        for column in ("state", "worker", "epoch", "crashes", "abort", "referenced"):
            plain: object = getattr(edit, column)
            if plain is None or isinstance(plain, str | int):
                values[column] = plain
        for column in ("wake_at", "deadline_at"):
            moment: object = getattr(edit, column)
            if isinstance(moment, After):
                moment = self._now + timedelta(seconds=moment.seconds)
            if isinstance(moment, datetime):
                values[column] = format_instant(moment)
            elif moment is not UNSET:
                values[column] = None
        if enters(before.state, edit):
            values["capped"] = int(self._caps.count(before.tenant, 1))
        elif leaves(bool(before.capped), edit):
            self._caps.count(before.tenant, -1)
            values["capped"] = 0
        if isinstance(edit.remaining_seconds, Remaining):
            if before.deadline_at is not None:
                left = datetime.fromisoformat(before.deadline_at) - self._now
                values["remaining_seconds"] = max(0.0, left.total_seconds())
        elif edit.remaining_seconds is None:
            values["remaining_seconds"] = None
        return values


def _place(admit: Admit) -> _Place:
    return admit.header.tenant, admit.header.thread, admit.header.position


def _name(key: KeyRow) -> tuple[str, str, str]:
    return key.tenant, key.run_id, key.key
