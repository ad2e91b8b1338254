"""Two clients that break the contract of the model port in many ways at once (MOD-5, C3)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress

from psych_runtime.errors import ModelPermanent, ModelTransient
from psych_runtime.model._chunks import ChunkReader
from psych_runtime.model._sse import SseParser
from psych_schema.model import (
    CallDelta,
    Finish,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from tests.functional.model.raw_http import Connection

__all__ = ["LeakyClient", "NaiveClient"]


class NaiveClient:
    """Reads each piece by itself, skips what it cannot read, takes any end for the end."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        self._base_url = base_url
        self._api_key = api_key

    def models(self) -> frozenset[str] | None:
        return None

    async def aclose(self) -> None:
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        connection = await Connection.open(self._base_url)
        try:
            async with asyncio.timeout(request.stream_idle_seconds):
                await connection.ask(request, api_key=self._api_key)
            if connection.status != 200:
                raise ModelPermanent(f"answered {connection.status}", status=connection.status)
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                async for piece in connection.pieces():
                    for event in self._events(piece.decode(errors="replace")):
                        yield event
            yield Finish(reason="stop")
        finally:
            connection.writer.close()

    def _events(self, text: str) -> Iterator[ModelEvent]:
        for line in text.split("\n"):
            if not line.startswith("data: "):
                continue
            try:
                chunk = json.loads(line.removeprefix("data: "))
            except ValueError:
                continue
            for choice in chunk.get("choices", []):
                delta = choice["delta"]
                if delta.get("content"):
                    yield TextDelta(text=delta["content"])
                for piece in delta.get("tool_calls") or []:
                    yield CallDelta(
                        index=piece["index"],
                        provider_id=piece.get("id"),
                        name=piece["function"].get("name"),
                        arguments=piece["function"].get("arguments", ""),
                    )


class LeakyClient:
    """Reads well, but loses usage, waits for ever, and keeps what it does not need any more."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._places = asyncio.Semaphore(max_connections)
        self._kept: list[Connection] = []

    def models(self) -> frozenset[str] | None:
        return None

    async def aclose(self) -> None:
        for connection in self._kept:
            connection.writer.transport.abort()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        await self._places.acquire()
        try:
            connection = await Connection.open(self._base_url)
            self._kept.append(connection)
            await connection.ask(request, api_key=self._api_key)
            if connection.status != 200:
                raise ModelTransient(f"answered {connection.status}", status=connection.status)
            async with aclosing(self._events(connection)) as events:
                async for event in events:
                    if not isinstance(event, UsageReport):
                        yield event
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise ModelTransient(str(error)) from error
        connection.writer.close()  # a call that is cut short never comes here
        self._places.release()

    async def _events(self, connection: Connection) -> AsyncGenerator[ModelEvent]:
        parser = SseParser()
        reader = ChunkReader(host="loopback", redact=lambda text: text.replace(self._api_key, "*"))
        async for piece in connection.pieces():
            for message in parser.feed(piece):
                if message.data == "[DONE]":
                    continue
                for event in reader.read(json.loads(message.data)):
                    yield event
        for event in reader.end():
            yield event
