"""Clients that are good but for one thing: what the two broken ones do not break."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import cast

import httpx2

from psych_runtime.errors import ContextOverflow, ModelPermanent, ModelTransient
from psych_runtime.model._chunks import ChunkReader
from psych_runtime.model._sse import SseParser
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import Takes
from psych_schema.common import Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    Message,
    ModelEvent,
    ModelRequest,
    Part,
    TextDelta,
    TextPart,
    ToolMessage,
    UsageReport,
    UserMessage,
)
from tests.functional.model.raw_http import Connection
from tests.functional.model.tally import TallyClient

__all__ = [
    "AddsUsage",
    "AnswersTwiceOnly",
    "AsksAtOnce",
    "BelievesTheContentType",
    "Buffers",
    "CallsByName",
    "CompletesArguments",
    "CountsItsRequests",
    "CountsTheCacheTwice",
    "DropsBareCalls",
    "DropsCallsWithoutId",
    "FillsGaps",
    "FinishesAtOnce",
    "FollowsRedirects",
    "ForgetsExtras",
    "ForgetsFilesOfTools",
    "ForgetsImages",
    "ForgetsTheKey",
    "ForgetsTheSeed",
    "HasAListOfFields",
    "HasAListOfModels",
    "HidesCancellation",
    "InventsBytes",
    "InventsUsage",
    "JudgesToolsAsPeople",
    "KeepsItsPlace",
    "LetsExtrasWin",
    "MergesEqualIds",
    "MixesCalls",
    "MixesStreams",
    "NamesEveryFile",
    "NeedsADelta",
    "NeedsChunks",
    "NeedsWords",
    "NeverGivesUp",
    "OneEventAPiece",
    "OverflowsByWord",
    "ParsesTheRefusal",
    "ReadsSeconds",
    "ReadsTheRefusal",
    "RemembersIds",
    "RemembersUsage",
    "RepeatsEveryThought",
    "RepeatsNames",
    "RepeatsTheRefusal",
    "ShowsItsKey",
    "SkipsWrongShapes",
    "TakesMoreThanItSays",
    "TimesTheWhole",
    "TrustsItsPool",
]


class _Edited(OpenAIClient):
    """Our adapter; what it tells is edited."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(f"{base_url}/v1", api_key=api_key, max_connections=max_connections)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async with aclosing(self.edit(super().stream(request))) as events:
            async for event in events:
                yield event

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        async with aclosing(told):
            async for event in told:
                for edited in self.event(event):
                    yield edited

    def event(self, event: ModelEvent) -> Iterable[ModelEvent]:
        return (event,)


class Buffers(_Edited):
    """Tells everything at the end."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        for event in [event async for event in told]:
            yield event


class NeedsWords(_Edited):
    """Takes an answer without words for a failure."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        words = False
        async with aclosing(told):
            async for event in told:
                words = words or not isinstance(event, Finish)
                if not words:
                    raise ModelTransient("an empty answer")
                yield event


class InventsUsage(_Edited):
    """Reports zero where nothing was counted."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        counted = False
        async with aclosing(told):
            async for event in told:
                counted = counted or isinstance(event, UsageReport)
                if isinstance(event, Finish) and not counted:
                    yield UsageReport(usage=Usage(input_tokens=0, output_tokens=0))
                yield event


class CallsByName(_Edited):
    """Knows a call by its name, since ids cannot be trusted."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        names: dict[int, str] = {}
        async with aclosing(told):
            async for event in told:
                if isinstance(event, CallDelta):
                    name = names.setdefault(event.index, event.name or "")
                    index = list(dict.fromkeys(names.values())).index(name)
                    event = event.model_copy(update={"index": index})
                yield event


class MergesEqualIds(_Edited):
    """Knows a call by its id alone."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        ids: dict[int, str | None] = {}
        async with aclosing(told):
            async for event in told:
                if isinstance(event, CallDelta):
                    known = ids.setdefault(event.index, event.provider_id)
                    index = list(dict.fromkeys(ids.values())).index(known)
                    event = event.model_copy(update={"index": index})
                yield event


class MixesCalls(_Edited):
    """Takes every piece for one of the call that began last."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        last = -1
        async with aclosing(told):
            async for event in told:
                if isinstance(event, CallDelta):
                    last += event.name is not None
                    event = event.model_copy(update={"index": max(last, 0)})
                yield event


class DropsCallsWithoutId(_Edited):
    """A call needs an id."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        known: set[int] = set()
        async with aclosing(told):
            async for event in told:
                if isinstance(event, CallDelta):
                    if event.provider_id:
                        known.add(event.index)
                    if event.index not in known:
                        continue
                yield event


class DropsBareCalls(_Edited):
    """A call needs arguments."""

    def event(self, event: ModelEvent) -> Iterable[ModelEvent]:
        bare = isinstance(event, CallDelta) and not event.arguments
        return () if bare else (event,)


class CompletesArguments(_Edited):
    """Makes JSON of what is none."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        text = ""
        async with aclosing(told):
            async for event in told:
                if isinstance(event, CallDelta):
                    text += event.arguments
                    event = event.model_copy(update={"arguments": ""})
                elif isinstance(event, Finish) and text:
                    yield CallDelta(index=0, arguments=_mended(text))
                yield event


class RemembersIds(_Edited):
    """Takes an id that it has seen for a repetition."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._seen: set[str] = set()

    def event(self, event: ModelEvent) -> Iterable[ModelEvent]:
        if isinstance(event, CallDelta) and event.provider_id:
            if event.provider_id in self._seen:
                return ()
            self._seen.add(event.provider_id)
        return (event,)


class MixesStreams(_Edited):
    """Keeps what it is about to tell on the client."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._held: ModelEvent | None = None

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        async with aclosing(told):
            async for event in told:
                held, self._held = self._held, event
                if held is not None:
                    yield held
                if isinstance(event, Finish):
                    self._held = None
                    yield event


class AddsUsage(_Edited):
    """Takes totals so far for additions."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        output = 0
        async with aclosing(told):
            async for event in told:
                if isinstance(event, UsageReport):
                    output += event.usage.output_tokens or 0
                    usage = event.usage.model_copy(update={"output_tokens": output})
                    event = event.model_copy(update={"usage": usage})
                yield event


class CountsTheCacheTwice(_Edited):
    """Leaves what was cached in the input."""

    def event(self, event: ModelEvent) -> Iterable[ModelEvent]:
        if not isinstance(event, UsageReport):
            return (event,)
        usage = event.usage
        whole = (usage.input_tokens or 0) + (usage.cache_read_tokens or 0)
        return (UsageReport(usage=usage.model_copy(update={"input_tokens": whole})),)


class RemembersUsage(_Edited):
    """Tells the last usage that it saw where a call has none."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._last: UsageReport | None = None

    def event(self, event: ModelEvent) -> Iterable[ModelEvent]:
        if isinstance(event, UsageReport):
            self._last = event
        if isinstance(event, Finish) and self._last is not None:
            return (self._last, event)
        return (event,)


class HidesCancellation(_Edited):
    """Makes a failure of it."""

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        try:
            async with aclosing(super().edit(told)) as events:
                async for event in events:
                    yield event
        except asyncio.CancelledError as error:
            raise ModelTransient("cancelled") from error


class TimesTheWhole(_Edited):
    """Bounds the call, not the silence."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        loop = asyncio.get_running_loop()
        over = loop.time() + request.stream_idle_seconds
        async with aclosing(super().stream(request)) as told:
            async for event in told:
                if loop.time() > over:
                    raise ModelTransient("it took too long")
                yield event


class AnswersTwiceOnly(_Edited):
    """Gives up for good when a connection that it kept is gone."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._calls = 0

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        self._calls += 1
        async with aclosing(super().edit(told)) as events:
            if self._calls > 2:
                raise ModelPermanent("the connection is closed")
            async for event in events:
                yield event


class KeepsItsPlace(_Edited):
    """Frees the place of a call that failed, and forgets that of one that went well."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._places = asyncio.Semaphore(max_connections)

    async def edit(self, told: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        await self._places.acquire()
        async with aclosing(super().edit(told)) as events:
            async for event in events:
                yield event


class ForgetsTheKey(_Edited):
    """Authenticates with nothing."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, "none-at-all", max_connections)


class ShowsItsKey(_Edited):
    """Has a repr of all that it was made of."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._shown = f"ShowsItsKey(base_url={base_url!r}, api_key={api_key!r})"

    def __repr__(self) -> str:
        return self._shown


class HasAListOfModels(_Edited):
    """Answers with another type than the port says."""

    def models(self) -> frozenset[str] | None:
        return cast("frozenset[str]", ["a", "b"])


class AsksAtOnce(_Edited):
    """Begins the call when the stream is made."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        begun = asyncio.ensure_future(_all(super().stream(request)))
        return self._told(begun)

    async def _told(self, begun: "asyncio.Future[list[ModelEvent]]") -> AsyncGenerator[ModelEvent]:
        for event in await begun:
            yield event


async def _all(told: AsyncGenerator[ModelEvent]) -> list[ModelEvent]:
    return [event async for event in told]


class _Raw:
    """A client over plain sockets; what it makes of pieces, messages and statuses is changed."""

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
            await connection.ask(request, api_key=self._api_key)
            if connection.status != 200:
                await self.refused(connection, request)
            async with aclosing(self.read(connection)) as events:
                async for event in events:
                    yield event
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            problem = type(error).__name__
        else:
            return
        finally:
            connection.writer.close()
        raise ModelTransient(problem)

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        raise ModelPermanent(f"answered {connection.status}", status=connection.status)

    async def read(self, connection: Connection) -> AsyncGenerator[ModelEvent]:
        parser, reader = SseParser(), ChunkReader(host="loopback", redact=str)
        async for piece in self.pieces(connection):
            for data in self.messages(parser, piece):
                for event in self.chunk(reader, data):
                    yield event
        for event in reader.end():
            yield event

    def pieces(self, connection: Connection) -> AsyncIterator[bytes]:
        return connection.pieces()

    def messages(self, parser: SseParser, piece: bytes) -> Sequence[str]:
        return [event.data for event in parser.feed(piece)]

    def chunk(self, reader: ChunkReader, data: str) -> Iterator[ModelEvent]:
        return iter(()) if data == "[DONE]" else reader.read(json.loads(data))


class OneEventAPiece(_Raw):
    """Looks at the first message of what it has read."""

    def messages(self, parser: SseParser, piece: bytes) -> Sequence[str]:
        return super().messages(parser, piece)[:1]


class NeedsChunks(_Raw):
    """Knows one framing."""

    def pieces(self, connection: Connection) -> AsyncIterator[bytes]:
        connection.headers = {"transfer-encoding": "chunked"}
        return super().pieces(connection)


class NeedsADelta(_Raw):
    """Expects words in every message."""

    def chunk(self, reader: ChunkReader, data: str) -> Iterator[ModelEvent]:
        if data != "[DONE]" and not json.loads(data)["choices"]:
            raise ModelTransient("a message without choices")
        return super().chunk(reader, data)


class FinishesAtOnce(_Raw):
    """Tells the finish when it is said, whatever comes behind it."""

    async def read(self, connection: Connection) -> AsyncGenerator[ModelEvent]:
        parser, reader = SseParser(), ChunkReader(host="loopback", redact=str)
        async for piece in connection.pieces():
            for data in self.messages(parser, piece):
                for event in self.chunk(reader, data):
                    yield event
                if '"finish_reason":"stop"' in data:
                    yield Finish(reason="stop")


class FillsGaps(_Raw):
    """Keeps calls in a list, with a call at each place up to the last."""

    def chunk(self, reader: ChunkReader, data: str) -> Iterator[ModelEvent]:
        chunk = {} if data == "[DONE]" else json.loads(data)
        for choice in chunk.get("choices", ()):
            for piece in choice["delta"].get("tool_calls") or ():
                for index in range(piece["index"]):
                    yield CallDelta(index=100 + index)
        yield from super().chunk(reader, data)


class BelievesTheContentType(_Raw):
    """Takes what is called plain text for the words of the model."""

    async def read(self, connection: Connection) -> AsyncGenerator[ModelEvent]:
        if connection.headers.get("content-type") == "text/event-stream":
            async with aclosing(super().read(connection)) as events:
                async for event in events:
                    yield event
            return
        async for piece in connection.pieces():
            yield TextDelta(text=piece.decode())
        yield Finish(reason="stop")


class RepeatsTheRefusal(_Raw):
    """Says in its error what the provider said."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        body = b"".join([piece async for piece in connection.pieces()])
        raise ModelPermanent(body.decode(errors="replace"), status=connection.status)


class FollowsRedirects(_Raw):
    """Goes where it is sent, and takes the key along."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        target = await Connection.open(connection.headers["location"])
        try:
            await target.ask(request, api_key=self._api_key)
        finally:
            target.writer.close()
        await super().refused(connection, request)


class NeverGivesUp(_Raw):
    """Keeps a line until it ends."""

    async def read(self, connection: Connection) -> AsyncGenerator[ModelEvent]:
        parser = SseParser(line_bytes=1 << 40)
        reader = ChunkReader(host="loopback", redact=str)
        async for piece in connection.pieces():
            for data in self.messages(parser, piece):
                for event in self.chunk(reader, data):
                    yield event
        for event in reader.end():
            yield event


class SkipsWrongShapes(_Raw):
    """Reads of a chunk what it can read."""

    def chunk(self, reader: ChunkReader, data: str) -> Iterator[ModelEvent]:
        with suppress(ModelTransient):
            yield from super().chunk(reader, data)


class ReadsTheRefusal(_Raw):
    """All of it."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        body = b"".join([piece async for piece in connection.pieces()])
        raise ModelTransient(f"refused: {len(body)} bytes", status=connection.status)


class ParsesTheRefusal(_Raw):
    """Expects the error object that is published."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        body = b"".join([piece async for piece in connection.pieces()])
        message = json.loads(body)["error"]["message"]
        kind = ModelPermanent if connection.status < 500 else ModelTransient
        raise kind(f"refused: {len(message)} characters", status=connection.status)


class ReadsSeconds(_Raw):
    """Takes a Retry-After for a number, and for no more than one."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        said = connection.headers.get("retry-after")
        wait = None if said is None else float(said)
        raise ModelTransient("later", status=connection.status, retry_after_seconds=wait)


class OverflowsByWord(_Raw):
    """Knows an overflow by the word."""

    async def refused(self, connection: Connection, request: ModelRequest) -> None:
        body = b"".join([piece async for piece in connection.pieces()])
        if b"token" in body.lower():
            raise ContextOverflow("too long", status=connection.status)
        await super().refused(connection, request)


class TrustsItsPool(TallyClient):
    """Keeps connections as its HTTP library does."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key=api_key, max_connections=max_connections, keep=True)

    async def lines(self, response: httpx2.Response, idle_seconds: float) -> AsyncGenerator[bytes]:
        async with aclosing(super().lines(response, idle_seconds)) as lines:
            for line in [line async for line in lines]:
                yield line


def _mended(text: str) -> str:
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return "{}"


class _Asks(OpenAIClient):
    """Our adapter, which wants thoughts back; what it is asked is edited."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(
            f"{base_url}/v1",
            api_key=api_key,
            max_connections=max_connections,
            reasoning_field="reasoning_content",
        )

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        return super().stream(self.edited(request))

    def edited(self, request: ModelRequest) -> ModelRequest:
        return request


class HasAListOfFields(_Asks):
    """Answers with another type than the port says."""

    def takes(self) -> Takes:
        return cast("Takes", ["seed"])


class ForgetsTheSeed(_Asks):
    """Does not send a field that it says it takes."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        return request.model_copy(update={"seed": None})


class TakesMoreThanItSays(_Asks):
    """Sends a field on that it says it does not take."""

    def takes(self) -> Takes:
        return Takes(super().takes().fields - {"seed"}, super().takes().own)


class ForgetsExtras(_Asks):
    """Sends a member under the name of one that it was given, and not what stood there."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        return request.model_copy(update={"extras": dict.fromkeys(request.extras)})


class LetsExtrasWin(_Asks):
    """Lets extras set what it says it writes itself."""

    def takes(self) -> Takes:
        return Takes(super().takes().fields, super().takes().own | {"user"})


class ForgetsImages(_Asks):
    """Sends the words of a message that has an image, too."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        messages = [
            message.model_copy(update={"parts": [p for p in message.parts if p.kind != "blob"]})
            for message in request.messages
        ]
        return request.model_copy(update={"messages": messages})


class InventsBytes(_Asks):
    """Takes an image whose bytes are not there for an empty one."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        parts = (part for message in request.messages for part in message.parts)
        empty = {part.blob.hash: "" for part in parts if part.kind == "blob"}
        return request.model_copy(update={"attachments": {**empty, **request.attachments}})


class RepeatsEveryThought(_Asks):
    """Takes another model's thoughts for its own."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        return request.model_copy(update={"ref": "another"})


class CountsItsRequests(_Asks):
    """Sends a number with each request."""

    def __init__(self, base_url: str, api_key: str, max_connections: int) -> None:
        super().__init__(base_url, api_key, max_connections)
        self._count = 0

    def edited(self, request: ModelRequest) -> ModelRequest:
        self._count += 1
        return request.model_copy(update={"extras": {**request.extras, "user": str(self._count)}})


class _Returns(_Asks):
    """Our adapter; what tools returned is edited."""

    def edited(self, request: ModelRequest) -> ModelRequest:
        messages = [
            one
            for message in request.messages
            for one in (self.tool(message) if isinstance(message, ToolMessage) else [message])
        ]
        return request.model_copy(update={"messages": messages})

    def tool(self, message: ToolMessage) -> list[Message]:
        parts = tuple(new for part in message.parts for new in self.part(part))
        return [message.model_copy(update={"parts": parts})]

    def part(self, part: Part) -> list[Part]:
        return [part]


class JudgesToolsAsPeople(_Returns):
    """Shows what a tool returned as if a person had sent it."""

    def tool(self, message: ToolMessage) -> list[Message]:
        files = tuple(part for part in message.parts if part.kind == "blob")
        return [ToolMessage(call_id=message.call_id, parts=()), UserMessage(parts=files)]


class ForgetsFilesOfTools(_Returns):
    """Sends the words of a tool alone."""

    def part(self, part: Part) -> list[Part]:
        return [] if part.kind == "blob" else [part]


class RepeatsNames(_Returns):
    """Says what a file is called, as it is called."""

    def part(self, part: Part) -> list[Part]:
        return [TextPart(text=part.name or ""), part] if part.kind == "blob" else [part]


class NamesEveryFile(_Returns):
    """Takes each blob for a file."""

    def part(self, part: Part) -> list[Part]:
        if part.kind != "blob":
            return [part]
        return [part.model_copy(update={"name": part.name or "kit"})]
