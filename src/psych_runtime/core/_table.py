"""The transition table as the fold reads it, for every record there is (LOG-1, R-3).

Which moves of a row apply depends on few fields, in which most records of a type are alike:
what applies to them is found once.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from psych_runtime.core.guards import GUARDS
from psych_schema.record import Record
from psych_schema.transitions import TRANSITIONS, Move, ObjectKind, Transition, When
from psych_schema.types import RECORD_TYPES

if TYPE_CHECKING:
    from psych_runtime.core.fold import RunState

__all__ = ["ROWS", "Fields", "Row", "Step", "applies"]

type Fields = Mapping[str, object]
"""The fields of a record by name."""

type _Find = Callable[[Fields], tuple[Step, ...]]


class Step(NamedTuple):
    """A move that applies: objects named by a field go from a phase of `source` to `target`."""

    kind: ObjectKind
    field: str | None
    source: tuple[str, ...]
    target: str | None
    keep: tuple[str, ...]


class Row(NamedTuple):
    """What a record of one type moves, what may not be, what must hold, and who writes it."""

    steps: _Find  # for the fields of a record
    absent: tuple[tuple[When, tuple[tuple[ObjectKind, str], ...]], ...]
    guards: tuple[tuple[str, Callable[["RunState", Record], bool]], ...]
    by_attempt: bool
    by_outside: bool


def applies(told: Fields, given: str | None, when: When) -> bool:
    """Tell whether a part of the table applies to a record with the fields `told`."""
    if given is not None and told[given] is None:
        return False
    return all(told[name] in values for name, values in when)


def _row(kind: str, row: Transition) -> Row:
    fields = RECORD_TYPES[kind].model_fields
    return Row(
        _finder(row.moves, {name for name, field in fields.items() if field.default is None}),
        tuple((a.when, tuple((a.kind, phase) for phase in a.phases)) for a in row.absent),
        tuple((name, GUARDS[name]) for name in row.guards),
        "attempt" in row.by,
        "outside" in row.by,
    )


def _finder(moves: tuple[Move, ...], nullable: set[str]) -> _Find:
    """Return what finds the steps of a record, by the fields that decide which there are.

    Those are ids that may be null, and fields of which the table lists values.
    """
    words = {name for move in moves for name, values in move.when if values != (None,)}
    ids = {name for move in moves for name in (move.given, move.key) if name in nullable}
    ids |= {name for move in moves for name, _ in move.when if name not in words}
    known: dict[object, tuple[Step, ...]] = {}
    if not words and not ids:
        steps = _steps(moves, {})
        return lambda told: steps

    def find(told: Fields) -> tuple[Step, ...]:
        shape = (*[told[name] is None for name in ids], *[told[name] for name in words])
        found = known.get(shape)
        if found is None:
            found = known[shape] = _steps(moves, told)
        return found

    return find


def _steps(moves: tuple[Move, ...], told: Fields) -> tuple[Step, ...]:
    """Return the moves that apply and name something."""
    return tuple(
        Step(move.kind, move.key, move.source, move.target, move.keep)
        for move in moves
        if applies(told, move.given, move.when)
        and (move.key is None or move.key == "*" or told.get(move.key, "") is not None)
    )


ROWS: Final[Mapping[str, Row]] = {kind: _row(kind, row) for kind, row in TRANSITIONS.items()}
