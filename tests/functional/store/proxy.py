"""A TCP proxy on loopback that cuts, delays, holds and rewrites what passes through it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

__all__ = ["Proxy", "proxied"]

_CHUNK = 65536


class Proxy:
    """Between a client and one server; what it does to connections can be changed at any time.

    Attributes:
        port: where it listens.
        accepted: connections that clients have made so far.
        refuses: end new connections at once.
        delay_seconds: that each piece waits, either way.
        loses_answers: let requests through and drop what the server says, as a half-open
            connection does.
        rewrite: what becomes of each piece that the server says.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self.accepted = 0
        self.refuses = False
        self.delay_seconds = 0.0
        self.loses_answers = False
        self.rewrite: Callable[[bytes], bytes] = bytes
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Break every connection, as a pooler that drops idle ones does, or a lost network."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        self.accepted += 1
        if self.refuses:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            upstream, upward = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, upward}
        directions = [
            asyncio.create_task(self._carry(reader, upward, answers=False)),
            asyncio.create_task(self._carry(upstream, writer, answers=True)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            self._writers -= {writer, upward}
            for one in (writer, upward):
                one.transport.abort()
            self._tasks.discard(task)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_CHUNK):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                if answers and self.loses_answers:
                    continue
                writer.write(self.rewrite(piece) if answers else piece)
                await writer.drain()

    async def end(self) -> None:
        """Break what is left, and wait until all of it has ended."""
        self.cut()
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def proxied(host: str, port: int) -> AsyncIterator[Proxy]:
    """Yield a proxy in front of a server."""
    proxy = Proxy(host, port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
        await server.wait_closed()
