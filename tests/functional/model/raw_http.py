"""Just enough HTTP over asyncio streams for clients that are broken on purpose."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from psych_schema.model import ModelRequest

__all__ = ["Connection"]


class Connection:
    """One request and its answer; nothing is checked, and nothing is bounded."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.status = 0
        self.headers: Mapping[str, str] = {}

    @classmethod
    async def open(cls, base_url: str) -> "Connection":
        """Connect."""
        url = urlsplit(base_url)
        assert url.hostname is not None
        return cls(*await asyncio.open_connection(url.hostname, url.port, limit=1 << 20))

    async def ask(
        self, request: ModelRequest, *, api_key: str, path: str = "/chat/completions"
    ) -> None:
        """Send the request; return with status and headers."""
        body = json.dumps({"model": request.model, "stream": True}).encode()
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: loopback",
            f"Authorization: Bearer {api_key}",
            f"Content-Length: {len(body)}",
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()
        first, *fields = (await self._head()).split("\r\n")
        self.status = int(first.split(" ")[1])
        pairs = (field.partition(":") for field in fields if field)
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body: chunk by chunk, or as it comes; an end is an end."""
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int((await self._reader.readuntil(b"\r\n")).strip(), 16):
                yield await self._reader.readexactly(size)
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)
            return
        left = int(self.headers.get("content-length", str(1 << 62)))
        while left and (piece := await self._reader.read(min(left, 1 << 16))):
            left -= len(piece)
            yield piece

    async def _head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
