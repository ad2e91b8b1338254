"""A raw loopback server that plays scripts of bytes: what HTTP allows, and what not (MOD-5).

It listens on 127.0.0.1 only, on a port that the system chooses.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

__all__ = ["Flood", "Pause", "Script", "Server", "Step", "Stop", "nobody"]

_REQUEST_BYTES: Final = 1 << 24
_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time: close sends RST
_SEND_BUFFER_BYTES: Final = 1 << 17
_LOOK_AROUND: Final = 2  # turns of the loop in which others do what they can do now


class Stop(Enum):
    """What a script does instead of sending its next piece."""

    STALL = "send nothing more until the client leaves"
    RESET = "reset the connection"
    CLOSE = "close the connection"
    HALF_CLOSE = "end this direction, and wait until the client ends the other"


@dataclass(frozen=True, slots=True)
class Pause:
    """Time that passes before the next piece."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Flood:
    """`piece` again and again until `total_bytes` were taken, or the client leaves."""

    piece: bytes
    total_bytes: int


type Step = bytes | Stop | Pause | Flood | asyncio.Barrier
"""A barrier holds each of its connections until all of them have come to it."""

type Script = Sequence[Step]
"""What one request is answered with; a connection that it does not end takes another request."""


class Server:
    """Plays the next script for each request; the last one again and again.

    `requests` has them as they came, head and body. `left` counts the clients that went away in
    the middle of a script, `floods` the floods that were taken to their end.
    """

    def __init__(self, *scripts: Script) -> None:
        self.scripts: list[Script] = list(scripts)
        self.requests: list[bytes] = []
        self.left = 0
        self.floods = 0
        self._served = 0
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._changed = asyncio.Condition()

    @property
    def url(self) -> str:
        """Where it is; without a path."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, limit=_REQUEST_BYTES
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await _look_around()  # what was accepted a moment ago
        tasks = list(self._open)
        for task in tasks:
            self._open[task].transport.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    def play(self, *scripts: Script) -> None:
        """Answer from now on with `scripts`."""
        self.scripts = list(scripts)
        self._served = 0

    async def until(self, true: Callable[[], bool]) -> None:
        """Return as soon as `true()`, which is asked whenever something has come or gone."""
        async with self._changed:
            await self._changed.wait_for(true)

    async def until_asked(self, count: int) -> None:
        """Return as soon as `count` requests have come."""
        await self.until(lambda: len(self.requests) >= count)

    async def until_left(self, count: int) -> None:
        """Return as soon as `count` clients have left in the middle of a script."""
        await self.until(lambda: self.left >= count)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(self._open.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader, writer)) is not None:
                script = self.scripts[min(self._served, len(self.scripts) - 1)]
                self._served += 1
                self.requests.append(request)
                await self._notify()
                if not await self._play(script, reader, writer):
                    break
        except ConnectionError:
            self.left += 1
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                await writer.wait_closed()
            await self._notify()

    async def _play(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Return whether the connection can be used again. ConnectionError: the client left."""
        for step in script:
            match step:
                case bytes():
                    await _send(writer, step)
                case Pause():
                    await asyncio.sleep(step.seconds)
                case asyncio.Barrier():
                    await step.wait()
                case Flood():
                    await self._flood(step, writer)
                case Stop.STALL:
                    await _gone(reader)
                    raise ConnectionResetError("the client left")
                case Stop.HALF_CLOSE:
                    writer.write_eof()
                    await _gone(reader)
                    return False
                case Stop.RESET:
                    _socket(writer).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    writer.transport.abort()
                    return False
                case Stop.CLOSE:
                    return False
        return True

    async def _flood(self, flood: Flood, writer: asyncio.StreamWriter) -> None:
        _socket(writer).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        writer.transport.set_write_buffer_limits(high=0)
        for _ in range(flood.total_bytes // len(flood.piece)):
            await _send(writer, flood.piece)
        self.floods += 1

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@contextlib.asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    """Give a URL whose port is taken and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def _send(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send one piece, and let the client read it before the next."""
    writer.write(piece)
    await writer.drain()
    await _look_around()


async def _look_around() -> None:
    for _ in range(_LOOK_AROUND):
        await asyncio.sleep(0)


async def _gone(reader: asyncio.StreamReader) -> None:
    """Return as soon as the client has closed its side."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(1 << 16):
            pass


def _socket(writer: asyncio.StreamWriter) -> socket.socket:
    found: socket.socket = writer.get_extra_info("socket")
    return found


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """Return the next request whole; None when the client has left, or speaks no HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = _fields(head)
        if fields.get("expect") == "100-continue":
            await _send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        if fields.get("transfer-encoding") == "chunked":
            return head + await _chunks(reader)
        return head + await reader.readexactly(int(fields.get("content-length", "0")))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None


def _fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip().lower() for name, _, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readuntil(b"\r\n")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return body
