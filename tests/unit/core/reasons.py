"""Every reason that a CorruptLog of the core may have: what a log can be refused for."""

from collections.abc import Iterator
from typing import Final

from psych_schema.transitions import PHASES, TRANSITIONS

__all__ = ["COMPACTION", "PLACE", "READING", "REASONS"]

PLACE: Final = frozenset(
    {
        "seq_not_next",
        "prev_does_not_fit",
        "at_falls",
        "written_from_outside",
        "written_by_attempt",
        "epoch_not_current",
    }
)
"""What only a committed record can be refused for."""

READING: Final = frozenset({"unreadable", "row_differs", "content_does_not_fit"})
"""What a row can be refused for."""

COMPACTION: Final = frozenset({"upto_unknown", "upto_inside_turn"})
"""What a conversation can be refused for."""


def _of_the_table() -> Iterator[str]:
    for row in TRANSITIONS.values():
        yield from row.guards
        for absent in row.absent:
            yield from (f"{absent.kind}_still_{phase}" for phase in absent.phases)
        for move in row.moves:
            if move.key != "*":
                yield from (f"{move.kind}_is_{phase}" for phase in PHASES[move.kind])
                yield f"{move.kind}_twice"


REASONS: Final = PLACE | READING | COMPACTION | frozenset(_of_the_table())
