"""A provider that nobody has: JSON lines, exclusive usage, no mark at the end; and a good client.

What the kit knows of this format is `TallyDialect`; that the client passes shows that the kit was
not cut to the chat/completions format.
"""

import asyncio
import json
import re
import ssl
from base64 import b64decode
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import httpx2
from pydantic import JsonValue

from psych_runtime.core.model_fields import unsendable
from psych_runtime.errors import (
    ContextOverflow,
    ModelError,
    ModelPermanent,
    ModelTransient,
    UnsendableRequest,
)
from psych_runtime.model.transient import is_transient_status, retry_after_seconds
from psych_runtime.ports.model import Takes
from psych_runtime.testing.model_contract import JsonLines, Kind, Message, Refusal
from psych_schema.common import Usage
from psych_schema.model import (
    BlobPart,
    CallDelta,
    Finish,
    FinishReason,
    JsonPart,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolMessage,
    UsageReport,
)

__all__ = ["TallyClient", "TallyDialect"]

_REASONS: Final[Mapping[FinishReason, str]] = {
    "content_filter": "unsafe",
    "length": "full",
    "other": "bored",
    "stop": "enough",
    "tool_calls": "tools",
}
_TALLY: Final[Mapping[str, str]] = {
    "input_tokens": "fresh",
    "cache_read_tokens": "cached",
    "cache_write_tokens": "stored",
    "reasoning_tokens": "thought",
}
_LINE_BYTES: Final = 1 << 20
_NAME_CHARACTERS: Final = 80
_REFUSAL_BYTES: Final = 1 << 14


class TallyDialect:
    """`{"say": ...}`, `{"think": ...}`, `{"ask": ...}`, `{"more": ...}`, `{"tally": ...}`."""

    def __init__(self) -> None:
        self.wire = JsonLines()
        self.features = frozenset(
            {
                "call_ids",
                "early_usage",
                "interleaved_calls",
                "json",
                "plain_key",
                "reasoning",
                "stream_errors",
            }
        )
        self.counters = frozenset({*_TALLY, "output_tokens"})
        self.finish_reasons: Collection[FinishReason] = tuple(_REASONS)

    def answer(self, said: Sequence[ModelEvent]) -> Sequence[Sequence[Message]]:
        return [[_line(value) for value in _told(event)] for event in said]

    def end(self) -> Sequence[Message]:
        return ()

    def idle_talk(self) -> Sequence[Message]:
        return (_line({"beat": 1}), _line({"say": ""}), _line({}))

    def failures(self, kind: Kind, words: str) -> Sequence[Message]:
        return (_line(_problem("busy" if kind == "transient" else "wrong", words)),)

    def refusal(self, status: int, words: str) -> Refusal:
        return Refusal(status, json.dumps(_problem("refused", words)).encode())

    def overflows(self) -> Mapping[str, Refusal | Message]:
        problem = _problem("too_long", "That was too much.")
        return {
            "refused": Refusal(400, json.dumps(problem).encode()),
            "in the stream": _line(problem),
        }

    def near_overflows(self) -> Mapping[str, tuple[Refusal | Message, Kind]]:
        busy = _problem("busy", "Too many tokens, that was too_long an hour.")
        return {
            "a rate limit": (Refusal(429, json.dumps(busy).encode()), "transient"),
            "a rate limit in the stream": (_line(busy), "transient"),
        }


def _line(value: JsonValue) -> Message:
    return Message(json.dumps(value, ensure_ascii=False))


def _problem(kind: str, text: str) -> dict[str, JsonValue]:
    return {"problem": {"kind": kind, "text": text}}


def _told(event: ModelEvent) -> Iterator[JsonValue]:
    match event:
        case TextDelta():
            yield {"say": event.text}
        case ReasoningDelta():
            yield {"think": event.text}
        case CallDelta():
            if event.name is not None:
                yield {"ask": {"n": event.index, "tool": event.name, "ref": event.provider_id}}
            if event.arguments:
                yield {"more": {"n": event.index, "text": event.arguments}}
        case UsageReport():
            counts = {word: getattr(event.usage, name) or 0 for name, word in _TALLY.items()}
            spoken = (event.usage.output_tokens or 0) - counts["thought"]
            yield {"tally": {**counts, "spoken": spoken}}
        case Finish():
            yield {"over": _REASONS[event.reason]}


class TallyClient:
    """A ModelClient for it, over the HTTP client as it comes.

    Connections are not kept: the HTTP client would take bytes that came behind one answer for
    the next one.
    """

    def __init__(
        self, base_url: str, *, api_key: str, max_connections: int, keep: bool = False
    ) -> None:
        self._key = api_key
        kept = max_connections if keep else 0
        limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=kept)
        self._http = httpx2.AsyncClient(
            base_url=base_url,
            limits=limits,
            timeout=None,
            trust_env=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used: this address is http
        )

    def models(self) -> frozenset[str] | None:
        return frozenset({"m"})

    async def aclose(self) -> None:
        await self._http.aclose()

    def takes(self) -> Takes:
        return Takes(frozenset())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        refused = unsendable(request, self.takes(), client="TallyClient")
        if refused is not None:
            raise UnsendableRequest(refused)
        response = await self._send(request, list(_talk(request)))
        try:
            if response.status_code != 200:
                raise await self._refused(response, request.stream_idle_seconds)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ModelPermanent("the body is compressed, unasked")
            async with aclosing(self.lines(response, request.stream_idle_seconds)) as lines:
                async for line in lines:
                    for event in _read(line):
                        yield event
                        if isinstance(event, Finish):
                            return
            raise ModelTransient("the stream ended before it was over")
        finally:
            await response.aclose()

    async def _send(self, request: ModelRequest, talk: Sequence[str]) -> httpx2.Response:
        body = {"model": request.model, "system": request.system, "talk": talk}
        headers = {"X-Tally-Key": self._key, "Accept-Encoding": "identity"}
        sent = self._http.build_request("POST", "/talk", json=body, headers=headers)
        try:
            async with asyncio.timeout(request.stream_idle_seconds):
                return await self._http.send(sent, stream=True)
        except (TimeoutError, httpx2.HTTPError) as error:
            problem = type(error).__name__
        raise ModelTransient(f"no answer: {problem}")

    async def _refused(self, response: httpx2.Response, idle_seconds: float) -> ModelError:
        body = b""
        try:
            async with asyncio.timeout(idle_seconds), aclosing(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > _REFUSAL_BYTES:
                        break
        except (TimeoutError, httpx2.HTTPError):
            pass
        status, said = response.status_code, f"refused with {response.status_code}"
        if status == 400 and _kind(_parsed(body)) == "too_long":
            return ContextOverflow(said, status=status)
        if is_transient_status(status):
            wait = retry_after_seconds(response.headers, now=datetime.now(UTC))
            return ModelTransient(said, status=status, retry_after_seconds=wait)
        return ModelPermanent(said, status=status)

    async def lines(self, response: httpx2.Response, idle_seconds: float) -> AsyncGenerator[bytes]:
        rest = bytearray()
        async with aclosing(response.aiter_raw()) as pieces:
            while (piece := await _next(pieces, idle_seconds)) is not None:
                *whole, last = piece.split(b"\n")
                for line in whole:
                    yield bytes(rest + line)
                    rest.clear()
                rest += last
                if len(rest) > _LINE_BYTES:
                    raise ModelPermanent(f"a line is longer than {_LINE_BYTES} bytes")
        yield bytes(rest)


def _talk(request: ModelRequest) -> Iterator[str]:
    """Yield what was said. UnsendableRequest: a file of a person's; this format has words only."""
    for message in request.messages:
        for part in message.parts:
            match part:
                case TextPart():
                    yield part.text
                case JsonPart():
                    yield json.dumps(part.value)
                case BlobPart() if isinstance(message, ToolMessage):
                    yield _returned(part, request)
                case BlobPart():
                    raise UnsendableRequest("this format has words only")


def _returned(part: BlobPart, request: ModelRequest) -> str:
    kind = part.blob.media_type.partition(";")[0]
    if part.name is None and (kind.startswith("text/") or kind.endswith("json")):
        return b64decode(request.attachments[part.blob.hash]).decode(errors="replace")
    name = re.sub("[^ -~]+", " ", part.name or "a file")[:_NAME_CHARACTERS]
    return f"[{name}: this format has words only]"


async def _next(pieces: AsyncGenerator[bytes], idle_seconds: float) -> bytes | None:
    try:
        async with asyncio.timeout(idle_seconds):
            return await anext(pieces, None)
    except (TimeoutError, httpx2.HTTPError) as error:
        problem = type(error).__name__
    raise ModelTransient(f"the stream broke: {problem}")


def _parsed(line: bytes) -> object:
    """Return the value, None for what is none."""
    try:
        value: object = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return value


def _kind(value: object) -> str | None:
    problem = value.get("problem") if isinstance(value, dict) else None
    kind = problem.get("kind") if isinstance(problem, dict) else None
    return kind if isinstance(kind, str) else None


def _read(line: bytes) -> Iterator[ModelEvent]:
    if not line.strip():
        return
    value = _parsed(line)
    if not isinstance(value, dict):
        raise ModelTransient("a garbled line")
    if "problem" in value:
        kind = _kind(value)
        if kind == "too_long":
            raise ContextOverflow("too long")
        raise (ModelTransient if kind == "busy" else ModelPermanent)("a problem in the stream")
    if say := _only(value, "say", str):
        yield TextDelta(text=say)
    if think := _only(value, "think", str):
        yield ReasoningDelta(text=think)
    if ask := _only(value, "ask", dict):
        number = _only(ask, "n", int) or 0
        name, ref = _only(ask, "tool", str), _only(ask, "ref", str)
        yield CallDelta(index=number, provider_id=ref, name=name)
    if more := _only(value, "more", dict):
        text = _only(more, "text", str) or ""
        yield CallDelta(index=_only(more, "n", int) or 0, arguments=text)
    if tally := _only(value, "tally", dict):
        yield UsageReport(usage=_usage(tally))
    if over := _only(value, "over", str):
        reason: FinishReason = "other"
        for known, word in _REASONS.items():
            reason = known if word == over else reason
        yield Finish(reason=reason)


def _usage(tally: dict[str, object]) -> Usage:
    counts = {name: _only(tally, word, int) for name, word in _TALLY.items()}
    spoken, thought = _only(tally, "spoken", int), counts["reasoning_tokens"]
    output = None if spoken is None or thought is None else spoken + thought
    return Usage(**counts, output_tokens=output)


def _only[T](value: dict[str, object], key: str, kind: type[T]) -> T | None:
    found = value.get(key)
    if found is None:
        return None
    if type(found) is not kind:
        raise ModelTransient(f"a garbled line: {key!r} is no {kind.__name__}")
    return found
