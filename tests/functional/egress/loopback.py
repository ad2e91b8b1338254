"""Servers on loopback that say exactly the bytes of a script, and a resolver that a test writes."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Self

from psych_runtime.egress import OutboundRequest, Permit
from psych_schema.common import Scope

__all__ = [
    "ACME",
    "GLOBEX",
    "LOOPBACK",
    "Asked",
    "Loopback",
    "Names",
    "Script",
    "drip",
    "get",
    "raw",
    "redirect",
    "reply",
    "stall",
]

ACME = Scope(tenant="acme")
GLOBEX = Scope(tenant="globex")

LOOPBACK = Permit(networks=["127.0.0.1/32"])
"""What stands for the public Internet: no test reaches further."""


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


type Script = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
"""Writes what the server answers; the connection stays open when it returns, unless it closed."""


class Loopback:
    """Answers each request by the next script; the last one again and again."""

    def __init__(
        self, *scripts: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.scripts = list(scripts)
        self.host = host
        self.tls = tls
        self.asked: list[Asked] = []
        self.connections = 0
        self.open = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()

    def url(self, path: str = "/", *, host: str | None = None) -> str:
        """Return a URL of it, under its address or another name."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://{host or self.host}:{self.port}{path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def until_asked(self, count: int) -> None:
        """Return as soon as `count` requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.asked) >= count)

    async def until_closed(self) -> None:
        """Return as soon as no client has a connection."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open == 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self._writers.add(writer)
        try:
            while (asked := await _read(reader)) is not None:
                script = self.scripts[min(len(self.asked), len(self.scripts) - 1)]
                self.asked.append(asked)
                await self._notify()
                await script(asked, writer)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self.open -= 1
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Names:
    """A resolver: each look-up of a name gives its next answer, the last one again and again."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.looked_up: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses that the test wrote."""
        self.looked_up.append(host)
        answers = self._answers.get(host)
        if answers is None:
            raise OSError(-2, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def reply(
    body: bytes = b"ok", *fields: str, status: int = 200, length: int | None = None
) -> Script:
    """Answer with a length that need not be true."""

    async def write(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        stated = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {stated}", *fields]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    return write


def redirect(location: str, *, status: int = 302) -> Script:
    """Lead elsewhere."""
    return reply(b"", f"Location: {location}", status=status)


def stall(said: bytes = b"") -> Script:
    """Say something, then nothing until the client leaves."""

    async def write(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    return write


def raw(said: bytes) -> Script:
    """Say something, then hang up."""

    async def write(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    return write


def drip(said: bytes, piece: bytes) -> Script:
    """Say something, then a piece again and again until the client leaves."""

    async def write(_asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return write


def get(url: str) -> OutboundRequest:
    """Return a GET whose times fail no test on a slow machine."""
    return OutboundRequest(method="GET", url=url, total_seconds=30)


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    """Return the next request; None when the client has left."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _version = first.split(" ")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Asked(method, target, headers, body)
