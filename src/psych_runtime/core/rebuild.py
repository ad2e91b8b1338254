"""The header as its log makes it (R-1): what the stored one is compared with.

Computed from records and their fold alone, never by the code that writes headers, so that a
wrong column is found whoever wrote it.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple

from psych_runtime.core.codec import Entry
from psych_runtime.core.fold import Changes, RunState, advance
from psych_runtime.core.header import OPEN_PHASES
from psych_schema.base import format_instant
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    Record,
    RunAdmitted,
    RunSettled,
    RunSuspended,
)
from psych_schema.store import RunRow

__all__ = [
    "SOME",
    "Difference",
    "Some",
    "Traces",
    "compare",
    "contradictions",
    "differences",
    "rebuild",
]


class Some(Enum):
    """The mark of a column that is not null, with a value that only the store's clock knows."""

    SOME = "not null"


SOME: Final = Some.SOME

_OF_CORRUPT: Final = ("state", "worker", "wake_at", "deadline_at", "remaining_seconds")
"""What changes with the state `corrupt`, which no record explains."""


class Difference(NamedTuple):
    """A column that is not what its log makes of it; both values as text."""

    column: str
    found: str
    wanted: str


class Traces:
    """What records leave in a header and not in a RunState; constant cost for each record."""

    __slots__ = ("_admitted", "_crashes", "_failed", "_followed", "_open", "_rest", "_v", "_worker")

    def __init__(self) -> None:
        self._admitted: RunAdmitted | None = None
        self._worker: str | None = None
        self._crashes = 0
        self._v = 0
        self._open: dict[str, int] = {}
        self._rest: RunSuspended | None = None  # the suspension that no attempt has ended yet
        self._failed = False  # the last attempt ended with an error
        self._followed = False  # by a next Run

    def take(self, record: Record, changes: Changes) -> None:
        """Take a committed record and what the fold said that it changes."""
        self._v = max(self._v, record.v)
        for kind, key, new in changes:
            if kind in OPEN_PHASES:
                self._open.pop(key, None)
                if new.phase in OPEN_PHASES[kind]:
                    self._open[key] = record.seq
        match record:
            case RunAdmitted():
                self._admitted = record
            case AttemptStarted():
                self._worker, self._crashes = record.worker, record.crashes
                self._rest, self._failed = None, False
            case AttemptEnded():
                self._failed = record.reason == "error"
                self._worker, self._crashes = None, self._crashes + 1 if self._failed else 0
            case RunSuspended():
                self._worker, self._crashes, self._rest = None, 0, record
            case RunSettled():
                self._worker, self._crashes = None, 0
                self._followed = record.next_run is not None
            case _:
                return

    def fixed(self) -> dict[str, object]:
        """Return the columns that never change: the admission says them all."""
        one = self._admitted
        if one is None:
            return {}
        return {
            "tenant": one.scope.tenant,
            "run_id": one.run_id,
            "version": one.version,
            "priority": one.priority,
            "thread": one.thread.id,
            "position": one.thread.position,
            "previous": one.thread.previous,
            "parent": one.parent.run if one.parent else None,
            "root": one.root,
            "created_at": one.at,
        }

    def columns(self, state: RunState) -> dict[str, object]:
        """Return each column that the log determines; `state` is its fold."""
        if self._admitted is None:
            return {"head": state.position.seq}  # without a record there is no hash to compare
        abort = state.get("abort").phase
        settled = state.phase in ("settled", "erased")
        found: dict[str, object] = {
            **self.fixed(),
            "state": "settled" if settled else state.phase,
            "head": state.position.seq,
            "head_hash": state.position.hash,
            "head_at": state.position.at,
            "worker": self._worker,
            "epoch": state.epoch,
            "crashes": self._crashes,
            "schema_version": self._v,
            "abort": None if abort == "none" else abort,
            "open": dict(self._open),
            **self._instants(state, self._admitted.deadline_seconds is not None),
        }
        if self._followed:
            found["referenced"] = True
        return found

    def _instants(self, state: RunState, bounded: bool) -> dict[str, object]:
        """Return what is determined of the instants: most of them are the store's (R-14)."""
        rest = self._rest if state.phase == "suspended" else None
        asleep = rest is not None and bool(rest.waits)  # its time stands still
        counts = bounded and state.phase not in ("settled", "erased")
        wake_at: object = SOME if state.phase == "ready" and self._failed else None
        return {
            "wake_at": wake_at if rest is None else rest.wake_at,
            "deadline_at": SOME if counts and not asleep else None,
            "remaining_seconds": SOME if counts and asleep else None,
        }


def rebuild(entries: Iterable[Entry]) -> dict[str, object]:
    """Return each column of the header that the log determines, by name. Raises CorruptLog.

    SOME stands for a value that only the store knows; a column that is missing (`capped`, and
    `referenced` of most Runs) may be anything.
    """
    state, traces = _folded(entries)
    return traces.columns(state)


def differences(header: RunRow, entries: Iterable[Entry]) -> tuple[Difference, ...]:
    """Return the columns in which a header is not its recomputation. Raises CorruptLog."""
    return compare(header, *_folded(entries))


def _folded(entries: Iterable[Entry]) -> tuple[RunState, Traces]:
    state, traces = RunState(), Traces()
    for entry in entries:
        traces.take(entry.record, advance(state, entry))
    return state, traces


def compare(header: RunRow, state: RunState, traces: Traces) -> tuple[Difference, ...]:
    """Return the columns in which a header is not what a folded log makes of it.

    For who has folded already: `traces` took each record of the log. The state `corrupt` has no
    record: of such a header what goes with it is not judged.
    """
    wanted = traces.columns(state)
    if header.state == "corrupt":
        for column in _OF_CORRUPT:
            wanted.pop(column, None)
    return contradictions(header, wanted)


def contradictions(header: RunRow, wanted: Mapping[str, object]) -> tuple[Difference, ...]:
    """Return the columns among `wanted` that are not as it says; SOME is any value."""
    return tuple(
        Difference(column, _text(getattr(header, column)), _text(value))
        for column, value in wanted.items()
        if not _is(getattr(header, column), value)
    )


def _is(found: object, wanted: object) -> bool:
    return found is not None if wanted is SOME else found == wanted


def _text(value: object) -> str:
    if isinstance(value, Some):
        return value.value
    if isinstance(value, datetime):
        return format_instant(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
