"""Connections of one loop, opened when needed, never reset and never held across a call (ST-2)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from psych_runtime.errors import StoreClosed

__all__ = ["Pool"]


class Pool[C]:
    """At most `size` connections; one that failed in use is dropped, not given to the next.

    Args:
        connect: opens a connection, or raises what the port says.
        drop: ends a connection at once, without waiting for the server.
        usable: tells whether an idle connection still looks alive.
    """

    def __init__(
        self,
        size: int,
        *,
        connect: Callable[[], Awaitable[C]],
        drop: Callable[[C], None],
        usable: Callable[[C], bool],
    ) -> None:
        self._connect = connect
        self._drop = drop
        self._usable = usable
        self._idle: list[C] = []
        self._free = asyncio.Semaphore(size)
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[C]:
        """Lend a connection; any error or cancellation inside drops it."""
        connection = await self.take()
        try:
            yield connection
        except BaseException:
            self.drop(connection)
            raise
        self.give(connection)

    async def take(self) -> C:
        """Lend a connection; whoever takes it gives it back, or drops it."""
        await self._free.acquire()
        try:
            if self._closed:
                raise StoreClosed
            while self._idle:
                connection = self._idle.pop()
                if self._usable(connection):
                    return connection
                self._drop(connection)
            return await self._connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: C) -> None:
        """Take a connection back for the next who needs one."""
        if self._closed or not self._usable(connection):
            self._drop(connection)
        else:
            self._idle.append(connection)
        self._free.release()

    def drop(self, connection: C) -> None:
        """End a connection that was lent."""
        self._drop(connection)
        self._free.release()

    def forget_idle(self) -> None:
        """Drop every idle connection: one of them was found dead, the others will be, too."""
        while self._idle:
            self._drop(self._idle.pop())

    def take_all(self) -> list[C]:
        """Close the pool, and return the idle connections for their owner to end in order."""
        self._closed = True
        idle, self._idle = self._idle, []
        return idle
