"""Where a chaos run keeps its Runs: a server of its own behind a proxy, or a SQLite file.

DynamoDB is an emulator that keeps all in memory, so it is never restarted, but shut off; it is
slow.

The servers of all other tests are left alone: those here are started in a state folder of their
own, one run at a time on each, and stopped at the end.
"""

import asyncio
import fcntl
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from psych_runtime.store.open import open_store
from tests.chaos.gate import Gate, gate_to
from tests.chaos.schedule import HARMS, NET_HARMS, PROCESS_HARMS, Harm
from tests.processes.nursery import Process
from tests.services import (
    How,
    Server,
    restart_server,
    start_server,
    state,
    stop_server,
)
from tests.services.kinds import KINDS
from tests.stores.aws import emulator_alone
from tests.stores.tables import MysqlTables, PostgresqlTables, SqlTables

__all__ = ["PLACES", "NetPlace", "Place", "ServerPlace", "place"]

_PREFIX: Final = "chaos_"
_DATABASE: Final = "psych_chaos"
_POOL_SIZE: Final = 3


type _Opening = AbstractAsyncContextManager[Place]


class Place(ABC):
    """One empty store.

    Attributes:
        version: of what keeps it, in its own words.
        url: for the workers.
        harms: what can be done here.
        share: of a plan's Runs, which are admitted here; fewer where each takes longer.
    """

    version: str
    url: str
    prefix = ""
    harms: tuple[Harm, ...]
    share = 1.0

    @abstractmethod
    async def stop(self, process: Process) -> None:
        """Let a worker process stand still."""


class NetPlace(Place):
    """Tables on a server of ours, behind a gate."""

    harms = NET_HARMS
    prefix = _PREFIX

    def __init__(self, server: Server, gate: Gate, url: str) -> None:
        self.version = server.version
        self.url = url
        self.gate = gate
        self.name = server.name

    async def stop(self, process: Process) -> None:
        process.stop()

    @abstractmethod
    async def take_down(self) -> None:
        """Let nobody reach it."""

    @abstractmethod
    async def bring_up(self) -> None:
        """Let it be there again, at the same port."""


class EmulatorPlace(NetPlace):
    """One that forgets its tables when it is stopped: the gate is shut instead."""

    share = 0.5

    async def take_down(self) -> None:
        self.gate.refuse()

    async def bring_up(self) -> None:
        self.gate.mend()


class ServerPlace(NetPlace):
    """One that keeps its tables when it is stopped."""

    harms = HARMS

    async def restart(self, how: How) -> None:
        """Stop the server and start it again."""
        await asyncio.to_thread(restart_server, self.name, how)

    async def take_down(self, how: How = "immediate") -> None:
        """Stop the server."""
        await asyncio.to_thread(stop_server, self.name, how)

    async def bring_up(self) -> None:
        await asyncio.to_thread(start_server, self.name)


class SqlitePlace(Place):
    """A file."""

    harms = PROCESS_HARMS

    def __init__(self, file: Path) -> None:
        self.version = sqlite3.sqlite_version
        self.url = f"sqlite:///{file}"
        self._file = file

    async def stop(self, process: Process) -> None:
        """Not inside a write, which would block all writers: SQLite's stated limit."""
        while True:
            process.stop()
            if await asyncio.to_thread(self._is_writable):
                return
            process.go_on()
            process.life.stops.pop()  # it stood for a moment only
            await asyncio.sleep(0.01)

    def _is_writable(self) -> bool:
        connection = sqlite3.connect(self._file, timeout=2.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True


@contextmanager
def _own_servers(name: str) -> Iterator[None]:
    """Let `tests.services` work in a folder of ours, for one run at a time."""
    ours, fetched = state.folder("chaos"), state.folder("packages")
    with (ours / f"{name}.run").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with state.turn():
            if not (ours / "packages").is_symlink():
                (ours / "packages").symlink_to(fetched)
        with _environment(
            dict.fromkeys(kind.variable for kind in KINDS.values())
            | {"PSYCH_SERVICES_DIR": str(ours)}
        ):
            try:
                yield
            finally:
                stop_server(name, "immediate")


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables, or none, for us and for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _started(name: str) -> Server:
    """Start a server of ours; programs are fetched while nobody else fetches any."""
    with (state.folder().parent / "lock").open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        return start_server(name)


@asynccontextmanager
async def _on_server(
    name: str, lease_seconds: float, tables_of: Callable[[Server], SqlTables]
) -> AsyncIterator[ServerPlace]:
    with _own_servers(name):
        server = _started(name)
        tables = tables_of(server)
        await tables.empty()
        with _gate_to(server) as gate:
            yield ServerPlace(server, gate, _through(gate, tables.url, lease_seconds))


def _gate_to(server: Server) -> AbstractContextManager[Gate]:
    return gate_to("127.0.0.1", urlsplit(server.url).port or 0)


def _through(gate: Gate, url: str, lease_seconds: float) -> str:
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    options = f"timeout_seconds={_answer_seconds(lease_seconds):g}&pool_size={_POOL_SIZE}"
    return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{gate.port}", query=options))


def _answer_seconds(lease_seconds: float) -> float:
    """Return in which time a store answers or raises: within half a lease."""
    return lease_seconds / 3


def _postgresql(folder: Path, lease_seconds: float) -> _Opening:
    return _on_server(
        "postgres", lease_seconds, lambda at: PostgresqlTables(at.url, at.url, _PREFIX)
    )


def _mysql(folder: Path, lease_seconds: float) -> _Opening:
    return _on_server("mysql", lease_seconds, lambda at: MysqlTables(at.url, _DATABASE, _PREFIX))


def _mariadb(folder: Path, lease_seconds: float) -> _Opening:
    return _on_server("mariadb", lease_seconds, lambda at: MysqlTables(at.url, _DATABASE, _PREFIX))


@asynccontextmanager
async def _sqlite(folder: Path, lease_seconds: float) -> AsyncIterator[Place]:
    made = SqlitePlace(folder / "runs.db")
    async with open_store(made.url) as store:
        await store.migrate()
    yield made


@asynccontextmanager
async def _dynamodb(folder: Path, lease_seconds: float) -> AsyncIterator[Place]:
    with _own_servers("aws"):
        stop_server("aws")  # which forgets what a run that was killed has left there
        server = _started("aws")
        with _gate_to(server) as gate, emulator_alone():
            options = f"patience_seconds={_answer_seconds(lease_seconds):g}&shards=1"
            address = f"endpoint_url=http://127.0.0.1:{gate.port}"
            made = EmulatorPlace(server, gate, f"dynamodb://us-east-1?{address}&{options}")
            async with open_store(made.url, prefix=made.prefix) as store:
                await store.migrate()
            yield made


PLACES: Final[Mapping[str, Callable[[Path, float], _Opening]]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mariadb,
    "sqlite": _sqlite,
    "dynamodb": _dynamodb,
}
"""By the name that `--store` takes."""


def place(kind: str, folder: Path, *, lease_seconds: float) -> _Opening:
    """Make an empty store of a kind for workers with such leases; its files are in `folder`."""
    return PLACES[kind](folder, lease_seconds)
