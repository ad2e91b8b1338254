"""Which parts of a core schema get Python objects although the call is JSON (TOOL-1).

A validator function is given Python, and so is all that it hands on to; strict as we are,
pydantic would then take no text for a date any more.
"""

from collections.abc import Iterator
from typing import Final

__all__ = ["fed_python"]

_FUNCTIONS: Final = frozenset({"function-before", "function-wrap"})
_GUARDED: Final = frozenset({"frozenset", "named-tuple", "set"})  # by functions of ours
_REFERENCE: Final = "definition-ref"


def fed_python(schema: object) -> frozenset[int]:
    """Return the ids of the nodes that are reached through a function, also by name."""
    named: frozenset[str] = frozenset()
    while True:
        below = [node for node, is_below in _nodes(schema, named, is_below=False) if is_below]
        reached = {str(one.get("schema_ref")) for one in below if one.get("type") == _REFERENCE}
        if reached <= named:
            return frozenset(id(one) for one in below)
        named |= reached


def _nodes(
    part: object, named: frozenset[str], *, is_below: bool
) -> Iterator[tuple[dict[object, object], bool]]:
    """Yield each node, and whether a function stands above it; `named` are below by name."""
    if isinstance(part, list | tuple):
        for one in part:
            yield from _nodes(one, named, is_below=is_below)
    elif isinstance(part, dict):
        is_below = is_below or str(part.get("ref")) in named
        yield part, is_below
        inner = is_below or str(part.get("type")) in _FUNCTIONS | _GUARDED
        for key, one in part.items():
            if key not in ("metadata", "serialization"):
                yield from _nodes(one, named, is_below=inner)
