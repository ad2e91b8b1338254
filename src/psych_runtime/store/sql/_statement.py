"""The statements that a dialect has: files of SQL, and their parameters as a driver wants them.

A file has blocks with an empty line between. `-- name: what it does` begins a statement, `-- let
name` a piece that stands in others as {name}. {prefix} is the tables' prefix; {run}, {record} and
so on are the columns of the generated rows in their order, behind an alias of that name.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from psych_schema.base import Open
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["Statement", "Statements", "load", "load_statements", "numbered"]

_HEAD: Final = re.compile(r"-- (let )?([a-z_]+)(?::.*)?")
_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")

_ROWS: Final[Mapping[str, type[Open]]] = {
    "cap": CapRow,
    "key": KeyRow,
    "kv": KvRow,
    "record": RecordRow,
    "run": RunRow,
    "worker": WorkerRow,
}
_QUOTED: Final = ("key", "limit")  # columns whose names mean something in SQL


class Statements(NamedTuple):
    """Every statement of a dialect; the files say what each does."""

    read_log: str
    read_header: str
    read_headers: str
    read_tail: str
    read_key: str
    read_version: str
    read_document: str
    read_cap: str
    heads: str
    list_runs: str
    held: str
    overdue: str
    workers: str
    enlist: str
    renew: str
    bury: str
    sweep: str
    put_version: str
    put_document: str
    set_cap: str
    lift_cap: str
    read_value: str
    list_values: str
    new_value: str
    change_value: str
    delete_value: str
    blank: str


def load_statements(package: str, prefix: str) -> Statements:
    """Return a dialect's statements."""
    found = load(package, "statements.sql", prefix)
    return Statements(*(found[name] for name in Statements._fields))


@lru_cache(maxsize=64)
def load(package: str, name: str, prefix: str) -> dict[str, str]:
    """Return the statements of a file."""
    pieces = {"prefix": prefix}
    for table, row in _ROWS.items():
        columns = (_quoted(column) for column in row.model_fields)
        pieces[table] = ", ".join(f"{_quoted(table)}.{column}" for column in columns)
    found: dict[str, str] = {}
    for block in files(package).joinpath(name).read_text("utf-8").strip().split("\n\n"):
        head, _, body = block.partition("\n")
        match = _HEAD.fullmatch(head)
        if match is None:
            continue  # what a file says about itself
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        text = "\n".join(lines)
        for piece, value in pieces.items():
            text = text.replace(f"{{{piece}}}", value)
        (pieces if match[1] else found)[match[2]] = text
    return found


def _quoted(column: str) -> str:
    return f'"{column}"' if column in _QUOTED else column


class Statement(NamedTuple):
    """A text with $1, $2, ... and which parameter each of them is."""

    text: str
    names: tuple[str, ...]


@lru_cache(maxsize=256)
def numbered(text: str) -> Statement:
    """Return `text`, whose parameters stand as :name, with numbers for them."""
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return Statement(_NAME.sub(place, text), tuple(names))
