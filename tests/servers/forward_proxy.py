"""A forward proxy on loopback that knows CONNECT alone, and notes all that it is told."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import NamedTuple, Self

__all__ = ["Connect", "ForwardProxy"]


class Connect(NamedTuple):
    """What it was asked: its first line, and the headers."""

    line: str
    headers: dict[str, str]


class ForwardProxy:
    """Opens tunnels to where `routes` leads; any other target is answered 502.

    Args:
        routes: a target as it stands in CONNECT to a port of loopback.
        authorization: what `Proxy-Authorization` has to say, or the answer is 407.
        statuses: answers to targets that are not connected to.
        tls: for a proxy that is spoken to through TLS.
    """

    def __init__(
        self,
        routes: Mapping[str, int] | None = None,
        *,
        authorization: str | None = None,
        statuses: Mapping[str, int] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.routes = dict(routes or {})
        self.authorization = authorization
        self.statuses = dict(statuses or {})
        self.tls = tls
        self.asked: list[Connect] = []
        self.connections = 0
        self.open = 0
        self.port = 0
        self.sent = bytearray()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        """What it was asked for, in order."""
        return [each.line.removeprefix("CONNECT ").removesuffix(" HTTP/1.1") for each in self.asked]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def until_closed(self) -> None:
        """Return as soon as nobody has a connection."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open == 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self._writers.add(writer)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self._writers.discard(writer)
            await _end(writer)
            self.open -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")[:-2]
        pairs = (each.split(": ", 1) for each in fields)
        headers = {name.lower(): value for name, value in pairs}
        self.asked.append(Connect(line, headers))
        status = self._status(self.targets[-1], headers)
        writer.write(f"HTTP/1.1 {status} Status\r\nVia: 1.1 proxy\r\n\r\n".encode())
        await writer.drain()
        if status == 200:
            port = self.routes[self.targets[-1]]
            there_reader, there = await asyncio.open_connection("127.0.0.1", port)
            self._writers.add(there)
            try:
                await asyncio.gather(
                    self._pass_on(reader, there, self.sent),
                    self._pass_on(there_reader, writer, bytearray()),
                )
            finally:
                self._writers.discard(there)
                await _end(there)

    def _status(self, target: str, headers: Mapping[str, str]) -> int:
        if self.authorization not in (None, headers.get("proxy-authorization")):
            return 407
        return self.statuses.get(target, 200 if target in self.routes else 502)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, noted: bytearray
    ) -> None:
        """Pass on what comes, until either side leaves."""
        try:
            while piece := await reader.read(65536):
                noted += piece
                writer.write(piece)
                await writer.drain()
        finally:
            writer.close()


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
