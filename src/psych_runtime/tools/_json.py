"""JSON numbers of tools, as JSON Schema and every store see them."""

from typing import Final

from pydantic import JsonValue

__all__ = ["is_kept_exactly", "whole_numbers"]

_MAX_INTEGER_BITS: Final = 1023
_UNSAFE_INTEGER: Final = 2.0**53


def is_kept_exactly(number: int) -> bool:
    """Tell whether an integer can be stored: a reader that knows only doubles can read it, too."""
    return number.bit_length() <= _MAX_INTEGER_BITS


def whole_numbers(value: JsonValue) -> JsonValue:
    """Return `value` with 1.0 as 1: JSON Schema and digests know one kind of number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _UNSAFE_INTEGER:
        return int(value)
    if isinstance(value, list):
        return [whole_numbers(one) for one in value]
    if isinstance(value, dict):
        return {key: whole_numbers(one) for key, one in value.items()}
    return value
