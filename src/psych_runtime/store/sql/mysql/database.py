"""One handle's connections to MySQL or MariaDB, through aiomysql (ST-2, ST-3)."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from psych_runtime.errors import StoreError, UnsupportedStore
from psych_runtime.store._notices import Hint, News
from psych_runtime.store.sql._batch import KEY_TAKEN, Batch
from psych_runtime.store.sql._database import Claimable, LogPart, Param, SqlOptions
from psych_runtime.store.sql._failures import Again, unsent
from psych_runtime.store.sql._pool import Pool
from psych_runtime.store.sql._rows import Cell, Row, instant_of
from psych_runtime.store.sql._statement import load, load_statements
from psych_runtime.store.sql.mysql import _ledger
from psych_runtime.store.sql.mysql._commit import NOTHING, RANKS, packet
from psych_runtime.store.sql.mysql._deletion import deletion
from psych_runtime.store.sql.mysql._driver import Connection, connect, count, run
from psych_runtime.store.sql.mysql._failures import translate
from psych_runtime.store.sql.mysql._literal import filled
from psych_runtime.store.sql.mysql._single import CHANGED, single
from psych_schema.store import RunRow

__all__ = ["MysqlDatabase"]

_PACKAGE: Final = "psych_runtime.store.sql.mysql"
_VERSION: Final = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)")
_OLDEST_MYSQL: Final = (8, 0, 16)
_OLDEST_MARIADB: Final = (10, 6, 0)
_LEAST_PACKET_BYTES: Final = 8 << 20  # for a unit whose every second character is quoted


class MysqlDatabase:
    """Connections of one loop; the same for MySQL and MariaDB."""

    def __init__(self, options: SqlOptions) -> None:
        self.statements = load_statements(_PACKAGE, options.prefix)
        self._pieces = load(_PACKAGE, "statements.sql", options.prefix)
        self.tells = False
        self._options = options
        self._pool: Pool[Connection] = Pool(
            options.pool_size,
            connect=self._connect,
            drop=lambda connection: connection.close(),
            usable=lambda connection: not connection.closed,
        )

    async def _connect(self) -> Connection:
        options = self._options
        parts = urlsplit(options.url)
        connection: Connection | None = None
        try:
            connection = await connect(
                host=parts.hostname or "localhost",
                port=parts.port or 3306,
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                database=unquote(parts.path.removeprefix("/")),
                tls=_tls(parts.query),
                seconds=options.timeout_seconds,
            )
            _check_version(connection.get_server_info(), options.where)
            _check_packet((await run(connection, "SELECT @@max_allowed_packet"))[0][0][0], options)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, StoreError | TimeoutError) or not isinstance(error, Exception):
                raise
            raise unsent(translate(error, options.where)) from None
        return connection

    async def _run(self, text: str) -> list[Sequence[Row]]:
        """Run a packet and return its rows."""
        return await self._with(lambda connection: run(connection, text))

    async def _with[T](self, act: Callable[[Connection], Awaitable[list[T]]]) -> list[T]:
        """Run a packet; one that failed is undone, and its connection kept if it can be."""
        failure: Exception | None = None
        found: list[T] = []
        async with self._pool.connection() as connection:
            try:
                found = await act(connection)
            except Exception as error:
                failure = translate(error, self._options.where)
                if connection.closed or not isinstance(failure, StoreError | Again):
                    raise failure from None
                await connection.rollback()
        if failure is not None:
            raise failure
        return found

    async def ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        """Run one packet; the last rows in it are the answer."""
        sets = await self._run(filled(text, values))
        return list(sets[-1]) if sets else []

    async def commit(self, batch: Batch) -> list[Row]:
        """Commit a batch in one packet; what a taken key has is read after it."""
        alone = single(batch, self._options.prefix)
        if alone is not None:
            counts = await self._with(lambda connection: count(connection, alone))
            if counts[CHANGED] == 1:
                return []
        sets = await self._run(packet(batch, self._options.prefix))
        refusals: list[Row] = []
        for number, verdict in enumerate(sets[-1][0]):
            code = int(str(verdict))
            if code == NOTHING:
                continue
            rank, place = divmod(code, RANKS)
            digest, receipt = "", ""
            if rank == KEY_TAKEN:
                key = batch.units[number].keys[place]
                values = {"tenant": key.tenant, "run_id": key.run_id, "key": key.key}
                (known,) = await self.ask(self.statements.read_key, values)
                digest, receipt = str(known[3]), str(known[4])
            refusals.append((number, rank, place, digest, receipt))
        return refusals

    async def read_logs(self, parts: Sequence[LogPart]) -> list[list[Row]]:
        """Read many logs in one packet."""
        text = self.statements.read_log
        sets = await self._run(";\n".join(filled(text, part._asdict()) for part in parts))
        return [list(rows) for rows in sets]

    async def claimable(self, values: Mapping[str, Param]) -> Claimable:
        """Find tenants, then their Runs and those of the dead in one packet."""
        window, limit, least = (int(str(values[name])) for name in ("window", "limit", "share"))
        tenants = await self._tenants(values, window)
        share = max(least, -(-limit // max(1, len(tenants))))
        orphans = filled(self._pieces["orphans"], values)
        selects = "\nUNION ALL\n".join(self._waiting(tenants, share, values))
        packet = [filled(self._pieces["moment"], values), orphans, *([selects] if selects else ())]
        sets = await self._run(";\n".join(packet))
        waiting = list(sets[2]) if selects else []
        now, capped = sets[0][0]
        return Claimable(instant_of(now), share, bool(capped), waiting, list(sets[1]))

    def _waiting(
        self, tenants: Mapping[str, int | None], share: int, values: Mapping[str, Param]
    ) -> Iterator[str]:
        for tenant, room in tenants.items():
            given: dict[str, Param] = {
                **values,
                "tenant": tenant,
                "share": share,
                "room": share if room is None else min(room, share),
            }
            yield filled(self._pieces["waiting"], given)

    async def _tenants(self, values: Mapping[str, Param], window: int) -> dict[str, int | None]:
        """Return tenants behind the cursor, then those up to it, and what room each has."""
        found: dict[str, int | None] = {}
        after, upto = values["after"], None
        while len(found) < window:
            place: dict[str, Param] = {**values, "after": after, "upto": upto}
            rows = await self.ask(self._pieces["tenants"], place)
            for tenant, room in rows[: window - len(found)]:
                if room is None or int(str(room)) > 0:
                    found[str(tenant)] = None if room is None else int(str(room))
            if len(rows) == window:
                after = str(rows[-1][0])
            elif upto is None and values["after"]:
                after, upto = "", values["after"]
            else:
                break
        return found

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]
    ) -> bool:
        """Delete Runs in one packet."""
        sets = await self._run(deletion(self._options.prefix, tenant, headers, keys))
        return bool(sets[-1][0][0])

    async def reach(self) -> None:
        """Open a connection, unless there is one."""
        async with self._pool.connection():
            return

    async def check(self) -> None:
        """Look at the ledger."""
        await _ledger.check(self._run, self._options)

    async def migrate(self) -> None:
        """Apply what is missing, under a lock of the server."""
        async with self._pool.connection() as connection:
            await _ledger.migrate(connection, self._options)

    def hear(
        self,
        name: str,
        heard: Callable[[Sequence[Hint], bool], None],
        hears: Callable[[bool], None],
    ) -> None:
        """Do nothing: the server tells nobody, and the polls are enough."""

    async def tell(self, name: str, news: News) -> None:
        """Do nothing: nobody could hear it."""

    def forget_idle(self) -> None:
        """Drop idle connections."""
        self._pool.forget_idle()

    async def close(self) -> None:
        """End every connection in order."""
        for connection in self._pool.take_all():
            try:
                async with asyncio.timeout(self._options.timeout_seconds):
                    await connection.ensure_closed()
            except (OSError, TimeoutError):
                connection.close()


def _tls(query: str) -> ssl.SSLContext | None:
    """Return how the connection is encrypted, as the URL says it."""
    wanted = parse_qs(query).get("tls", ["off"])[-1]
    if wanted not in ("off", "verify"):
        raise UnsupportedStore(problem=f"tls={wanted}", remedy="use off or verify")
    return ssl.create_default_context() if wanted == "verify" else None


def _check_version(told: str, where: str) -> None:
    """Refuse a server that is too old. UnsupportedStore."""
    mariadb = "mariadb" in told.lower()
    match = _VERSION.match(told)
    version = tuple(map(int, match.groups())) if match else (0, 0, 0)
    if version < (_OLDEST_MARIADB if mariadb else _OLDEST_MYSQL):
        name = "MariaDB" if mariadb else "MySQL"
        raise UnsupportedStore(
            problem=f"{where} runs {name} {told}",
            remedy="use MySQL 8.0.16 or MariaDB 10.6, or newer",
        )


def _check_packet(told: Cell, options: SqlOptions) -> None:
    """Refuse a server that could not take the largest unit. UnsupportedStore."""
    if int(str(told)) < _LEAST_PACKET_BYTES:
        raise UnsupportedStore(
            problem=f"{options.where} has max_allowed_packet={told}",
            remedy=f"set it to {_LEAST_PACKET_BYTES} or more",
        )
