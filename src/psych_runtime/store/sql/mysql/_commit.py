"""The packet that commits many units: lock, judge each, write it if nothing stands against it.

Runs are locked in the order of their ids, then caps. Each unit's verdict is a variable of the
session, 10000 * rank + place, and every write names it as its condition; the last statement
before COMMIT tells them all. A row that came in between fails the packet, and it is sent again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from psych_runtime.store.sql._batch import (
    CAP_REACHED,
    KEY_TAKEN,
    LEASE_LOST,
    RUN_NOT_FOUND,
    SEQ_CONFLICT,
    THREAD_TAKEN,
    Batch,
    Given,
)
from psych_runtime.store.sql._database import Scalar
from psych_runtime.store.sql._rows import header_values
from psych_runtime.store.sql.mysql._literal import literal
from psych_schema.base import parse_instant
from psych_schema.store import KeyRow, RunRow

__all__ = ["NOTHING", "RANKS", "assignments", "packet"]

RANKS: Final = 10_000
NOTHING: Final = 9 * RANKS  # stands against the unit


def packet(batch: Batch, prefix: str) -> str:
    """Return the statements; the last rows are the verdicts, one column for each unit."""
    return ";\n".join(_statements(batch, prefix))


def _statements(batch: Batch, prefix: str) -> Iterator[str]:
    yield "START TRANSACTION"
    ids = ", ".join(sorted(literal(_text(change["run_id"])) for change in batch.changes))
    yield (f'SELECT run_id FROM "{prefix}run" WHERE run_id IN ({ids}) ORDER BY run_id FOR UPDATE')
    tenants = {_text(one["tenant"]) for one in batch.changes if "state" in one}
    if tenants:
        names = ", ".join(sorted(map(literal, tenants)))
        yield (
            f'SELECT tenant FROM "{prefix}cap" WHERE tenant IN ({names}) ORDER BY tenant FOR UPDATE'
        )
    for number in range(len(batch.units)):
        yield from _Unit(batch, number, prefix).statements()
    yield "SELECT " + ", ".join(f"@psych_{number}" for number in range(len(batch.units)))
    yield "COMMIT"


class _Unit:
    """The statements of one unit."""

    def __init__(self, batch: Batch, number: int, prefix: str) -> None:
        self._prefix = prefix
        self._verdict = f"@psych_{number}"
        self._changes = [one for one in batch.changes if one["unit"] == number]
        self._admissions = [one for one in batch.admissions if one[0] == number]
        self._records = [row for unit, row in batch.records if unit == number]
        self._keys = [(place, row) for unit, place, row in batch.keys if unit == number]

    def statements(self) -> Iterator[str]:
        against = ", ".join(f"COALESCE(({one}), {NOTHING})" for one in self._judgements())
        yield f"SET {self._verdict} = LEAST({against}, {NOTHING})"
        for change in self._changes:
            if not change["admits"]:
                if "state" in change:
                    yield self._count(change)
                if sets := list(assignments(change, self._prefix)):
                    yield self._if_accepted(
                        f'UPDATE "{self._prefix}run" SET {", ".join(sets)} '
                        f"WHERE run_id = {_of(change, 'run_id')} AND"
                    )
        for _, admit, _ in self._admissions:
            header = _literals(header_values(admit.header))
            if admit.deadline_seconds is not None:
                header["deadline_at"] = _moment(None, admit.deadline_seconds)
            yield self._insert("run", header)
            yield self._insert("thread", {name: header[name] for name in _PLACE})
        for record in self._records:
            yield self._insert("record", _literals(vars(record)))
        for _, key in self._keys:
            yield self._insert("key", _literals(vars(key)))

    def _judgements(self) -> Iterator[str]:
        """Yield what may stand against the unit, as selects of rank and place, or of nothing."""
        table = f'"{self._prefix}run"'
        entering = 0
        for change in self._changes:
            run, place = f"run_id = {_of(change, 'run_id')}", _number(change["place"])
            if change["admits"]:
                yield f"SELECT {SEQ_CONFLICT * RANKS + place} FROM {table} WHERE {run}"
                continue
            missing = RUN_NOT_FOUND * RANKS + place
            yield (
                f"SELECT {missing} FROM (SELECT 1 AS one) AS one WHERE NOT EXISTS (SELECT 1 "
                f"FROM {table} WHERE {run} AND tenant = {_of(change, 'tenant')})"
            )
            if "fence" in change:
                lost = LEASE_LOST * RANKS + place
                yield f"SELECT {lost} FROM {table} WHERE {run} AND epoch <> {_of(change, 'fence')}"
            moved = SEQ_CONFLICT * RANKS + place
            head = _of(change, "expect_head")
            yield f"SELECT {moved} FROM {table} WHERE {run} AND head <> {head}"
            if change.get("state") == "running":
                full = CAP_REACHED * RANKS + place
                yield (
                    f'SELECT {full} FROM {table} AS run JOIN "{self._prefix}cap" AS cap '
                    f"ON cap.tenant = run.tenant WHERE run.{run} AND run.state <> 'running' "
                    f'AND cap.running + {entering} >= cap."limit"'
                )
                entering += 1
        yield from self._judged_names()

    def _judged_names(self) -> Iterator[str]:
        for place, row in self._keys:
            known = KEY_TAKEN * RANKS + place
            yield f'SELECT {known} FROM "{self._prefix}key" WHERE {_equals(row, _KEY)}'
        for _, admit, doubled in self._admissions:
            run_id = admit.run_id
            place = next(_number(one["place"]) for one in self._changes if one["run_id"] == run_id)
            taken = THREAD_TAKEN * RANKS + place
            if doubled:
                yield f"SELECT {taken}"
            else:
                where = _equals(admit.header, _PLACE[:-1])
                yield f'SELECT {taken} FROM "{self._prefix}thread" WHERE {where}'

    def _count(self, change: Given) -> str:
        """Count a Run that enters or leaves running, where its tenant has a cap."""
        run = f"run.run_id = {_of(change, 'run_id')}"
        moves = (
            "GREATEST(0, CAST(cap.running AS SIGNED) + (run.state <> 'running'))"
            if change["state"] == "running"
            else "GREATEST(0, CAST(cap.running AS SIGNED) - run.capped)"
        )
        return self._if_accepted(
            f'UPDATE "{self._prefix}cap" AS cap JOIN "{self._prefix}run" AS run ON {run} '
            f"SET cap.running = {moves} WHERE cap.tenant = {_of(change, 'tenant')} AND"
        )

    def _insert(self, table: str, row: Mapping[str, str]) -> str:
        columns = ", ".join(f'"{name}"' for name in row)
        values = ", ".join(row.values())
        return self._if_accepted(
            f'INSERT INTO "{self._prefix}{table}" ({columns}) SELECT {values} FROM DUAL WHERE'
        )

    def _if_accepted(self, statement: str) -> str:
        return f"{statement} {self._verdict} = {NOTHING}"


_KEY: Final = ("tenant", "run_id", "key")
_PLACE: Final = ("tenant", "thread", "position", "run_id")


def _equals(row: KeyRow | RunRow, columns: Sequence[str]) -> str:
    return " AND ".join(f'"{name}" = {literal(getattr(row, name))}' for name in columns)


def assignments(change: Given, prefix: str) -> Iterator[str]:
    """Yield what a change sets; each sees those before it, so that what reads a column is first."""
    if "head" in change:
        yield f"head = {_of(change, 'head')}"
        yield f"head_hash = {_of(change, 'head_hash')}"
        yield f"head_at = {_instant(change['head_at'])}"
        yield f"schema_version = GREATEST(schema_version, {_of(change, 'newest')})"
    if "state" in change:
        tenant = _of(change, "tenant")
        counted = f'EXISTS (SELECT 1 FROM "{prefix}cap" AS cap WHERE cap.tenant = {tenant})'
        entering = f"IF(state = 'running', capped, {counted})"
        yield f"capped = {entering if change['state'] == 'running' else 'FALSE'}"
    for name in ("state", "epoch", "crashes", "abort", "referenced"):
        if name in change:
            yield f"{name} = {_of(change, name)}"
    if "sets_worker" in change:
        yield f"worker = {_of(change, 'worker')}"
    if "sets_wake" in change:
        yield f"wake_at = {_moment(change.get('wake_at'), change.get('wake_after'))}"
    if change.get("keeps_remaining"):
        left = "GREATEST(0, TIMESTAMPDIFF(MICROSECOND, NOW(6), deadline_at) / 1000000e0)"
        yield f"remaining_seconds = IF(deadline_at IS NULL, remaining_seconds, {left})"
    elif "sets_remaining" in change:
        yield "remaining_seconds = NULL"
    if "sets_deadline" in change:
        yield f"deadline_at = {_moment(None, change.get('deadline_after'))}"
    if "opened" in change or "closed" in change:
        yield f"open = {_open(change)}"


def _open(change: Given) -> str:
    text = "open"
    opened, closed = change.get("opened"), change.get("closed")
    if isinstance(opened, dict):
        pairs = ", ".join(f"{literal(name)}, {seq}" for name, seq in opened.items())
        text = f"JSON_MERGE_PATCH({text}, JSON_OBJECT({pairs}))"
    if isinstance(closed, list):
        paths = ", ".join(literal(f'$."{name}"') for name in closed)
        text = f"JSON_REMOVE({text}, {paths})"
    return text


def _moment(instant: object, after: object) -> str:
    if isinstance(after, int | float):
        return f"NOW(6) + INTERVAL {round(after * 1_000_000)} MICROSECOND"
    return "NULL" if instant is None else _instant(instant)


def _instant(text: object) -> str:
    return literal(parse_instant(_text(text)))


def _literals(row: Mapping[str, Scalar]) -> dict[str, str]:
    return {name: literal(value) for name, value in row.items()}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"a text expected, not {value!r}")


def _number(value: object) -> int:
    if isinstance(value, int):
        return value
    raise TypeError(f"an integer expected, not {value!r}")


def _of(change: Given, name: str) -> str:
    value = change.get(name)
    if isinstance(value, dict | list):
        raise TypeError(f"{name} is no single value")
    return literal(value)
