"""The store on a SQL server, whatever its dialect; see `_database` for what differs."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final, Literal, Self

from psych_runtime.errors import (
    PsychError,
    StoreClosed,
    StoreOfAnotherLoop,
    StoreUnavailable,
)
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import (
    UNCAPPED,
    Arrival,
    Exclude,
    Found,
    Page,
    Renewed,
    RunFilter,
    Seen,
    Unit,
)
from psych_runtime.store._arrivals import Arriving
from psych_runtime.store._notices import News
from psych_runtime.store._order import (
    ANY_RUN,
    NOTHING_EXCLUDED,
    Position,
    decode_cursor,
    encode_cursor,
)
from psych_runtime.store._storable import check_storable, check_unit
from psych_runtime.store.sql._batch import Batch, answers, batches
from psych_runtime.store.sql._claims import find_ready
from psych_runtime.store.sql._database import LogPart, Param
from psych_runtime.store.sql._failures import Again, Broken, Unsent
from psych_runtime.store.sql._grouped import header_among, or_error, records_of
from psych_runtime.store.sql._opened import Opened
from psych_runtime.store.sql._removal import TakesAway
from psych_runtime.store.sql._rows import (
    Row,
    cap_of,
    header_of,
    instant_of,
    key_of,
    worker_of,
)
from psych_runtime.store.sql._tell import Teller
from psych_runtime.store.sql._together import Together
from psych_runtime.store.sql._values import KeepsValues
from psych_runtime.store.sql._watch import Watcher
from psych_runtime.store.units import (
    OVER,
    check_cap,
    check_limit,
    check_units,
    news_of,
)
from psych_schema.store import CapRow, KeyRow, RecordRow, RunRow, WorkerRow

__all__ = ["Opened", "SqlStore"]

_LARGEST: Final = 2**63 - 1
_TRIES: Final = 12
_FIRST_PAUSE_SECONDS: Final = 0.002
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_LAST_RUN: Final = "~"  # sorts behind every id
_FIRST_RECORDS: Final = 64  # of a log that is read together with others


class SqlStore(KeepsValues, TakesAway):
    """Implements the store port on a SQL server; every handle has connections of its own.

    A handle is of the loop that uses it first (StoreOfAnotherLoop elsewhere); once that loop has
    been closed, as after asyncio.run(), of the next. The store's clock is the server's.

    Raises StoreUnavailable when the server does not answer in time, StoreFull, StoreReadOnly,
    StoreDenied; SchemaMissing until `migrate` was called; UnsupportedStore for a server or tables
    that are not for this build.
    """

    def __init__(self, opened: Opened, *, connections: int | None = None) -> None:
        self._opened = opened
        self._connections = connections or opened.options.pool_size
        self._arriving = Arriving(opened.arrivals)
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin()

    def _begin(self) -> None:
        """Have connections, polls and messages of a new loop; none is made before it is needed."""
        options = self._opened.options._replace(pool_size=self._connections)
        self._database = self._opened.connect(options)
        self._missed = False  # whether messages of other processes were lost
        self._watcher = Watcher(self._look, self._opened.notices)
        self._teller = Teller(self._tell)
        self._commits = Together(self._commit_all, len)
        self._headers = Together(self._read_headers)
        self._logs = Together(self._read_logs)

    def _enter_loop(self) -> None:
        """Refuse a second loop; where the first one is over, begin anew in this one."""
        if self._closed:
            raise StoreClosed
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            if not self._loop.is_closed():
                raise StoreOfAnotherLoop
            self._begin()
        self._loop = loop

    async def _surely[T](
        self, act: Callable[[], Awaitable[T]], *, checks: bool = True, repeats: bool = True
    ) -> T:
        """Ask: again after a deadlock, once more over another connection, in the time given.

        What does not repeat is not sent again where it may have happened.
        """
        self._enter_loop()
        return await self._in_time(act, checks=checks, repeats=repeats)

    async def _in_time[T](
        self, act: Callable[[], Awaitable[T]], *, checks: bool = True, repeats: bool = True
    ) -> T:
        try:
            async with asyncio.timeout(self._opened.options.timeout_seconds):
                if checks and not self._opened.checked:
                    await self._again(self._check)
                    self._opened.checked = True
                return await self._again(act, repeats=repeats)
        except TimeoutError:
            raise self._late() from None

    async def _together[Q, A](self, group: Together[Q, A], question: Q) -> A:
        """Ask together with others, in the time given."""
        try:
            async with asyncio.timeout(self._opened.options.timeout_seconds):
                return await group.ask(question)
        except TimeoutError:
            raise self._late() from None

    def _late(self) -> StoreUnavailable:
        options = self._opened.options
        problem = f"{options.where}: no answer within {options.timeout_seconds:g} s"
        return StoreUnavailable(problem=problem)

    async def _again[T](self, act: Callable[[], Awaitable[T]], *, repeats: bool = True) -> T:
        broken = False
        for tries in range(_TRIES):
            try:
                return await act()
            except Again:
                pause = self._opened.system.random() * _FIRST_PAUSE_SECONDS * 2**tries
                await asyncio.sleep(pause)
            except Broken as error:
                self._database.forget_idle()
                if broken or not (repeats or isinstance(error, Unsent)):
                    raise StoreUnavailable(problem=str(error)) from None
                broken = True
        raise StoreUnavailable(problem=f"{self._opened.options.where}: too many deadlocks")

    # the connections are looked up when they are used: a new loop has new ones

    async def _reach(self) -> None:
        await self._database.reach()

    async def _check(self) -> None:
        await self._database.check()

    async def _ask(self, text: str, values: Mapping[str, Param]) -> list[Row]:
        return await self._surely(lambda: self._database.ask(text, values))

    async def _look(self, run_ids: Sequence[str]) -> News:
        rows = await self._ask(self._database.statements.heads, {"run_ids": run_ids})
        names = [((str(row[0]), str(row[1])), row) for row in rows]
        heads = {name: int(str(row[2])) for name, row in names}
        return News(heads, over=frozenset(name for name, row in names if row[3] in OVER))

    async def _tell(self, news: News) -> None:
        await self._in_time(lambda: self._database.tell(self._opened.name, news))  # closing, too

    def _hear(self) -> None:
        self._database.hear(self._opened.name, self._opened.hear, self._hears)

    def _hears(self, hears: bool) -> None:
        self._watcher.hears(hears)
        if hears and self._missed:
            self._opened.arrivals.tell()  # there may have been some meanwhile
        self._missed = not hears

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply each unit all or none (R-1), many in one statement, also those of many callers."""
        check_units(units)
        for unit in units:
            check_unit(unit)
        self._enter_loop()
        return await self._together(self._commits, units)

    async def _commit_all(self, together: Sequence[Sequence[Unit]]) -> list[list[Answer]]:
        answers = iter(await self._commit([unit for units in together for unit in units]))
        return [list(islice(answers, len(units))) for units in together]

    async def _commit(self, units: Sequence[Unit]) -> list[Answer]:
        found: list[Answer] = []
        landed: list[Unit] = []
        for batch in batches(units):
            refusals = await self._surely(partial(self._commit_batch, batch), repeats=False)
            told = answers(batch.units, refusals)
            found += told
            for unit, answer in zip(batch.units, told, strict=True):
                if isinstance(answer, Committed):
                    landed.append(unit)
        news = news_of(landed)
        self._opened.announce(news)
        if self._database.tells:
            self._teller.add(news.for_others())
        return found

    async def _commit_batch(self, batch: Batch) -> list[Row]:
        return await self._database.commit(batch)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return records behind `after`. Raises RunNotFound."""
        if limit is not None:
            check_limit(limit)
        check_storable(tenant, run_id)
        self._enter_loop()
        most = _LARGEST if limit is None else min(limit, _LARGEST)
        part = LogPart(tenant, run_id, max(-1, min(after, _LARGEST)), most)
        found = await self._together(self._logs, part)
        if len(found) == _FIRST_RECORDS < most:
            rest = part._replace(after=found[-1].seq, limit=most - _FIRST_RECORDS)
            found += await self._read_log(rest)
        return found

    async def _read_log(self, part: LogPart) -> list[RecordRow]:
        return records_of(part, await self._ask(self._database.statements.read_log, part._asdict()))

    async def _read_logs(self, parts: Sequence[LogPart]) -> list[list[RecordRow] | PsychError]:
        """Read a log, or the beginnings of many: what one has more would hold up the others."""
        if len(parts) == 1:
            return [await self._read_log(parts[0])]
        firsts = [part._replace(limit=min(part.limit, _FIRST_RECORDS)) for part in parts]
        found = await self._surely(lambda: self._database.read_logs(firsts))
        return [
            or_error(partial(records_of, part, rows))
            for part, rows in zip(parts, found, strict=True)
        ]

    async def header(self, tenant: str, run_id: str) -> RunRow:
        """Return the header. Raises RunNotFound."""
        check_storable(tenant, run_id)
        self._enter_loop()
        return await self._together(self._headers, (tenant, run_id))

    async def _read_headers(self, names: Sequence[tuple[str, str]]) -> list[RunRow | PsychError]:
        statements = self._database.statements
        if len(names) == 1:
            ((tenant, run_id),) = names
            rows = await self._ask(statements.read_header, {"tenant": tenant, "run_id": run_id})
        else:
            run_ids = list({run_id for _, run_id in names})
            rows = await self._ask(statements.read_headers, {"run_ids": run_ids})
        found = {(row[0], row[1]): row for row in rows}
        return [or_error(partial(header_among, found, *name)) for name in names]

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        """Return the last Run of a thread."""
        check_storable(tenant, thread)
        values = {"tenant": tenant, "thread": thread}
        rows = await self._ask(self._database.statements.read_tail, values)
        return header_of(rows[0]) if rows else None

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        """Return what is known of a request."""
        check_storable(tenant, run_id, key)
        values = {"tenant": tenant, "run_id": run_id, "key": key}
        rows = await self._ask(self._database.statements.read_key, values)
        return key_of(rows[0]) if rows else None

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = NOTHING_EXCLUDED
    ) -> Found:
        """Return claimable Runs, tenant by tenant in turns (R-15)."""
        check_limit(limit)
        check_storable(after_tenant, *exclude.run_ids, *exclude.versions)
        return await find_ready(
            lambda values: self._surely(lambda: self._database.claimable(values)),
            limit,
            after_tenant,
            exclude,
        )

    async def overdue(self, limit: int) -> list[RunRow]:
        """Return Runs that a supervisor has to settle."""
        check_limit(limit)
        rows = await self._ask(self._database.statements.overdue, {"limit": limit})
        return [header_of(row) for row in rows]

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        """Write a worker's row; return the store's now."""
        check_storable(worker, build, *tools)
        values: dict[str, Param] = {
            "worker": worker,
            "lease": lease_seconds,
            "build": build,
            "tools": json.dumps(list(tools)),
        }
        rows = await self._ask(self._database.statements.enlist, values)
        return instant_of(rows[0][0])

    async def workers(self) -> list[WorkerRow]:
        """Return the rows of workers that are not dead."""
        return [worker_of(row) for row in await self._ask(self._database.statements.workers, {})]

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong the lease; None when the worker is dead or unknown."""
        check_storable(worker, *run_ids)
        values: dict[str, Param] = {
            "worker": worker,
            "lease": lease_seconds,
            "run_ids": run_ids,
        }
        rows = await self._ask(self._database.statements.renew, values)
        if not rows:
            return None
        seen = {
            str(run_id): Seen(int(str(epoch)), int(str(head)), bool(abort), bool(overdue))
            for _, run_id, epoch, head, abort, overdue in rows
            if run_id is not None
        }
        return Renewed(instant_of(rows[0][0]), seen)

    async def held_by(self, worker: str) -> list[RunRow]:
        """Return the running Runs of a worker."""
        check_storable(worker)
        rows = await self._ask(self._database.statements.held, {"worker": worker})
        return [header_of(row) for row in rows]

    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead whose lease is over (R-6)."""
        check_storable(observer)
        rows = await self._ask(self._database.statements.bury, {"observer": observer})
        buried = sorted(str(row[0]) for row in rows)
        if buried:
            news = News({}, over=frozenset(), work=True)
            self._opened.announce(news)
            if self._database.tells:
                self._teller.add(news)
        return buried

    async def sweep(self) -> None:
        """Forget dead workers that no header names."""
        await self._ask(self._database.statements.sweep, {})

    def twin(self) -> "SqlStore":
        """Return a handle for another loop; it supervises, for which one connection is enough."""
        if self._closed:
            raise StoreClosed
        return SqlStore(self._opened, connections=1)

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        """Keep a published Spec."""
        check_storable(tenant, hash, document)
        values = {"tenant": tenant, "hash": hash, "document": document}
        await self._ask(self._database.statements.put_version, values)

    async def version(self, tenant: str, hash: str) -> str | None:
        """Return a published Spec's text."""
        self._enter_loop()
        text = self._opened.versions.get(tenant, hash)
        if text is None:
            text = await self._text(self._database.statements.read_version, tenant, hash)
            if text is not None:
                self._opened.versions.put(tenant, hash, text)
        return text

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        """Keep a document."""
        check_storable(tenant, hash, text)
        values = {"tenant": tenant, "hash": hash, "kind": kind, "text": text}
        await self._ask(self._database.statements.put_document, values)

    async def document(self, tenant: str, hash: str) -> str | None:
        """Return a document's text."""
        return await self._text(self._database.statements.read_document, tenant, hash)

    async def _text(self, text: str, tenant: str, hash: str) -> str | None:
        check_storable(tenant, hash)
        rows = await self._ask(text, {"tenant": tenant, "hash": hash})
        return str(rows[0][0]) if rows else None

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        """Return Runs that may have moved: by a commit here, a hint, or a poll for all of them."""
        self._enter_loop()
        check_storable(tenant, *heads)
        self._hear()
        return await self._watcher.wait(tenant, heads, seconds, over=over)

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        """Return how many times there may have been work, once it is not `seen`.

        On PostgreSQL what other processes tell counts, too, unless a pooler stands between.
        """
        self._enter_loop()
        self._hear()
        return await self._arriving.wait(seen, seconds)

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = ANY_RUN,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Return a page of headers, newest first."""
        check_limit(limit)
        check_storable(tenant, filter.state, filter.version, filter.thread, filter.parent)
        before = Position(_LAST, _LAST_RUN) if cursor is None else decode_cursor(cursor)
        values: dict[str, Param] = {
            "tenant": tenant,
            "before_at": before.created_at,
            "before_run": before.run_id,
            "limit": min(limit, _LARGEST - 1) + 1,
            **filter._asdict(),
        }
        rows = await self._ask(self._database.statements.list_runs, values)
        headers = tuple(header_of(row) for row in rows[:limit])
        return Page(headers, encode_cursor(headers[-1]) if len(rows) > limit else None)

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant may be running at once, or lift the bound."""
        check_cap(limit)
        check_storable(tenant)
        statements = self._database.statements
        text = statements.lift_cap if limit is None else statements.set_cap
        await self._ask(text, {"tenant": tenant, "limit": UNCAPPED if limit is None else limit})

    async def cap(self, tenant: str) -> CapRow | None:
        """Return a tenant's cap and what it counts."""
        check_storable(tenant)
        rows = await self._ask(self._database.statements.read_cap, {"tenant": tenant})
        return cap_of(rows[0]) if rows else None

    async def migrate(self) -> None:
        """Bring the tables to this build's schema, however long that takes (ST-4)."""
        self._enter_loop()
        await self._again(self._database.migrate)

    async def close(self) -> None:
        """End this handle and its connections."""
        if not self._closed:
            self._closed = True
            self._arriving.close()
            if self._loop is not None and self._loop.is_closed():
                return  # its connections ended with it
            self._watcher.close()
            for group in (self._commits, self._headers, self._logs):
                await group.stop()
            await self._teller.stop()
            await self._database.close()

    async def __aenter__(self) -> Self:
        """Connect now, so that what is wrong with the server is told here; return the store."""
        try:
            await self._surely(self._reach, checks=False)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
