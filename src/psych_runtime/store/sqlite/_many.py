"""Many rows in one statement.

Each statement that ends makes its thread wait for the interpreter's lock, for milliseconds
where another thread computes; so the rows of many Runs cost few of them.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from psych_runtime.store.sqlite._rows import Value

__all__ = ["Many", "inserting", "statement_for", "updating"]

_SIZES: Final = (64, 16, 4, 1)  # of statements that are kept prepared
_INSERT: Final = re.compile(r'INSERT INTO ("[^"]+") \(([^)]+)\) VALUES')
_UPDATE: Final = re.compile(r'UPDATE ("[^"]+") SET (.+) WHERE')


class Many(NamedTuple):
    """A statement with a list of rows in its middle."""

    begin: str
    end: str
    columns: tuple[str, ...]

    def execute(self, connection: sqlite3.Connection, rows: Sequence[Mapping[str, Value]]) -> int:
        """Run it for all rows, in order; return how many rows of the table it touched."""
        done = touched = 0
        for size in _SIZES:
            while len(rows) - done >= size:
                some = rows[done : done + size]
                given = [row[name] for row in some for name in self.columns]
                touched += connection.execute(statement_for(self, size), given).rowcount
                done += size
        return touched


@cache
def statement_for(many: Many, size: int) -> str:
    """Return the text for so many rows."""
    row = f"({', '.join('?' * len(many.columns))})"
    return f"{many.begin} {', '.join([row] * size)}{many.end}"


@cache
def inserting(text: str) -> Many:
    """Return the statement `text`, which inserts one row, for many."""
    found = _INSERT.match(text)
    if found is None:
        raise ValueError(f"no insertion: {text}")
    columns = tuple(name.strip(' "') for name in found[2].split(","))
    return Many(found[0], "", columns)


@cache
def updating(text: str) -> Many:
    """Return the statement `text`, which changes one Run, for many."""
    found = _UPDATE.match(text)
    if found is None:
        raise ValueError(f"no change of a Run: {text}")
    names = [pair.partition("=")[0].strip() for pair in found[2].split(",")]
    sets = ", ".join(f"{name} = given.column{place}" for place, name in enumerate(names, 2))
    end = ") AS given WHERE run.run_id = given.column1"
    begin = f"UPDATE {found[1]} AS run SET {sets} FROM (VALUES"  # noqa: S608  of our own texts
    return Many(begin, end, ("run_id", *[name.strip('"') for name in names]))
