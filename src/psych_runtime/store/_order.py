"""In which order Runs are claimed and listed, on every adapter alike (R-15)."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from psych_runtime.errors import InvalidPayload
from psych_runtime.ports.store import Exclude, RunFilter, Seen
from psych_schema.base import format_instant, parse_instant
from psych_schema.store import RunRow

__all__ = [
    "ANY_RUN",
    "NOTHING_EXCLUDED",
    "TENANT_WINDOW",
    "Position",
    "claim_key",
    "cursor_at",
    "cursor_behind",
    "decode_cursor",
    "encode_cursor",
    "excluded",
    "matches",
    "seen",
    "take_fairly",
]

ANY_RUN: Final = RunFilter()
NOTHING_EXCLUDED: Final = Exclude()
TENANT_WINDOW: Final = 64  # tenants that one read of claimable Runs looks at
_LOWEST_RUN: Final = "run_" + "0" * 26
_CURSOR: Final = re.compile(r"[0-9TZ:.-]{27}_run_[0-9a-z]{26}")


class Position(NamedTuple):
    """A place in the list of a tenant's Runs."""

    created_at: datetime
    run_id: str


def claim_key(header: RunRow) -> tuple[int, datetime, str]:
    """Return what a tenant's claimable Runs are sorted by: priority, instant, id."""
    return -header.priority, header.wake_at or header.created_at, header.run_id


def excluded(header: RunRow, exclude: Exclude) -> bool:
    """Tell whether a worker cannot use `header` (R-16)."""
    above = exclude.schema_version_above
    return (
        header.run_id in exclude.run_ids
        or header.version in exclude.versions
        or (above is not None and header.schema_version > above)
    )


def take_fairly(tenants: Iterable[Iterator[RunRow]], limit: int) -> tuple[RunRow, ...]:
    """Take turns: each tenant's first Run, then each one's second, until `limit`.

    Looks at the first 64 tenants that have a Run at all; each iterator is sorted, and no more
    of it is read than is taken.
    """
    firsts: list[tuple[RunRow, Iterator[RunRow]]] = []
    for runs in tenants:
        if len(firsts) == min(limit, TENANT_WINDOW):
            break
        first = next(runs, None)
        if first is not None:
            firsts.append((first, runs))
    taken = [first for first, _ in firsts]
    turn = [runs for _, runs in firsts]
    while turn and len(taken) < limit:
        again: list[Iterator[RunRow]] = []
        for runs in turn:
            if len(taken) == limit:
                break
            following = next(runs, None)
            if following is not None:
                taken.append(following)
                again.append(runs)
        turn = again
    return tuple(taken)


def matches(header: RunRow, wanted: RunFilter) -> bool:
    """Tell whether `header` is what `wanted` asks for."""
    return (
        (wanted.state is None or header.state == wanted.state)
        and (wanted.version is None or header.version == wanted.version)
        and (wanted.thread is None or header.thread == wanted.thread)
        and (wanted.parent is None or header.parent == wanted.parent)
        and (wanted.created_after is None or header.created_at > wanted.created_after)
    )


def seen(header: RunRow, now: datetime) -> Seen:
    """Return what a renewal tells of a Run."""
    overdue = header.deadline_at is not None and header.deadline_at <= now
    return Seen(header.epoch, header.head, header.abort is not None, overdue)


def encode_cursor(last: RunRow) -> str:
    """Return the cursor behind `last`, the last header of a page."""
    return _text(Position(last.created_at, last.run_id))


def cursor_behind(place: Position) -> str | None:
    """Return the cursor behind `place`, None when no cursor can say it."""
    cursor = _text(place)
    return cursor if _CURSOR.fullmatch(cursor) else None


def cursor_at(instant: datetime) -> str:
    """Return the cursor behind which Runs are that were created before `instant`."""
    return _text(Position(instant, _LOWEST_RUN))


def _text(place: Position) -> str:
    return f"{format_instant(place.created_at)}_{place.run_id}"


def decode_cursor(cursor: str) -> Position:
    """Return where a cursor points. InvalidPayload: it is not one of ours."""
    if _CURSOR.fullmatch(cursor):
        try:
            return Position(parse_instant(cursor[:27]), cursor[28:])
        except ValueError:
            pass
    raise InvalidPayload(what="cursor", problem="pass the cursor of the page before, unchanged")
