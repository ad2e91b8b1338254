"""A store between a worker and the real one, whose calls a test counts, loses, delays or holds."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, Self

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import (
    Arrival,
    Exclude,
    Found,
    Page,
    Renewed,
    RunFilter,
    Store,
    Unit,
)
from psych_schema.store import CapRow, KeyRow, KvRow, RecordRow, RunRow, WorkerRow

__all__ = ["Faults", "Flaky", "Gate", "lost_acknowledgement", "units_of"]

type Hook = Callable[[object], Awaitable[None]]
"""Called with the first argument before a call; what it raises is raised instead."""


class Gate:
    """Holds whoever comes until it is opened; usable from several loops."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self.waiting = 0

    def open(self) -> None:
        """Let everybody through, for good."""
        self._opened.set()

    async def pass_through(self, _: object = None) -> None:
        """Wait until the gate is open."""
        self.waiting += 1
        while not self._opened.is_set():
            await asyncio.sleep(0.005)


class Faults:
    """What happens to the calls of all handles of one Flaky store."""

    def __init__(self) -> None:
        self.away = False
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}
        self.calls: Counter[str] = Counter()
        self.units: list[Unit] = []

    def once(self, when: Literal["before", "after"], name: str, hook: Hook) -> None:
        """Call `hook` at the next call of `name` only."""
        hooks = self.before if when == "before" else self.after

        async def first(argument: object) -> None:
            del hooks[name]
            await hook(argument)

        hooks[name] = first

    def reset_counts(self) -> None:
        """Count from zero."""
        self.calls.clear()
        self.units.clear()


async def lost_acknowledgement(_: object) -> None:
    """Tell the caller nothing of what was done; a hook for `after`."""
    raise StoreUnavailable(problem="the acknowledgement was lost")


def units_of(argument: object) -> list[Unit]:
    """Return the units that a commit was called with."""
    assert isinstance(argument, Sequence)
    return [unit for unit in argument if isinstance(unit, Unit)]


class Flaky:
    """The store port over another store; `twin()` shares the faults."""

    def __init__(self, inner: Store, faults: Faults | None = None) -> None:
        self.inner = inner
        self.faults = Faults() if faults is None else faults

    async def _through[T](self, name: str, argument: object, act: Awaitable[T]) -> T:
        faults = self.faults
        faults.calls[name] += 1
        try:
            if name in faults.before:
                await faults.before[name](argument)
            if faults.away:
                raise StoreUnavailable(problem="the store is away")
        except BaseException:
            getattr(act, "close", lambda: None)()
            raise
        result = await act
        if name in faults.after:
            await faults.after[name](argument)
        return result

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        self.faults.units.extend(units)
        return await self._through("commit", units, self.inner.commit(units))

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        act = self.inner.read(tenant, run_id, after=after, limit=limit)
        return await self._through("read", run_id, act)

    async def header(self, tenant: str, run_id: str) -> RunRow:
        return await self._through("header", run_id, self.inner.header(tenant, run_id))

    async def tail(self, tenant: str, thread: str) -> RunRow | None:
        return await self._through("tail", thread, self.inner.tail(tenant, thread))

    async def key(self, tenant: str, run_id: str, key: str) -> KeyRow | None:
        return await self._through("key", key, self.inner.key(tenant, run_id, key))

    async def ready(
        self, limit: int, *, after_tenant: str = "", exclude: Exclude = Exclude()
    ) -> Found:
        act = self.inner.ready(limit, after_tenant=after_tenant, exclude=exclude)
        return await self._through("ready", limit, act)

    async def overdue(self, limit: int) -> list[RunRow]:
        return await self._through("overdue", limit, self.inner.overdue(limit))

    async def enlist(
        self, worker: str, *, lease_seconds: float, build: str, tools: Sequence[str]
    ) -> datetime:
        act = self.inner.enlist(worker, lease_seconds=lease_seconds, build=build, tools=tools)
        return await self._through("enlist", worker, act)

    async def workers(self) -> list[WorkerRow]:
        return await self._through("workers", None, self.inner.workers())

    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        act = self.inner.renew(worker, lease_seconds=lease_seconds, run_ids=run_ids)
        return await self._through("renew", worker, act)

    async def held_by(self, worker: str) -> list[RunRow]:
        return await self._through("held_by", worker, self.inner.held_by(worker))

    async def bury(self, observer: str) -> list[str]:
        return await self._through("bury", observer, self.inner.bury(observer))

    async def sweep(self) -> None:
        await self._through("sweep", None, self.inner.sweep())

    def twin(self) -> "Flaky":
        return Flaky(self.inner.twin(), self.faults)

    async def put_version(self, tenant: str, hash: str, document: str) -> None:
        act = self.inner.put_version(tenant, hash, document)
        await self._through("put_version", hash, act)

    async def version(self, tenant: str, hash: str) -> str | None:
        return await self._through("version", hash, self.inner.version(tenant, hash))

    async def put_document(
        self, tenant: str, hash: str, kind: Literal["system", "tool"], text: str
    ) -> None:
        act = self.inner.put_document(tenant, hash, kind, text)
        await self._through("put_document", hash, act)

    async def document(self, tenant: str, hash: str) -> str | None:
        return await self._through("document", hash, self.inner.document(tenant, hash))

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        act = self.inner.wait(tenant, heads, seconds, over=over)
        return await self._through("wait", heads, act)

    async def arrival(self, seen: int, seconds: float) -> Arrival:
        return await self._through("arrival", seen, self.inner.arrival(seen, seconds))

    async def list_runs(
        self,
        tenant: str,
        *,
        filter: RunFilter = RunFilter(),
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        act = self.inner.list_runs(tenant, filter=filter, cursor=cursor, limit=limit)
        return await self._through("list_runs", tenant, act)

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        await self._through("set_cap", tenant, self.inner.set_cap(tenant, limit))

    async def cap(self, tenant: str) -> CapRow | None:
        return await self._through("cap", tenant, self.inner.cap(tenant))

    async def value(self, tenant: str, kind: str, key: str) -> KvRow | None:
        return await self._through("value", key, self.inner.value(tenant, kind, key))

    async def put_value(
        self, tenant: str, kind: str, key: str, value: str, *, expect: int | None
    ) -> KvRow | None:
        act = self.inner.put_value(tenant, kind, key, value, expect=expect)
        return await self._through("put_value", key, act)

    async def delete_value(
        self, tenant: str, kind: str, key: str, *, expect: int | None = None
    ) -> bool:
        act = self.inner.delete_value(tenant, kind, key, expect=expect)
        return await self._through("delete_value", key, act)

    async def list_values(
        self, tenant: str, kind: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[KvRow]:
        act = self.inner.list_values(tenant, kind, prefix=prefix, after=after, limit=limit)
        return await self._through("list_values", prefix, act)

    async def blank(self, tenant: str, run_id: str, *, limit: int = 1000) -> bool:
        return await self._through("blank", run_id, self.inner.blank(tenant, run_id, limit=limit))

    async def delete_runs(
        self, tenant: str, headers: Sequence[RunRow], keys: Sequence[str] = ()
    ) -> bool:
        act = self.inner.delete_runs(tenant, headers, keys)
        return await self._through("delete_runs", headers, act)

    async def migrate(self) -> None:
        await self.inner.migrate()

    async def close(self) -> None:
        await self.inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
