"""The open connections: a pool for each scope and origin, so that no scope uses another's."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import httpcore2

from psych_runtime.egress._connect import Judge, JudgedBackend, Resolver
from psych_runtime.egress._tunnel import Tunnel
from psych_runtime.egress.client import Bounds
from psych_runtime.egress.gate import Origin
from psych_runtime.egress.proxy import Proxy
from psych_runtime.errors import EgressDenied, EgressFailed

__all__ = ["LaneKey", "Lanes"]

_IDLE_CONNECTIONS: Final = 4
_MOST_REACHED: Final = 64


class LaneKey(NamedTuple):
    """Whose connections they are, and whereto; `named`: the operator's code named the origin."""

    scope: str
    origin: Origin
    named: bool


class _Lane:
    """One pool, who uses it now, and when it is closed."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, backend: JudgedBackend) -> None:
        self.pool = pool
        self.backend = backend
        self.users = 0
        self.retired = False
        self.closing: asyncio.TimerHandle | None = None


class Lanes:
    """All lanes of one event loop.

    At most `max_connections` requests are under way, and `max_idle_connections` lanes wait for
    their next request, for at most `idle_seconds` each.
    """

    def __init__(self, bounds: Bounds, resolve: Resolver, proxy: Proxy | None) -> None:
        self._bounds = bounds
        self._resolve = resolve
        self._proxy = proxy
        self._slots = asyncio.Semaphore(bounds.max_connections)
        self._lanes: dict[LaneKey, _Lane] = {}  # the least recently used one first
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def pool(
        self, key: LaneKey, judge: Judge, ssl_context: ssl.SSLContext
    ) -> AsyncGenerator[httpcore2.AsyncConnectionPool]:
        """Give the connections of `key`; what is open already is judged once more.

        Raises EgressFailed: all connections are in use, and stay so.
        """
        await self._take_slot(key)
        try:
            lane = await self._enter(key, judge, ssl_context)
            try:
                yield lane.pool
            finally:
                self._leave(key, lane)
        finally:
            self._slots.release()

    async def aclose(self) -> None:
        """Close every connection; requests under way fail."""
        for key in list(self._lanes):
            lane = self._retire(key)
            self._close(lane)
        await asyncio.gather(*self._closing)

    async def _take_slot(self, key: LaneKey) -> None:
        limit = asyncio.timeout(self._bounds.pool_seconds)
        try:
            async with limit:
                await self._slots.acquire()
        except TimeoutError:
            if not limit.expired():
                raise
        else:
            return
        problem = "every connection is in use"
        raise EgressFailed(host=key.origin.host, problem=problem, sent=False)

    async def _enter(self, key: LaneKey, judge: Judge, ssl_context: ssl.SSLContext) -> _Lane:
        old = self._lanes.get(key)
        denied = old is not None and not await _still_allowed(old, judge)
        if denied and self._lanes.get(key) is old:
            retired = self._retire(key)
            if not retired.users:
                self._close(retired)
        lane = self._lanes.pop(key, None) or self._opened(judge, ssl_context)
        self._lanes[key] = lane
        lane.users += 1
        if lane.closing is not None:
            lane.closing.cancel()
            lane.closing = None
        return lane

    def _leave(self, key: LaneKey, lane: _Lane) -> None:
        lane.users -= 1
        if lane.users:
            return
        if lane.retired:
            self._close(lane)
            return
        loop = asyncio.get_running_loop()
        lane.closing = loop.call_later(self._bounds.idle_seconds, self._end, key)
        idle = [each for each, other in self._lanes.items() if not other.users]
        for each in idle[: max(0, len(idle) - self._bounds.max_idle_connections)]:
            self._end(each)

    def _opened(self, judge: Judge, ssl_context: ssl.SSLContext) -> _Lane:
        way = None if self._proxy is None else Tunnel(self._proxy, judge, self._resolve)
        backend = JudgedBackend(judge, self._resolve, way)
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=self._bounds.max_connections,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=self._bounds.idle_seconds,
            network_backend=backend,
        )
        return _Lane(pool, backend)

    def _end(self, key: LaneKey) -> None:
        self._close(self._retire(key))

    def _retire(self, key: LaneKey) -> _Lane:
        """Let no further request use the lane."""
        lane = self._lanes.pop(key)
        lane.retired = True
        if lane.closing is not None:
            lane.closing.cancel()
        return lane

    def _close(self, lane: _Lane) -> None:
        task = asyncio.get_running_loop().create_task(lane.pool.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _still_allowed(lane: _Lane, judge: Judge) -> bool:
    """Judge where the open connections lead: a rule may have gone since.

    False also for a lane that has led to very many addresses: a new one is judged sooner.
    """
    reached = list(lane.backend.reached)
    if len(reached) > _MOST_REACHED:
        return False
    try:
        for address in reached:
            await judge.check(address)
    except EgressDenied:
        return False
    return True
