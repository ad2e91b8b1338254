"""Where a Run leaves traces: each kind of store, with what searches all that it has kept."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from tests.canary import (
    HEADER_CANARY,
    Finding,
    in_dynamodb,
    in_mysql,
    in_object,
    in_postgresql,
    in_sqlite,
)
from tests.stores.dynamo import dynamo_place
from tests.stores.kinds import EVERY_STORE, tables_of
from tests.stores.tables import MysqlTables

__all__ = ["KINDS", "Place", "place"]

KINDS: Final = (*EVERY_STORE, "postgresql_new")
"""Every store, PostgreSQL in its oldest and its newest version."""


class Place(NamedTuple):
    """An empty store, and what searches the whole of it; no other process can open `memory://`."""

    store: Store
    url: str
    prefix: str
    search: Callable[[], Awaitable[list[Finding]]]


@asynccontextmanager
async def place(kind: str, folder: Path) -> AsyncIterator[Place]:
    """Open an empty store of a kind; a file of it is in `folder`."""
    url, prefix = await _where(kind, folder)
    async with open_store(url, prefix=prefix) as store:
        await store.migrate()
        yield Place(store, url, prefix, partial(_search, kind, folder, store, prefix))


async def _where(kind: str, folder: Path) -> tuple[str, str]:
    """Return URL and prefix of what has no rows."""
    match kind:
        case "memory":
            return "memory://", ""
        case "sqlite":
            return f"sqlite:///{_file(folder)}", ""
        case "dynamodb":
            return dynamo_place()
    tables = tables_of(kind)
    await tables.empty()
    if isinstance(tables, MysqlTables):
        return tables.url, tables.prefix
    return _with_password(tables.url), tables.prefix


async def _search(kind: str, folder: Path, store: Store, prefix: str) -> list[Finding]:
    match kind:
        case "memory":
            return in_object(store, HEADER_CANARY, where="memory")
        case "sqlite":
            return in_sqlite(_file(folder), HEADER_CANARY)
        case "dynamodb":
            endpoint_url = dynamo_place()[0].partition("endpoint_url=")[2]
            return await in_dynamodb(endpoint_url, HEADER_CANARY, prefix=prefix)
    tables = tables_of(kind)
    search = in_mysql if isinstance(tables, MysqlTables) else in_postgresql
    return await search(tables.url, HEADER_CANARY, prefix=prefix)


def _file(folder: Path) -> Path:
    return folder / "runs.db"


def _with_password(url: str) -> str:
    """Return a URL with the canary as its password, which this PostgreSQL does not look at."""
    parts = urlsplit(url)
    user = f"{parts.username}:{quote(HEADER_CANARY, safe='')}"
    return parts._replace(netloc=f"{user}@{parts.hostname}:{parts.port}").geturl()
