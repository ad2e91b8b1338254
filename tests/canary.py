"""Looks for a planted secret everywhere and in every form, apart from the code under test (SEC-2).

A canary is a value that occurs nowhere else. What searches a place gives the findings, each with
where and in which form; a test says that there are none, and another plants some to show that
they would be found.
"""

import html
import json
import logging
import re
import sqlite3
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, urlsplit

import aioboto3
import aiomysql
import asyncpg

__all__ = [
    "CANARY",
    "Finding",
    "Logs",
    "forms",
    "in_bytes",
    "in_dynamodb",
    "in_folder",
    "in_logs",
    "in_mysql",
    "in_postgresql",
    "in_sqlite",
    "in_texts",
]

CANARY: Final = 'cnry7HqZv4kWp"2/x<9&Zv+4 k%W\\p=é'
"""Each way of writing it differs from each other one."""


class Finding(NamedTuple):
    """One form in one place."""

    where: str
    form: str


def forms(canary: str) -> dict[str, bytes]:
    """Return how a canary may be written, by the name of the form.

    Base64 is without the digits that depend on what stands around: it is in every text that
    holds the canary, with or without padding. The longest word is what most mixed ways leave.
    """
    raw = canary.encode()
    written = {
        "plain": canary,
        "quoted": quote(canary, safe=""),
        "quoted in small letters": _small(quote(canary, safe="")),
        "quoted but for slashes": quote(canary),
        "quoted in a form": quote_plus(canary),
        "quoted twice": quote(quote(canary, safe=""), safe=""),
        "quoted in every byte": "".join(f"%{byte:02X}" for byte in raw),
        "quoted in every byte, small": "".join(f"%{byte:02x}" for byte in raw),
        "json": json.dumps(canary, ensure_ascii=False)[1:-1],
        "json in ASCII": json.dumps(canary)[1:-1],
        "json in every character": "".join(f"\\u{ord(one):04x}" for one in canary),
        "json with slashes": json.dumps(canary)[1:-1].replace("/", "\\/"),
        "json in json": json.dumps(json.dumps(canary))[3:-3],
        "html": html.escape(canary),
        "html but for quotes": html.escape(canary, quote=False),
        "html in numbers": "".join(f"&#{ord(one)};" for one in canary),
        "html in hexadecimal": "".join(f"&#x{ord(one):X};" for one in canary),
        "python": repr(canary)[1:-1],
        "python bytes": repr(raw)[2:-1],
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "longest word": max(re.findall(r"[A-Za-z0-9]+", canary), key=len),
    }
    found = {name: text.encode() for name, text in written.items()}
    for lead in range(3):
        found[f"base64, {lead}"] = _core(b64encode(b"\0" * lead + raw), lead, len(raw))
        found[f"base64 for URLs, {lead}"] = _core(
            urlsafe_b64encode(b"\0" * lead + raw), lead, len(raw)
        )
    return found


def _core(coded: bytes, lead: int, size: int) -> bytes:
    """Return the digits whose six bits are all of the value."""
    return coded[-(-lead * 8 // 6) : (lead + size) * 8 // 6]


def _small(quoted: str) -> str:
    parts = quoted.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def in_bytes(data: bytes, canary: str, *, where: str) -> list[Finding]:
    """Search bytes as they are."""
    return [Finding(where, name) for name, form in forms(canary).items() if form in data]


def in_texts(texts: Mapping[str, object], canary: str) -> list[Finding]:
    """Search what objects show of themselves: str, repr, and what they hold, each by itself."""
    found: list[Finding] = []
    for where, value in texts.items():
        for one in (value, repr(value), repr(value).replace("\\\\", "\\"), *_leaves(value)):
            shown = str(one).encode(errors="surrogatepass")
            found += in_bytes(shown, canary, where=where)
    return _once(found)


def in_folder(folder: Path, canary: str) -> list[Finding]:
    """Search all files below a folder, hidden ones too: names and bytes."""
    found: list[Finding] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found += in_bytes(name.encode(errors="surrogateescape"), canary, where=f"name of {name}")
        if path.is_file():
            found += in_bytes(path.read_bytes(), canary, where=name)
    return found


def in_sqlite(file: Path, canary: str) -> list[Finding]:
    """Search the bytes of a database with its log files, and every value by itself.

    By itself, since a value that fills several pages does not stand in one piece; the bytes,
    since they may still have what was deleted.
    """
    found: list[Finding] = []
    for path in sorted(file.parent.glob(f"{file.name}*")):
        found += in_bytes(path.read_bytes(), canary, where=path.name)
    with sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True) as connection:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in named.fetchall():
            rows = connection.execute(f'SELECT * FROM "{table}"')
            found += _in_rows(table, ([row] for row in rows), canary)
    connection.close()
    return _once(found)


async def in_postgresql(url: str, canary: str, *, prefix: str = "") -> list[Finding]:
    """Search all tables of a database whose names begin with `prefix`."""
    found: list[Finding] = []
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND starts_with(table_name, $1) "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema')",
            prefix,
        )
        for schema, table in tables:
            rows = await connection.fetch(f'SELECT * FROM "{schema}"."{table}"')
            found += _in_rows(table, ([tuple(row)] for row in rows), canary)
    finally:
        await connection.close()
    _refuse_nothing(tables, prefix)
    return _once(found)


async def in_mysql(url: str, canary: str, *, prefix: str = "") -> list[Finding]:
    """Search all tables of the database that a URL names whose names begin with `prefix`."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    found: list[Finding] = []
    connection = await aiomysql.connect(
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        user=parts.username or "",
        password=parts.password or "",
        db=database,
        charset="utf8mb4",
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = %s "
                "AND LEFT(table_name, CHAR_LENGTH(%s)) = %s",
                (database, prefix, prefix),
            )
            tables = await cursor.fetchall()
            for (table,) in tables:
                await cursor.execute(f"SELECT * FROM `{table}`")
                found += _in_rows(table, ([row] for row in await cursor.fetchall()), canary)
    finally:
        connection.close()
    _refuse_nothing(tables, prefix)
    return _once(found)


async def in_dynamodb(endpoint_url: str, canary: str, *, prefix: str = "") -> list[Finding]:
    """Search all tables of an emulator whose names begin with `prefix`."""
    found: list[Finding] = []
    async with _dynamodb(endpoint_url) as client:
        pages = [page async for page in client.get_paginator("list_tables").paginate()]
        tables = [name for page in pages for name in page["TableNames"] if name.startswith(prefix)]
        for table in tables:
            async for page in client.get_paginator("scan").paginate(TableName=table):
                found += _in_rows(table, (list(_leaves(item)) for item in page["Items"]), canary)
    _refuse_nothing(tables, prefix)
    return _once(found)


@asynccontextmanager
async def _dynamodb(endpoint_url: str) -> AsyncIterator[Any]:
    session = aioboto3.Session(region_name="us-east-1")
    async with session.client("dynamodb", endpoint_url=endpoint_url) as client:
        yield client


class Logs(logging.Handler):
    """Keeps every log record of the process, at every level, for as long as it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.records: list[logging.LogRecord] = []
        self._level = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> "Logs":
        root = logging.getLogger()
        self._level = root.level
        root.setLevel(logging.NOTSET + 1)
        root.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)


def in_logs(records: Iterable[logging.LogRecord], canary: str) -> list[Finding]:
    """Search log records: line, traceback, arguments and whatever else they carry."""
    found: list[Finding] = []
    formatter = logging.Formatter()
    for record in records:
        found += in_texts(
            {
                f"log line of {record.name}": formatter.format(record),
                f"log record of {record.name}": vars(record),
            },
            canary,
        )
    return _once(found)


def _in_rows(table: str, rows: Iterable[Sequence[object]], canary: str) -> Iterator[Finding]:
    for row in rows:
        for value in row:
            values = value if isinstance(value, tuple) else (value,)
            for one in values:
                data = one if isinstance(one, bytes) else str(one).encode()
                yield from in_bytes(data, canary, where=table)


def _leaves(value: object) -> Iterator[object]:
    """Yield names and values of an item, whatever they are nested in."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _leaves(inner)
    elif isinstance(value, list | set | tuple):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _refuse_nothing(tables: Sequence[object], prefix: str) -> None:
    """A search of no table proves nothing."""
    if not tables:
        raise LookupError(f"no table begins with {prefix!r}")


def _once(found: Iterable[Finding]) -> list[Finding]:
    return list(dict.fromkeys(found))
