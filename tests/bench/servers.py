"""Databases of the bench's own on the real servers of the tests, gone with the block."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

import aiomysql
import asyncpg
from pymysql.constants import CLIENT

from tests.services import start_server

__all__ = [
    "NAME",
    "mysql_connections",
    "mysql_database",
    "postgresql_database",
]

NAME: Final = f"psych_bench_{os.getpid()}"
"""Of databases, and before the names of tables where there are no databases."""


@asynccontextmanager
async def postgresql_database(server: str = "postgres") -> AsyncIterator[str]:
    """Make a database on a PostgreSQL server; yield its URL."""
    url = start_server(server).url
    admin = await asyncpg.connect(url)
    try:
        await admin.execute(f"DROP DATABASE IF EXISTS {NAME}")
        await admin.execute(f"CREATE DATABASE {NAME}")
        try:
            yield _with_database(url)
        finally:
            await admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)")
    finally:
        await admin.close()


@asynccontextmanager
async def mysql_database(server: str) -> AsyncIterator[str]:
    """Make a database on MySQL or MariaDB; yield its URL."""
    url = start_server(server).url
    async with mysql_connections(url, 1) as [admin]:
        async with admin.cursor() as cursor:
            await cursor.execute(f"CREATE DATABASE {NAME}")
        try:
            yield _with_database(url)
        finally:
            async with admin.cursor() as cursor:
                await cursor.execute(f"DROP DATABASE {NAME}")


@asynccontextmanager
async def mysql_connections(url: str, number: int) -> AsyncIterator[list[aiomysql.Connection]]:
    """Yield raw connections that commit each packet, which may have several statements."""
    parts = urlsplit(url)
    async with AsyncExitStack() as opened:
        connections = []
        for _ in range(number):
            connection = await aiomysql.connect(
                host=parts.hostname,
                port=parts.port,
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                db=parts.path.removeprefix("/") or None,
                autocommit=True,
                client_flag=CLIENT.MULTI_STATEMENTS,
            )
            opened.callback(connection.close)
            connections.append(connection)
        yield connections


def _with_database(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{NAME}"))
