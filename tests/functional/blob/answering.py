"""A service that answers every request alike, as a test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Answering:
    """Answers with one status and body; `cut` is how many bytes of the body it keeps back."""

    def __init__(self, status: int, body: bytes, *, cut: int = 0) -> None:
        self._head = (
            f"HTTP/1.1 {status} Said\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        self._body = body[: len(body) - cut]
        self.requests: list[str] = []

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.requests.append(head.split("\r\n", 1)[0])
        for line in head.lower().split("\r\n"):
            if line.startswith("content-length:"):
                await reader.readexactly(int(line.partition(":")[2]))
            if line.startswith("expect:"):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.write(self._head + self._body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Give the address."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def error_body(code: str) -> bytes:
    """Return an error as the service says it, with a secret in its text."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
        "<Message>hunter2</Message><AWSAccessKeyId>hunter2</AWSAccessKeyId></Error>"
    ).encode()
