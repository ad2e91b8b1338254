"""Values as text in a statement: a packet of many statements has no other way to carry them.

In a text a quotation mark and a backslash are special. NO_BACKSLASH_ESCAPES would leave one of
them, but MySQL's optimizer writes conditions that it moves with backslashes all the same, and
reads them again: a name with a quotation mark would become part of the statement.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from psych_runtime.store.sql._database import Param, Scalar

__all__ = ["filled", "literal"]

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


def literal(value: Scalar) -> str:
    """Return a value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"'{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value)


def _list(value: Param) -> str:
    """Return several values for IN; of none, a text that is in no column."""
    if value is None or isinstance(value, str | int | float | datetime):
        return literal(value)
    return ", ".join(map(literal, value)) or "''"


@lru_cache(maxsize=256)
def _pieces(text: str) -> tuple[str, ...]:
    """Return what stands between names, and the names, in turn."""
    return tuple(_NAME.split(text))


def filled(text: str, values: Mapping[str, Param]) -> str:
    """Return `text` with a value for each :name."""
    pieces = _pieces(text)
    return "".join(
        _list(values[piece]) if place % 2 else piece for place, piece in enumerate(pieces)
    )
