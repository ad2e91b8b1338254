"""Hears which Runs moved, on a connection of its own; what is missed costs latency only."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context

import asyncpg

from psych_runtime.errors import StoreError
from psych_runtime.store.sql._failures import Broken
from psych_runtime.store.sql.postgresql._failures import DRIVER_ERRORS

__all__ = ["Listener"]

_AGAIN_SECONDS = 1.0  # after the connection was lost


class Listener:
    """Listens on one channel from the first `start` on, and connects again when it must."""

    def __init__(self, channel: str, connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        self.channel = channel
        self._connect = connect
        self._task: asyncio.Task[None] | None = None

    def start(self, heard: Callable[[str], None], hears: Callable[[bool], None]) -> None:
        """Listen, if it does not yet; `hears` is told when that begins and when it ends."""
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._listen(heard, hears), context=Context())

    async def stop(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None

    async def _listen(self, heard: Callable[[str], None], hears: Callable[[bool], None]) -> None:
        while True:
            with suppress(StoreError, Broken, TimeoutError, OSError, *DRIVER_ERRORS):
                await self._until_lost(heard, hears)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _until_lost(
        self, heard: Callable[[str], None], hears: Callable[[bool], None]
    ) -> None:
        connection = await self._connect()
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            await connection.add_listener(
                self.channel, lambda _connection, _pid, _channel, text: heard(text)
            )
            hears(True)
            try:
                await lost.wait()
            finally:
                hears(False)
        finally:
            connection.terminate()
