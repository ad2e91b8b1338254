"""Numbers of foreign documents: what JSON can say, and in Specs what every reader reads alike."""

import math
import re
from typing import Final, NamedTuple

__all__ = ["MAX_DIGITS", "MAX_SAFE", "Refused", "read_number", "safe_number"]

MAX_DIGITS: Final = 1_000
"""Digits that a number may have; Python itself reads a few thousand and then raises."""

MAX_SAFE: Final = 2**53 - 1
"""The largest whole number that JavaScript and RFC 8785 keep."""

_WHOLE: Final = re.compile(r"-?[0-9]+")


class Refused(NamedTuple):
    """Why a number cannot be read."""

    code: str
    message: str


def read_number(text: str, *, whole: bool) -> int | float | Refused:
    """Return the number that JSON text says; `whole` is the rule for Specs (SPEC-1)."""
    if len(text) > MAX_DIGITS:
        return Refused("number_too_large", f"a number may have {MAX_DIGITS} digits")
    value = int(text) if _WHOLE.fullmatch(text) else float(text)
    return safe_number(value) if whole else _finite(value)


def _finite(value: int | float) -> int | float | Refused:
    """Return `value` unless it is NaN, or infinite to readers that know only doubles."""
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer that is larger than every double
        finite = False
    if finite:
        return value
    return Refused("not_finite", "NaN, infinite and larger numbers cannot be kept")


def safe_number(value: int | float) -> int | float | Refused:
    """Return `value` as a Spec holds it: 1.0 is 1, nothing from 2^53 on (SPEC-1)."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return _finite(value)
        if not value.is_integer():
            return value
        value = int(value)
    if abs(value) > MAX_SAFE:
        message = f"numbers without a fraction end at {MAX_SAFE}"
        return Refused("number_too_large", message)
    return value
