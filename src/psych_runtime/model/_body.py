"""Reads the JSON values of a response, streamed or whole, and gives up on silence (MOD-5)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from psych_runtime.egress import Answer
from psych_runtime.errors import EgressFailed, ModelPermanent, ModelTransient
from psych_runtime.model._json import parse
from psych_runtime.model._sse import Event, SseParser

__all__ = ["WHOLE_BYTES", "Failed", "values"]

WHOLE_BYTES = 8 << 20
"""A completion that is not streamed may be so long."""

_DRAIN_SECONDS = 0.05
_BLANK = b"\xef\xbb\xbf \t\r\n"


@dataclass(frozen=True, slots=True)
class Failed:
    """What an event named `error` said."""

    said: object


async def values(
    answer: Answer, *, host: str, idle_seconds: float, is_last: Callable[[Event], bool]
) -> AsyncGenerator[object]:
    """Yield each JSON value of the body, and Failed for an event that is an error.

    A server that does not stream, though asked to, sends one object: that is one value. Ends
    before the event that `is_last` knows, or at the end of the body. Only events count as life,
    not comments: without one for `idle_seconds` it is ModelTransient, as are a broken connection
    and what is no JSON.
    """
    try:
        async with aclosing(answer.chunks()) as chunks:
            first = await _first(chunks, host, idle_seconds)
            found = first.lstrip(_BLANK)[:1]
            if found == b"<":
                raise ModelPermanent(f"{host} answered with a web page; is base_url right?")
            if found == b"{":
                yield _value(await _rest(chunks, first, host), host)
                return
            async with aclosing(_events(chunks, first, host, idle_seconds)) as events:
                async for event in events:
                    if is_last(event):
                        await _drain(chunks)
                        return
                    yield _judged(event, host)
    except EgressFailed as error:
        raise ModelTransient(str(error)) from error


async def _events(
    chunks: AsyncGenerator[bytes], first: bytes, host: str, idle_seconds: float
) -> AsyncGenerator[Event]:
    parser = SseParser()
    events = parser.feed(first)
    over = not first
    while True:
        for event in events:
            yield event
        if over:
            return
        events = []
        async with _patience(host, idle_seconds):
            while not events and not over:
                chunk = await anext(chunks, None)
                over = chunk is None
                events = parser.end() if chunk is None else parser.feed(chunk)


async def _first(chunks: AsyncGenerator[bytes], host: str, idle_seconds: float) -> bytes:
    """Return the body up to the first byte that tells what it is; all of it if none does."""
    head = b""
    async with _patience(host, idle_seconds):
        while not head.strip(_BLANK):
            chunk = await anext(chunks, None)
            if chunk is None:
                break
            head = head.strip(_BLANK) + chunk
    return head


async def _rest(chunks: AsyncGenerator[bytes], first: bytes, host: str) -> str:
    body = bytearray(first)
    async for chunk in chunks:
        body += chunk
        if len(body) > WHOLE_BYTES:
            raise ModelPermanent(f"{host} answered with more than {WHOLE_BYTES} bytes")
    with contextlib.suppress(UnicodeDecodeError):
        return body.decode()
    raise ModelTransient(f"{host} sent a garbled answer: bytes that are no UTF-8")


async def _drain(chunks: AsyncGenerator[bytes]) -> None:
    """Read the end of the body, which mostly is there already: then the connection is kept."""
    with contextlib.suppress(TimeoutError, EgressFailed):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


@contextlib.asynccontextmanager
async def _patience(host: str, idle_seconds: float) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(idle_seconds):
            yield
    except TimeoutError:
        raise ModelTransient(f"{host} sent no event for {idle_seconds:g} s") from None


def _judged(event: Event, host: str) -> object:
    if event.type == "error":
        with contextlib.suppress(ValueError):
            return Failed(parse(event.data))
        return Failed(event.data)
    return _value(event.data, host)


def _value(text: str, host: str) -> object:
    """Return the value; a decoder's error, which carries the text along, is not passed on."""
    with contextlib.suppress(ValueError):
        return parse(text)
    raise ModelTransient(f"{host} sent a garbled chunk: no JSON, or too deep")
