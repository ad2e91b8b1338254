"""Units as the parameters of one statement, and its rows as answers (R-1).

Units of one statement touch no Run, key or place in common, so that they are judged as if they
came one after the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

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
from psych_runtime.ports.store import MAX_UNIT_BYTES, UNSET, Admit, After, Change, Unit
from psych_runtime.store.sql._packed import packed
from psych_runtime.store.sql._rows import Row
from psych_schema.base import format_instant
from psych_schema.store import KeyRow, RecordRow

__all__ = [
    "CAP_REACHED",
    "KEY_TAKEN",
    "LEASE_LOST",
    "RUN_NOT_FOUND",
    "SEQ_CONFLICT",
    "THREAD_TAKEN",
    "Batch",
    "Given",
    "answers",
    "batches",
]

RUN_NOT_FOUND: Final = 1
LEASE_LOST: Final = 2
SEQ_CONFLICT: Final = 3
KEY_TAKEN: Final = 4
THREAD_TAKEN: Final = 5
CAP_REACHED: Final = 6

type Given = dict[str, str | int | float | bool | dict[str, int] | list[str] | None]
"""A change as the statement reads it; what is left out is null there."""


class Batch(NamedTuple):
    """Units of one statement, by what becomes of them."""

    units: Sequence[Unit]
    changes: list[Given]
    admissions: list[tuple[int, Admit, bool]]  # unit, and whether its place is named twice in it
    records: list[tuple[int, RecordRow]]
    keys: list[tuple[int, int, KeyRow]]  # unit, place in it
    moves: bool  # whether a state changes: caps are looked at


def batches(units: Sequence[Unit]) -> Iterator[Batch]:
    """Cut a commit where two units touch the same, or where it becomes too long for a packet."""
    if len(units) == 1:
        yield _batch(units)  # most often; there is nothing to cut
        return
    start, size = 0, 0
    touched: set[object] = set()
    for index, unit in enumerate(units):
        names, length = set(_names(unit)), _length(unit)
        if index > start and (size + length > MAX_UNIT_BYTES or not touched.isdisjoint(names)):
            yield _batch(units[start:index])
            start, size, touched = index, 0, set()
        touched |= names
        size += length
    if start < len(units):
        yield _batch(units[start:])


def _length(unit: Unit) -> int:
    """Return how many bytes a unit's records have at most."""
    return sum(
        len(text) if text.isascii() else 4 * len(text)
        for change in unit.changes
        for sealed in change.records
        for text in (sealed.row.body, sealed.row.content or "")
    )


def _names(unit: Unit) -> Iterator[object]:
    for change in unit.changes:
        yield change.run_id
        if isinstance(change, Admit):
            yield unit.tenant, change.header.thread, change.header.position
    for key in unit.keys:
        yield key.tenant, key.run_id, key.key


def _batch(units: Sequence[Unit]) -> Batch:
    made = Batch(units, [], [], [], [], moves=False)
    moves = False
    for number, unit in enumerate(units):
        places: set[tuple[str, int]] = set()
        for index, change in enumerate(unit.changes):
            given: Given = {
                "unit": number,
                "place": index,
                "run_id": change.run_id,
                "tenant": unit.tenant,
            }
            if isinstance(change, Admit):
                place = change.header.thread, change.header.position
                made.admissions.append((number, change, place in places))
                places.add(place)
                given["admits"] = True
            else:
                given["admits"] = False
                _edit(change, given)
                moves = moves or change.header.state is not UNSET
            made.changes.append(given)
            made.records.extend((number, packed(sealed)) for sealed in change.records)
        made.keys.extend((number, index, key) for index, key in enumerate(unit.keys))
    return made._replace(moves=moves)


def _edit(change: Change, given: Given) -> None:
    """Say what a change makes of its header; the store computes what depends on its clock."""
    given["expect_head"] = change.expect_head
    if change.fence is not None:
        given["fence"] = change.fence
    if change.records:
        last = change.records[-1]
        given["head"] = last.row.seq
        given["head_hash"] = last.hash
        given["head_at"] = format_instant(last.record.at)
        given["newest"] = max(sealed.record.v for sealed in change.records)
    edit = change.header
    for name in ("state", "epoch", "crashes", "abort", "referenced"):
        value: object = getattr(edit, name)
        if isinstance(value, str | int):
            given[name] = value
    if edit.worker is None or isinstance(edit.worker, str):
        given["sets_worker"] = True
        given["worker"] = edit.worker
    _edit_instants(change, given)
    if edit.opened:
        given["opened"] = dict(edit.opened)
    if edit.closed:
        given["closed"] = list(edit.closed)


def _edit_instants(change: Change, given: Given) -> None:
    edit = change.header
    if isinstance(edit.wake_at, After):
        given["sets_wake"] = True
        given["wake_after"] = edit.wake_at.seconds
    elif edit.wake_at is None or isinstance(edit.wake_at, datetime):
        given["sets_wake"] = True
        given["wake_at"] = None if edit.wake_at is None else format_instant(edit.wake_at)
    if isinstance(edit.deadline_at, After):
        given["sets_deadline"] = True
        given["deadline_after"] = edit.deadline_at.seconds
    elif edit.deadline_at is None:
        given["sets_deadline"] = True
    if edit.remaining_seconds is not UNSET:
        given["sets_remaining"] = True
        given["keeps_remaining"] = edit.remaining_seconds is not None


def answers(units: Sequence[Unit], refusals: Iterable[Row]) -> list[Answer]:
    """Return the answers; a refusal is unit, rank, place in the unit, and a key's digest, receipt.

    Of several refusals of a unit the lowest rank counts, then the first place.
    """
    found: dict[int, tuple[int, int, str, str]] = {}
    for unit, rank, place, digest, receipt in refusals:
        if not (isinstance(unit, int) and isinstance(rank, int) and isinstance(place, int)):
            raise TypeError(f"a refusal expected, not {unit!r}, {rank!r}, {place!r}")
        told = rank, place, str(digest), str(receipt)
        found[unit] = min(found.get(unit, told), told)
    return [
        _refusal(unit, *found[number]) if number in found else Committed()
        for number, unit in enumerate(units)
    ]


def _refusal(unit: Unit, rank: int, place: int, digest: str, receipt: str) -> Answer:
    if rank == KEY_TAKEN:
        return KeyTaken(unit.keys[place].key, digest, receipt)
    change = unit.changes[place]
    if rank == THREAD_TAKEN and isinstance(change, Admit):
        return ThreadTaken(change.header.thread, change.header.position)
    match rank:
        case 1:
            return RunNotFound(change.run_id)
        case 2:
            return LeaseLost(change.run_id)
        case 3:
            return SeqConflict(change.run_id)
        case 6:
            return CapReached(unit.tenant)
        case _:
            raise ValueError(f"no refusal has the rank {rank}")
