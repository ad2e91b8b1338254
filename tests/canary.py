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
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, urlsplit

import aioboto3
import aiomysql
import asyncpg

__all__ = [
    "CANARY",
    "HEADER_CANARY",
    "Finding",
    "Logs",
    "forms",
    "in_bytes",
    "in_dynamodb",
    "in_error",
    "in_folder",
    "in_logs",
    "in_mysql",
    "in_object",
    "in_postgresql",
    "in_sqlite",
    "in_texts",
]

CANARY: Final = 'cnry7HqZv4kWp"2/x<9&Zv+4 k%W\\p=é'
"""Each way of writing it differs from each other one."""

HEADER_CANARY: Final = CANARY.rstrip("é")
"""As much of it as a header carries."""


_OF_THE_CODE: Final = frozenset(
    {"created", "filename", "funcName", "levelname", "levelno", "lineno", "module", "msecs"}
    | {"name", "pathname", "process", "processName", "relativeCreated", "thread"}
)
"""What a log record says of who logs, and when."""


class Finding(NamedTuple):
    """One form in one place."""

    where: str
    form: str


@cache
def forms(canary: str) -> dict[str, bytes]:
    """Return how a canary may be written, by the name of the form.

    Base64 is without the digits that depend on what stands around: it is in every text that
    holds the canary, with or without padding. The longest word is what most mixed ways leave.
    """
    raw = canary.encode()
    word = max(re.findall(r"[A-Za-z0-9]+", canary), key=len)
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
        "json pointer": canary.replace("~", "~0").replace("/", "~1"),
        "octal": "".join(f"\\{byte:03o}" for byte in raw),
        "python": repr(canary)[1:-1],
        "python bytes": repr(raw)[2:-1],
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "longest word": word,
        "longest word in small letters": word.lower(),
        "longest word letter by letter": " ".join(word),
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
        shown = (text for leaf in _leaves(value) for text in _shown(leaf))
        found += _in_parts(shown, canary, where=where)
    return found


def _shown(leaf: object) -> Iterator[str | bytes]:
    if isinstance(leaf, str | bytes):
        yield leaf
    if not isinstance(leaf, str):
        yield from (str(leaf), repr(leaf), repr(leaf).replace("\\\\", "\\"))


def in_error(error: BaseException, canary: str, *, where: str) -> list[Finding]:
    """Search what an exception and all that it was raised from can show."""
    shown: dict[str, object] = {where: traceback.format_exception(error)}
    behind: BaseException | None = error
    while behind is not None:
        shown[f"{where}: {type(behind).__name__}"] = [behind, *behind.args, vars(behind)]
        behind = behind.__cause__ or behind.__context__
    return in_texts(shown, canary)


def in_object(root: object, canary: str, *, where: str) -> list[Finding]:
    """Search what an object of the library holds, by attributes and containers, at any depth.

    Objects of others are as far as it goes: through an event loop all of the test is reached.
    """
    texts: list[str | bytes] = []
    seen: dict[int, object] = {}
    ahead = [root]
    while ahead:
        one = ahead.pop()
        if isinstance(one, str | bytes):
            texts.append(one)
        elif id(one) not in seen:
            seen[id(one)] = one
            ahead += _held_by(one)
    return _in_parts(texts, canary, where=where)


def _held_by(one: object) -> Iterator[object]:
    if isinstance(one, Mapping):
        yield from one.keys()
        yield from one.values()
    elif isinstance(one, list | set | frozenset | tuple | deque):
        yield from one
    elif type(one).__module__.startswith("psych_"):
        yield from getattr(one, "__dict__", {}).values()
        slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
        yield from (getattr(one, name, None) for name in slots)


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
            found += _in_rows(rows, canary, where=table)
    connection.close()
    return found


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
            found += _in_rows(map(tuple, rows), canary, where=table)
    finally:
        await connection.close()
    _refuse_nothing(tables, prefix)
    return found


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
                found += _in_rows(await cursor.fetchall(), canary, where=table)
    finally:
        connection.close()
    _refuse_nothing(tables, prefix)
    return found


async def in_dynamodb(endpoint_url: str, canary: str, *, prefix: str = "") -> list[Finding]:
    """Search all tables of an emulator whose names begin with `prefix`."""
    found: list[Finding] = []
    async with _dynamodb(endpoint_url) as client:
        pages = [page async for page in client.get_paginator("list_tables").paginate()]
        tables = [name for page in pages for name in page["TableNames"] if name.startswith(prefix)]
        for table in tables:
            async for page in client.get_paginator("scan").paginate(TableName=table):
                found += _in_rows(map(_leaves, page["Items"]), canary, where=table)
    _refuse_nothing(tables, prefix)
    return list(dict.fromkeys(found))


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
        self._levels: dict[logging.Logger, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> "Logs":
        root = logging.getLogger()
        known = (root, *map(logging.getLogger, root.manager.loggerDict))
        self._levels = {logger: logger.level for logger in known if logger.level}
        for logger in self._levels:
            logger.setLevel(logging.NOTSET + 1)
        root.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)
        for logger, level in self._levels.items():
            logger.setLevel(level)


def in_logs(records: Iterable[logging.LogRecord], canary: str) -> list[Finding]:
    """Search log records: line, traceback, arguments and whatever else they carry."""
    formatter = logging.Formatter()
    texts: dict[str, list[object]] = {}
    for record in records:
        carried = {name: one for name, one in vars(record).items() if name not in _OF_THE_CODE}
        texts.setdefault(f"log line of {record.name}", []).append(formatter.format(record))
        texts.setdefault(f"log record of {record.name}", []).append(carried)
    return in_texts(texts, canary)


def _in_rows(rows: Iterable[Iterable[object]], canary: str, *, where: str) -> list[Finding]:
    values = (one for row in rows for one in row)
    parts = (one if isinstance(one, bytes) else str(one) for one in values)
    return _in_parts(parts, canary, where=where)


def _in_parts(parts: Iterable[str | bytes], canary: str, *, where: str) -> list[Finding]:
    """Search each by itself, all at once: no form has what stands between them."""
    coded = (one if isinstance(one, bytes) else one.encode(errors="surrogatepass") for one in parts)
    return in_bytes(b"\n".join(coded), canary, where=where)


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
