"""Walks a JSON Schema: which schemas are in it, and where a reference leads (PUB-1)."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from pydantic import JsonValue

from psych_runtime.core._locate import segments_of

__all__ = ["REFERENCES", "Path", "References", "subschemas"]

# Keywords whose value is a schema, a list of them, or a mapping to them.
_ONE: Final = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_LONGEST_INDEX: Final = 9

REFERENCES: Final = ("$dynamicRef", "$ref")
"""Both lead to the same place: a schema stands alone, so no other can redefine an anchor."""

type Path = tuple[str | int, ...]


def subschemas(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, dict[str, JsonValue]]]:
    """Yield each schema in a schema, itself first; `const`, `enum` and examples hold none."""
    if not isinstance(value, dict):
        return
    yield path, value
    for keyword in _ONE:
        yield from subschemas(value.get(keyword), (*path, keyword))
    for keyword in _MANY:
        parts = value.get(keyword)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from subschemas(part, (*path, keyword, index))
    for keyword in _NAMED:
        named = value.get(keyword)
        for name, part in named.items() if isinstance(named, dict) else ():
            yield from subschemas(part, (*path, keyword, name))


class References:
    """Where the references within one schema lead; each is followed once."""

    def __init__(self, whole: JsonValue) -> None:
        self._whole = whole
        self._anchors: dict[str, JsonValue] | None = None
        self._places: dict[str, JsonValue] = {}

    def place_of(self, target: str) -> JsonValue:
        """Follow a reference within the document: a schema, or None where it leads to none."""
        if target not in self._places:
            place = self._follow(target)
            self._places[target] = place if isinstance(place, dict | bool) else None
        return self._places[target]

    def _follow(self, target: str) -> JsonValue:
        """Return what stands there; anchors count, other documents do not."""
        if not target.startswith("#"):
            return None
        fragment = unquote(target[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchor(fragment)
        place = self._whole
        for name in segments_of(fragment):
            if isinstance(place, list) and _is_index(name) and int(name) < len(place):
                place = place[int(name)]
            elif isinstance(place, dict) and name in place:
                place = place[name]
            else:
                return None
        return place

    def _anchor(self, name: str) -> JsonValue:
        if self._anchors is None:
            self._anchors = {}
            for _, part in subschemas(self._whole):
                for anchor in map(part.get, _ANCHORS):
                    if isinstance(anchor, str):
                        self._anchors.setdefault(anchor, part)
        return self._anchors.get(name)


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= _LONGEST_INDEX
