"""A loopback server for the chat/completions format, written from its published description.

It says what a test scripts, well-formed or hostile: where pieces are split, when it falls silent,
when it hangs up, what it claims about length and type.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Self

from pydantic import JsonValue

__all__ = [
    "OpenAIServer",
    "Piece",
    "Reply",
    "Seen",
    "Stop",
    "answer",
    "call_chunk",
    "error",
    "finish_chunk",
    "silence",
    "sse",
    "text_chunk",
    "usage_chunk",
]

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 429: "Too Many Requests"}

_TLS = b"\x16"


class Stop(Enum):
    """What a reply may do instead of sending its next piece."""

    STALL = "send nothing until the client leaves"
    HANG_UP = "cut the connection"


type Piece = bytes | Stop


@dataclass
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, JsonValue]:
        """The body as an object."""
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


@dataclass
class _Exchange:
    seen: Seen
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


type Reply = Callable[[_Exchange], Awaitable[bool]]
"""Writes one answer; returns whether the connection can be used again."""


class OpenAIServer:
    """Answers each request with the next reply; the last one again and again.

    `seen` has the requests, `connections` counts those accepted, `left` the clients that closed a
    connection in the middle of a reply.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.seen: list[Seen] = []
        self.connections = 0
        self.left = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()

    @property
    def port(self) -> int:
        """The ephemeral port."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        assert isinstance(port, int)
        return port

    @property
    def base_url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def until_seen(self, count: int) -> None:
        """Return as soon as `count` requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.seen) >= count)

    async def until_left(self, count: int) -> None:
        """Return as soon as `count` clients have left in the middle of a reply."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.left >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (seen := await _read_request(reader)) is not None:
                reply = self.replies[min(len(self.seen), len(self.replies) - 1)]
                self.seen.append(seen)
                await self._notify()
                if not await reply(_Exchange(seen, reader, writer)):
                    break
        except ConnectionError:
            self.left += 1
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def answer(
    *pieces: Piece,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    content_type: str | None = "text/event-stream",
    framing: Literal["chunked", "length", "close"] = "chunked",
    length: int | None = None,
) -> Reply:
    """Answer with `pieces`, each flushed by itself.

    Args:
        framing: how the client can know the end of the body.
        length: a Content-Length that need not be true.
    """

    async def write(exchange: _Exchange) -> bool:
        writer = exchange.writer
        fields = dict(headers or {})
        if content_type is not None:
            fields["Content-Type"] = content_type
        if framing == "chunked":
            fields["Transfer-Encoding"] = "chunked"
        elif framing == "length":
            whole = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
            fields["Content-Length"] = str(whole if length is None else length)
        writer.write(_head(status, fields))
        for piece in pieces:
            if piece is Stop.STALL:
                await _wait_for_leave(exchange)
            elif piece is Stop.HANG_UP:
                await writer.drain()
                writer.transport.abort()
                return False
            elif piece:
                framed = b"%x\r\n%s\r\n" % (len(piece), piece)
                writer.write(framed if framing == "chunked" else piece)
                await writer.drain()
        if framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return framing != "close" and length is None

    return write


def silence() -> Reply:
    """Take the request and say nothing at all until the client leaves."""

    async def wait(exchange: _Exchange) -> bool:
        await _wait_for_leave(exchange)
        return False

    return wait


def error(
    status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: JsonValue
) -> Reply:
    """Refuse with the published error object."""
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return answer(
        body, status=status, headers=headers, content_type="application/json", framing="length"
    )


def sse(*values: object, newline: str = "\n") -> bytes:
    """Return one event for each value: text as it is, anything else as JSON."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"data: {text}{newline}{newline}" for text in texts).encode()


def text_chunk(text: str, **delta: JsonValue) -> dict[str, JsonValue]:
    """Return a chunk that says `text`."""
    return _chunk({"content": text, **delta})


def call_chunk(
    index: int, *, id: str | None = None, name: str | None = None, arguments: str = ""
) -> dict[str, JsonValue]:
    """Return a chunk with a piece of a tool call."""
    function: dict[str, JsonValue] = {"arguments": arguments}
    piece: dict[str, JsonValue] = {"index": index, "function": function}
    if name is not None:
        function["name"] = name
    if id is not None:
        piece |= {"id": id, "type": "function"}
    return _chunk({"tool_calls": [piece]})


def finish_chunk(reason: str = "stop") -> dict[str, JsonValue]:
    """Return the chunk that ends a choice."""
    return _chunk({}, reason)


def usage_chunk(prompt: int, completion: int, **more: JsonValue) -> dict[str, JsonValue]:
    """Return the last chunk, with usage and without choices."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return {**_chunk({}), "choices": [], "usage": usage}


def _chunk(delta: Mapping[str, JsonValue], reason: str | None = None) -> dict[str, JsonValue]:
    choice: JsonValue = {"index": 0, "delta": dict(delta), "finish_reason": reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "served-model",
        "choices": [choice],
    }


def _head(status: int, fields: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    """Return the next request; None when the client has left, or speaks TLS."""
    try:
        head = await reader.read(1)
        if head in (b"", _TLS):
            return None
        head += await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ")
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body)


async def _wait_for_leave(exchange: _Exchange) -> None:
    await exchange.writer.drain()
    with contextlib.suppress(ConnectionError):
        await exchange.reader.read(1)
    raise ConnectionResetError("the client left")
