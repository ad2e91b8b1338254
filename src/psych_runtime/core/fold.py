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

from psych_runtime.core._table import ROWS, Fields, Step, applies
from psych_runtime.core.codec import Entry, Position
from psych_runtime.errors import CorruptLog
from psych_schema.record import Failure, Record
from psych_schema.transitions import TRANSITIONS, ObjectKind

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


_new: Final = tuple.__new__  # in half the time of a NamedTuple's own constructor

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
    turn_failures: int = 0  # transient failures of the last turn's model

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
        objects = self.objects
        for kind, key, new in changes:
            name = (kind, key)
            phase = objects.get(name, _NONE).phase
            if phase not in _RESTING:
                del self.live[kind, phase][key]
            phase = new.phase
            if phase not in _RESTING:
                self.live.setdefault((kind, phase), {})[key] = None
            objects[name] = new

    def apply(self, record: Record, changes: Changes) -> None:
        """Take what `step` said of `record`."""
        self.put(changes)
        told = vars(record)  # of 35 classes, whose attributes Python finds slowly
        match told["type"]:
            case "attempt.started":
                self.epoch += 1
            case "turn.started":
                self.last_turn = told["turn"]
                self.turn_failures = 0
            case "model.started":
                self.last_model = told["call"]
            case "model.failed" if told["next"] == "fallback":
                self.turn_failures = 0  # another model has its own tries
            case "model.failed":
                self.turn_failures += told["failure"].transient
            case "tools.offered":
                self.last_offer = told["hash"]
            case "run.admitted":
                self.is_fork = told["base"] is not None


def step(state: RunState, record: Record) -> Changes:
    """Say what `record` changes; `state` is only read. Raises CorruptLog (LOG-1)."""
    told = vars(record)
    row = ROWS[told["type"]]
    get = state.objects.get
    changes: Changes = []
    for one in row.steps(told):
        kind, field, source, target, _ = one
        key = "" if field is None else told.get(field)
        if type(key) is int:
            key = str(key)  # a turn's is its number
        elif type(key) is not str:
            changes += _several(state, record, one)
            continue
        old = get((kind, key), _NONE)
        if old.phase not in source:
            raise _corrupt(record, f"{kind}_is_{old.phase}")
        if target is not None:
            changes.append((kind, key, _moved(state, record, one, old)))
    for when, places in row.absent:
        if not when or applies(told, None, when):
            for place in places:
                if state.live.get(place):
                    raise _corrupt(record, f"{place[0]}_still_{place[1]}")
    for name, holds in row.guards:
        if not holds(state, record):
            raise _corrupt(record, name)
    if row.by_outside and state.phase == "suspended":
        changes.append(("run", "", state.get("run")._replace(phase="ready")))
    return changes


def _several(state: RunState, record: Record, one: Step) -> Changes:
    """Return where a step brings the ids that a field lists, or every object there is."""
    kind, field, source, target, _ = one
    told: Fields = vars(record)
    if field == "*":
        return [
            (kind, key, state.get(kind, key)._replace(phase=target or ""))
            for key in state.ids(kind, *source)
        ]
    changes: Changes = []
    for key in _keys(told, field):
        old = state.get(kind, key)
        if old.phase not in source:
            raise _corrupt(record, f"{kind}_is_{old.phase}")
        if target is not None:
            changes.append((kind, key, _moved(state, record, one, old)))
    if len(changes) > 1 and len({key for _, key, _ in changes}) < len(changes):
        raise _corrupt(record, f"{kind}_twice")
    return changes


def _moved(state: RunState, record: Record, one: Step, old: Object) -> Object:
    """Return what a step of `record` makes of `old`."""
    kind, _, _, target, keep = one
    epoch = state.epoch if kind == "call" else 0
    kept = _kept(record, keep, old.kept) if keep else old.kept
    return _new(Object, (target, epoch, old.opened or record.id, kept))


def _kept(
    record: Record, names: tuple[str, ...], before: tuple[tuple[str, Kept], ...] = ()
) -> tuple[tuple[str, Kept], ...]:
    """Return what an object remembers that `record` has moved."""
    told = vars(record)
    if before:
        before = tuple([pair for pair in before if pair[0] not in names])
    return (*before, *[(name, told[name]) for name in names])


def _keys(told: Fields, field: str | None) -> tuple[str, ...]:
    """Return the ids that a field holds; a turn's is its number."""
    value = "" if field is None else told[field]
    if value is None:
        return ()
    if isinstance(value, tuple):
        return tuple([str(one) for one in value])
    return (str(value),)


def brought(record: Record) -> Changes:
    """Return where a record that was judged brought the objects it names, by itself alone."""
    told = vars(record)
    return [
        (move.kind, key, Object(move.target, 0, record.id, _kept(record, move.keep)))
        for move in TRANSITIONS[record.type].moves
        if move.target is not None
        and move.key not in (None, "*")
        and applies(told, move.given, move.when)
        for key in _keys(told, move.key)
    ]


def _corrupt(record: Record, reason: str) -> CorruptLog:
    return CorruptLog(reason=reason, run_id=record.run_id, seq=record.seq)


def check_position(state: RunState, entry: Entry) -> None:
    """Judge what only a committed record has. Raises CorruptLog."""
    record = entry.record
    told = vars(record)
    seq, hash, at = state.position
    row, epoch = ROWS[told["type"]], told["epoch"]
    begins = told["type"] == "attempt.started"
    if told["seq"] != seq + 1:
        raise _corrupt(record, "seq_not_next")
    if told["prev"] != hash:
        raise _corrupt(record, "prev_does_not_fit")
    if at is not None and told["at"] < at:
        raise _corrupt(record, "at_falls")
    if epoch == 0:
        if not row.by_outside:
            raise _corrupt(record, "written_from_outside")
    elif not row.by_attempt:
        raise _corrupt(record, "written_by_attempt")
    elif epoch != state.epoch + begins:
        raise _corrupt(record, "epoch_not_current")
    elif not begins and state.phase != "running":
        raise _corrupt(record, f"run_is_{state.phase}")  # also where the table lets others write


def advance(state: RunState, entry: Entry) -> Changes:
    """Fold one committed record into `state`; return what it changed. Raises CorruptLog."""
    check_position(state, entry)
    record = entry.record
    changes = step(state, record)
    state.apply(record, changes)
    told = vars(record)
    state.position = _new(Position, (told["seq"], entry.hash, told["at"]))
    return changes


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """Return the state after `entries`. Raises CorruptLog."""
    state = RunState() if state is None else state
    for entry in entries:
        advance(state, entry)
    return state
