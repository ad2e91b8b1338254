"""What is used of aiomysql, typed: a connection, and the rows of a packet of statements."""

import ssl
from collections.abc import Sequence
from typing import Final, Protocol, cast

import aiomysql
from pymysql.constants import CLIENT

from psych_runtime.store.sql._rows import Row

__all__ = ["Connection", "connect", "count", "run"]

_MODE: Final = "ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES"
_SESSION: Final = (
    f"SET SESSION sql_mode = '{_MODE}', time_zone = '+00:00', innodb_lock_wait_timeout = 2"
)


class _Cursor(Protocol):
    """The rows of a packet, one set of them after the other."""

    description: Sequence[object] | None
    rowcount: int

    async def execute(self, query: str) -> int:
        """Send a packet and read the first answer."""

    async def fetchall(self) -> Sequence[Row]:
        """Return the rows of the answer that was read last."""

    async def nextset(self) -> bool | None:
        """Read the next answer; None when there is none."""

    async def close(self) -> None:
        """Read what is left."""


class Connection(Protocol):
    """A connection."""

    closed: bool

    async def cursor(self) -> _Cursor:
        """Return a cursor."""

    async def rollback(self) -> None:
        """Undo the transaction."""

    def get_server_info(self) -> str:
        """Return the server's version as it says it."""

    def close(self) -> None:
        """End the connection at once."""

    async def ensure_closed(self) -> None:
        """End the connection in order."""


class _Quiet(aiomysql.Cursor):  # type: ignore[misc]  # the driver has no types
    """A cursor that asks for no warnings: each would cost a round trip, and nobody reads them."""

    async def _show_warnings(self, conn: object) -> None:
        return


async def connect(
    *,
    host: str,
    port: int,
    user: str,
    password: str,
    database: str,
    tls: ssl.SSLContext | None,
    seconds: float,
) -> Connection:
    """Open a connection whose session is as the statements need it."""
    opened: object = await aiomysql.connect(
        host=host,
        port=port,
        user=user,
        password=password.encode().decode("latin-1"),  # which the driver encodes again as latin-1
        db=database,
        ssl=tls,
        connect_timeout=seconds,
        charset="utf8mb4",
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
        cursorclass=_Quiet,
        program_name="psych-runtime",
    )
    connection = cast("Connection", opened)
    try:
        await run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        await run(connection, _SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


async def run(connection: Connection, text: str) -> list[Sequence[Row]]:
    """Run a packet; return every set of rows in it."""
    cursor = await connection.cursor()
    found: list[Sequence[Row]] = []
    await cursor.execute(text)
    while True:
        if cursor.description is not None:
            found.append(await cursor.fetchall())
        if not await cursor.nextset():
            return found


async def count(connection: Connection, text: str) -> list[int]:
    """Run a packet; return how many rows each statement in it found or wrote."""
    cursor = await connection.cursor()
    await cursor.execute(text)
    found = [cursor.rowcount]
    while await cursor.nextset():
        found.append(cursor.rowcount)
    return found
