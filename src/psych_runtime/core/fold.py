"""The fold: what a log says, and what may come next (LOG-1, R-3).

One table judges writer and reader. `step` says what a record changes and reads only; `apply`
is the one thing that changes a RunState; `check_position` judges what only a committed record
has: seq, prev, at, epoch.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from psych_runtime.core.codec import Entry, Position
from psych_runtime.core.guards import GUARDS
from psych_runtime.errors import CorruptLog
from psych_schema.record import (
    Failure,
    ModelFailed,
    ModelStarted,
    Record,
    RunAdmitted,
    ToolsOffered,
    TurnStarted,
)
from psych_schema.transitions import TRANSITIONS, Absent, Move, ObjectKind

__all__ = ["Changes", "Object", "RunState", "advance", "brought", "check_position", "fold", "step"]

type Kept = str | int | bool | datetime | Failure | None
"""What an object may remember of a record."""


class Object(NamedTuple):
    """Something the log tracks."""

    phase: str
    epoch: int = 0  # of a tool call: the attempt that touched it last
    opened: str = ""  # id of the record that made it
    kept: tuple[tuple[str, Kept], ...] = ()

    def get(self, name: str) -> Kept:
        """Return what it remembers under `name`, None when nothing."""
        for key, value in self.kept:
            if key == name:
                return value
        return None

    def instant(self, name: str) -> datetime | None:
        """Return a remembered instant."""
        value = self.get(name)
        return value if isinstance(value, datetime) else None

    def number(self, name: str) -> int:
        """Return a remembered number, 0 when none."""
        value = self.get(name)
        return value if isinstance(value, int) else 0

    def text(self, name: str) -> str | None:
        """Return a remembered text."""
        value = self.get(name)
        return value if isinstance(value, str) else None


_NONE: Final = Object("none")
_RESTING: Final = frozenset(
    {"none", "done", "completed", "failed", "interrupted", "used", "answered", "superseded"}
    | {
        "voided",
        "denied",
        "resolved",
        "consumed",
        "cancelled",
        "settled",
        "known",
        "added",
        "erased",
    }
)
"""Phases that nobody enumerates: `RunState.ids` knows the others only."""

type Changes = list[tuple[ObjectKind, str, Object]]


@dataclass(slots=True)
class RunState:
    """What the fold knows of a Run. Only `apply` and `advance` change it."""

    objects: MutableMapping[tuple[str, str], Object] = field(default_factory=dict)
    live: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    epoch: int = 0
    position: Position = Position()
    is_fork: bool = False
    last_turn: int = 0
    last_model: str = ""  # the model call begun last
    last_offer: str = ""  # hash of what the model was offered last
    turn_failures: int = 0  # transient model failures of the last turn

    def get(self, kind: ObjectKind, key: str = "") -> Object:
        """Return an object; one that was never touched is in phase none."""
        return self.objects.get((kind, key), _NONE)

    def ids(self, kind: ObjectKind, *phases: str) -> Iterator[str]:
        """Yield the ids of objects in phases that are not final, oldest first in each."""
        for phase in phases:
            yield from self.live.get((kind, phase), ())

    def any(self, kind: ObjectKind, *phases: str) -> bool:
        """Tell whether an object is in one of these phases, which are not final."""
        return any(self.live.get((kind, phase)) for phase in phases)

    @property
    def phase(self) -> str:
        """Where the Run stands: none, ready, running, suspended, settled or erased."""
        return self.get("run").phase

    def overlay(self) -> "RunState":
        """Return a state to try records on; this one stays as it is."""
        return RunState(
            ChainMap({}, self.objects),
            {key: dict(ids) for key, ids in self.live.items()},
            self.epoch,
            self.position,
            self.is_fork,
            self.last_turn,
            self.last_model,
            self.last_offer,
            self.turn_failures,
        )

    def put(self, changes: Changes) -> None:
        """Bring objects to where `changes` says; for `apply`, and for states made otherwise."""
        for kind, key, new in changes:
            old = self.objects.get((kind, key), _NONE)
            if old.phase not in _RESTING:
                del self.live[kind, old.phase][key]
            if new.phase not in _RESTING:
                self.live.setdefault((kind, new.phase), {})[key] = None
            self.objects[kind, key] = new

    def apply(self, record: Record, changes: Changes) -> None:
        """Take what `step` said of `record`."""
        if record.type == "attempt.started":
            self.epoch += 1
        self.put(changes)
        match record:
            case TurnStarted():
                self.last_turn = record.turn
                self.turn_failures = 0
            case ModelStarted():
                self.last_model = record.call
            case ToolsOffered():
                self.last_offer = record.hash
            case ModelFailed():
                self.turn_failures += record.failure.transient
            case RunAdmitted():
                self.is_fork = record.base is not None
            case _:
                return


def _applies(row: Move | Absent, record: Record) -> bool:
    if isinstance(row, Move) and row.given is not None and _read(record, row.given) is None:
        return False
    return all(_read(record, name) in values for name, values in row.when)


def _read(record: Record, name: str) -> Kept:
    """Return a field that the table names."""
    value: Kept = getattr(record, name)
    return value


def _keys(record: Record, name: str | None) -> tuple[str, ...]:
    """Return the ids that a field holds; a turn's is its number."""
    if name is None:
        return ("",)
    value: object = getattr(record, name)
    if value is None:
        return ()
    if isinstance(value, tuple):
        return tuple(str(one) for one in value)
    return (str(value),)


def step(state: RunState, record: Record) -> Changes:
    """Say what `record` changes; `state` is only read. Raises CorruptLog (LOG-1)."""
    row = TRANSITIONS[record.type]
    epoch = state.epoch + (record.type == "attempt.started")
    changes: Changes = []
    for move in row.moves:
        if (move.given is None and not move.when) or _applies(move, record):
            changes += _moved(state, record, move, epoch)
    for absent in row.absent:
        if not absent.when or _applies(absent, record):
            for phase in absent.phases:
                if state.live.get((absent.kind, phase)):
                    raise _corrupt(record, f"{absent.kind}_still_{phase}")
    for name in row.guards:
        if not GUARDS[name](state, record):
            raise _corrupt(record, name)
    if "outside" in row.by and state.phase == "suspended":
        changes.append(("run", "", state.get("run")._replace(phase="ready")))
    return changes


def _moved(state: RunState, record: Record, move: Move, epoch: int) -> Changes:
    if move.key == "*":
        target = move.target or ""
        return [
            (move.kind, key, state.get(move.kind, key)._replace(phase=target))
            for key in state.ids(move.kind, *move.source)
        ]
    changes: Changes = []
    for key in _keys(record, move.key):
        old = state.get(move.kind, key)
        if old.phase not in move.source:
            raise _corrupt(record, f"{move.kind}_is_{old.phase}")
        if move.target is None:
            continue
        kept = old.kept
        if move.keep:
            kept = tuple(pair for pair in kept if pair[0] not in move.keep)
            kept += _kept(record, move)
        at = epoch if move.kind == "call" else 0
        changes.append((move.kind, key, Object(move.target, at, old.opened or record.id, kept)))
    if len(changes) > 1 and len({key for _, key, _ in changes}) < len(changes):
        raise _corrupt(record, f"{move.kind}_twice")
    return changes


def brought(record: Record) -> Changes:
    """Return where a record that was judged brought the objects it names, by itself alone."""
    row = TRANSITIONS[record.type]
    return [
        (move.kind, key, Object(move.target, 0, record.id, _kept(record, move)))
        for move in row.moves
        if move.target is not None and move.key not in (None, "*") and _applies(move, record)
        for key in _keys(record, move.key)
    ]


def _kept(record: Record, move: Move) -> tuple[tuple[str, Kept], ...]:
    return tuple((name, _read(record, name)) for name in move.keep)


def _corrupt(record: Record, reason: str) -> CorruptLog:
    return CorruptLog(reason=reason, run_id=record.run_id, seq=record.seq)


def check_position(state: RunState, entry: Entry) -> None:
    """Judge what only a committed record has. Raises CorruptLog."""
    record, head = entry.record, state.position
    by = TRANSITIONS[record.type].by
    if record.seq != head.seq + 1:
        raise _corrupt(record, "seq_not_next")
    if record.prev != head.hash:
        raise _corrupt(record, "prev_does_not_fit")
    if head.at is not None and record.at < head.at:
        raise _corrupt(record, "at_falls")
    if record.epoch == 0:
        if "outside" not in by:
            raise _corrupt(record, "written_from_outside")
    elif "attempt" not in by:
        raise _corrupt(record, "written_by_attempt")
    elif record.epoch != state.epoch + (record.type == "attempt.started"):
        raise _corrupt(record, "epoch_not_current")
    elif record.type != "attempt.started" and state.phase != "running":
        raise _corrupt(record, f"run_is_{state.phase}")  # also where the table lets others write


def advance(state: RunState, entry: Entry) -> Changes:
    """Fold one committed record into `state`; return what it changed. Raises CorruptLog."""
    check_position(state, entry)
    changes = step(state, entry.record)
    state.apply(entry.record, changes)
    state.position = Position(entry.record.seq, entry.hash, entry.record.at)
    return changes


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """Return the state after `entries`. Raises CorruptLog."""
    state = RunState() if state is None else state
    for entry in entries:
        advance(state, entry)
    return state
