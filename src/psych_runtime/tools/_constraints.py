"""The constraints of a JSON Schema in a few characters each (MOD-2)."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from psych_runtime.tools.text import quote

__all__ = ["bounds_of", "size_of"]

_PATTERN_BYTES: Final = 60
_BOUNDS: Final = (
    ("minimum", ">="),
    ("exclusiveMinimum", ">"),
    ("maximum", "<="),
    ("exclusiveMaximum", "<"),
)


def bounds_of(schema: Mapping[str, JsonValue]) -> str:
    """Return what a number or a text must keep to: ` >= 1 and <= 5`; nothing when free."""
    said = [f"{sign} {schema[key]}" for key, sign in _BOUNDS if key in schema]
    if "multipleOf" in schema:
        said.append(f"a multiple of {schema['multipleOf']}")
    if isinstance(pattern := schema.get("pattern"), str):
        said.append(f"matching {quote(pattern, _PATTERN_BYTES)}")
    size = size_of(schema, "Length", "character")
    return size + (f" {' and '.join(said)}" if said else "")


def size_of(schema: Mapping[str, JsonValue], of: str, unit: str) -> str:
    """Return ` of 1 to 3 items` from minItems and maxItems; nothing when free."""
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    if least is None and most is None:
        return ""
    if most is None:
        said, count = f"at least {least}", least
    elif least is None:
        said, count = f"at most {most}", most
    else:
        said, count = f"{least}" if least == most else f"{least} to {most}", most
    return f" of {said} {unit}{'' if count == 1 else 's'}"
