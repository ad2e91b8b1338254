"""A client for each loop of a handle, opened once, and used in turns."""

import asyncio
import threading
from contextlib import AsyncExitStack
from contextvars import Context
from typing import Final

from psych_runtime.errors import StoreClosed
from psych_runtime.store.dynamodb._client import DynamoClient, Opener
from psych_runtime.store.dynamodb._turns import Turns

__all__ = ["Line", "Lines"]

_OPEN_SECONDS: Final = 10.0  # loading the library, and a role's credentials
_WORKERS: Final = 16  # calls at once, for leases, claims and attempts
_OTHERS: Final = 16  # and for everybody else; together the connections of a client


class Line:
    """The client of one loop; everything in here happens on that loop."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._opening: asyncio.Task[DynamoClient] | None = None
        self._stack = AsyncExitStack()
        self._workers = Turns(_WORKERS)
        self._others = Turns(_OTHERS)
        self._closed = False

    def turns(self, *, for_worker: bool) -> Turns:
        """Return the turns of workers, which wait for nobody else's burst, or of the others."""
        return self._workers if for_worker else self._others

    async def client(self) -> DynamoClient:
        """Return the client. Whoever comes while it is opened shares how that ends.

        Cancelling a caller does not end the opening; when it fails, the next caller begins anew.
        """
        if self._closed:
            raise StoreClosed
        if self._opening is None:
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._open(), context=Context())
            self._opening.add_done_callback(self._opened)
        opening = self._opening
        if not opening.done():
            await asyncio.wait((opening,))
        if opening.cancelled():  # by `close`
            raise StoreClosed
        return opening.result()

    async def _open(self) -> DynamoClient:
        async with asyncio.timeout(_OPEN_SECONDS):
            return await self._stack.enter_async_context(await self._opener())

    def _opened(self, opening: asyncio.Task[DynamoClient]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            self._opening = None

    async def close(self) -> None:
        """Give no turns any more, and close the client, also while it is being opened."""
        self._closed = True
        self._workers.close()
        self._others.close()
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait((self._opening,))
        await self._stack.aclose()


class Lines:
    """One line for each loop that asks, since connections belong to a loop."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._closed = False

    def line(self) -> Line:
        """Return the running loop's line. Raises StoreClosed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise StoreClosed
            line = self._lines.get(loop)
            if line is None:
                line = self._lines[loop] = Line(self._opener)
        return line

    async def close(self) -> None:
        """Close every line on its loop; that of a loop that has ended is past closing."""
        here = asyncio.get_running_loop()
        with self._lock:
            self._closed = True
            lines, self._lines = self._lines, {}
        for loop, line in lines.items():
            if loop is here:
                await line.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(line.close(), loop))
