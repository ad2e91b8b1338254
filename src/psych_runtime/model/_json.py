"""Foreign JSON, bounded in depth, and read without trust in its shape (SEC-3)."""

import json
import re
from collections.abc import Mapping, Sequence

__all__ = ["array_at", "count_at", "mend", "object_at", "only", "parse", "text_at"]

_DEPTH = 64
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)  # linear, whatever comes
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = 2**53


def parse(text: str) -> object:
    """Return the value of `text`. ValueError: no JSON, NaN or Infinity, or deeper than 64."""
    if text.count("[") + text.count("{") > _DEPTH and _depth(text) > _DEPTH:
        raise ValueError(f"JSON is nested deeper than {_DEPTH}")
    value: object = json.loads(text, parse_constant=_refuse)
    return value


def object_at(value: object, key: str) -> Mapping[str, object]:
    """Return the object under `key`, an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def array_at(value: object, key: str) -> Sequence[object]:
    """Return the array under `key`, an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def text_at(value: object, key: str) -> str:
    """Return the text under `key`, an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def only[T](value: object, kind: type[T]) -> T | None:
    """Return what is of `kind`, None for null and everything empty. ValueError: anything else.

    Some servers send `[]` or `""` where an object, or nothing, should be.
    """
    if not value:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"no {kind.__name__}")
    return value


def count_at(value: object, key: str) -> int | None:
    """Return the count under `key`; None: there is none, or nothing that can be a count."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 <= found <= _LARGEST else None


def mend(text: str) -> str:
    """Join surrogate halves into characters; a lone half becomes the replacement character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _depth(text: str) -> int:
    depth = deepest = 0
    for token in _TOKENS.finditer(text):
        first = token.group()[0]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
    return deepest


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")
