"""The keywords of JSON Schema that look at one value and at nothing inside it (draft 2020-12)."""

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from pydantic import JsonValue

__all__ = ["ASSERTIONS", "is_number", "is_of_type"]

type _Rule = Callable[[JsonValue, JsonValue], bool]


def is_number(value: JsonValue) -> bool:
    """Say whether JSON calls it a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_of_type(value: JsonValue, name: JsonValue) -> bool:
    """Say whether `value` is of the type `name`; 1.0 is an integer."""
    match name:
        case "array":
            return isinstance(value, list)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return is_number(value) and (not isinstance(value, float) or value.is_integer())
        case "null":
            return value is None
        case "number":
            return is_number(value)
        case "object":
            return isinstance(value, dict)
        case "string":
            return isinstance(value, str)
    return False


def _type(value: JsonValue, bound: JsonValue) -> bool:
    names = bound if isinstance(bound, list) else [bound]
    return any(is_of_type(value, name) for name in names)


def _number(fits: Callable[[int | float, int | float], bool]) -> _Rule:
    def rule(value: JsonValue, bound: JsonValue) -> bool:
        if isinstance(value, int | float) and isinstance(bound, int | float) and is_number(value):
            return fits(value, bound)
        return True

    return rule


def _multiple(value: int | float, bound: int | float) -> bool:
    if bound <= 0:
        return True
    if isinstance(value, int) and isinstance(bound, int):
        return value % bound == 0
    try:
        return value / bound == int(value / bound)
    except OverflowError:
        return (Fraction(value) / Fraction(bound)).denominator == 1


def _size(kind: type[str | list[JsonValue] | dict[str, JsonValue]], fits: _Rule) -> _Rule:
    def rule(value: JsonValue, bound: JsonValue) -> bool:
        return not isinstance(value, kind) or fits(len(value), bound)

    return rule


_AT_LEAST: Final = _number(operator.ge)
_AT_MOST: Final = _number(operator.le)

ASSERTIONS: Final[Mapping[str, _Rule]] = {
    "exclusiveMaximum": _number(operator.lt),
    "exclusiveMinimum": _number(operator.gt),
    "maxItems": _size(list, _AT_MOST),
    "maxLength": _size(str, _AT_MOST),
    "maxProperties": _size(dict, _AT_MOST),
    "maximum": _AT_MOST,
    "minItems": _size(list, _AT_LEAST),
    "minLength": _size(str, _AT_LEAST),
    "minProperties": _size(dict, _AT_LEAST),
    "minimum": _AT_LEAST,
    "multipleOf": _number(_multiple),
    "type": _type,
}
"""Each says whether a value fits; one of another kind fits, and so does every ill-formed rule."""
