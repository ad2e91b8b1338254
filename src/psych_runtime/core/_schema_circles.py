"""Finds the references of a JSON Schema that lead back to themselves (PUB-1)."""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from psych_runtime.core._schema_parts import REFERENCES, Path, References, subschemas

__all__ = ["circles"]

# Keywords whose schemas judge the very value that the schema itself judges.
_ONE: Final = ("else", "if", "not", "then")
_MANY: Final = ("allOf", "anyOf", "oneOf")


def circles(whole: JsonValue, references: References) -> Iterator[Path]:
    """Find the references that lead back to where they stand while one value is judged."""
    parts = {id(part): (path, part) for path, part in subschemas(whole)}
    done: set[int] = set()
    for start in parts:
        trail = [(start, iter(_same_value(parts[start][1], references)))]
        open_ = {start}
        if start in done:
            continue
        while trail:
            here, rest = trail[-1]
            there = next(
                (id(one) for one in rest if id(one) in parts and id(one) not in done), None
            )
            if there is None:
                done.add(here)
                open_.discard(here)
                trail.pop()
            elif there in open_:
                yield parts[here][0]
            else:
                open_.add(there)
                trail.append((there, iter(_same_value(parts[there][1], references))))


def _same_value(part: dict[str, JsonValue], references: References) -> Iterator[JsonValue]:
    """Yield the schemas that judge the value which `part` judges."""
    for keyword in _ONE:
        yield part.get(keyword)
    for keyword in _MANY:
        listed = part.get(keyword)
        yield from listed if isinstance(listed, list) else ()
    depending = part.get("dependentSchemas")
    yield from depending.values() if isinstance(depending, dict) else ()
    for keyword in REFERENCES:
        target = part.get(keyword)
        if isinstance(target, str):
            yield references.place_of(target)
