"""AnthropicClient against a server that misbehaves: each fault is classified (MOD-5, RUN-11)."""

import gzip
import json
import logging
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from psych_runtime._system import System
from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model.anthropic import AnthropicClient
from psych_schema.common import Usage
from psych_schema.model import (
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPart,
    UsageReport,
    UserMessage,
)
from tests.servers.anthropic_server import (
    AnthropicServer,
    block,
    delta,
    error,
    events,
    message_delta,
    start,
)
from tests.servers.openai_server import Reply, Stop, answer, silence

_KEY = "sk-canary/7f3a+Zq9"
_HEL = events(start(input_tokens=3), block(0, "text"), delta(0, "text_delta", text="Hel"))
_FINISH = events(message_delta(output_tokens=7), {"type": "message_stop"})
_TOLD = [UsageReport(usage=Usage(input_tokens=3)), TextDelta(text="Hel")]


class _Noon(System):
    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


async def _collect(client: AnthropicClient, request: ModelRequest, into: list[ModelEvent]) -> None:
    async with aclosing(client.stream(request)) as stream:
        while (event := await anext(stream, None)) is not None:
            into.append(event)


async def _fail(reply: Reply, *, idle: float = 30.0) -> tuple[list[ModelEvent], ModelError]:
    """Return what came before the failure, and the failure."""
    user = UserMessage(parts=(TextPart(text="Hello"),))
    request = ModelRequest(model="m", system="", messages=(user,), stream_idle_seconds=idle)
    told: list[ModelEvent] = []
    async with AnthropicServer(reply) as server:
        client = AnthropicClient(server.base_url, api_key=_KEY, system=_Noon())
        with pytest.raises(ModelError) as caught:
            await _collect(client, request, told)
        await client.aclose()
    return told, caught.value


def _error(kind: str, words: str, *, name: str = "error") -> bytes:
    value = {"type": "error", "error": {"type": kind, "message": words}}
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


_STREAMS: dict[str, tuple[Reply, type[ModelError], str]] = {
    "ends": (answer(_HEL), ModelTransient, "without a stop reason"),
    "ends with its mark only": (
        answer(_HEL, events({"type": "message_stop"})),
        ModelTransient,
        "without a stop reason",
    ),
    "hangs up": (answer(_HEL, Stop.HANG_UP), ModelTransient, "127.0.0.1"),
    "is cut in an event": (answer(_HEL, b'data: {"type": "mess'), ModelTransient, "garbled"),
    "is garbled JSON": (answer(_HEL, b"data: {\n\n", _FINISH), ModelTransient, "garbled"),
    "is no UTF-8": (answer(_HEL, b"data: \xff\n\n", _FINISH), ModelTransient, "garbled"),
    "is overloaded": (
        answer(_HEL, _error("overloaded_error", "Overloaded")),
        ModelTransient,
        "Overloaded",
    ),
    "has an error without a name": (
        answer(_HEL, _error("api_error", "boom", name="message")),
        ModelTransient,
        "boom",
    ),
    "has an error that stays": (
        answer(_HEL, _error("invalid_request_error", "no"), _FINISH),
        ModelPermanent,
        "no",
    ),
    "overflows": (
        answer(_HEL, _error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")),
        ContextOverflow,
        "9 tokens > 8",
    ),
    "speaks another format": (
        answer(b'data: {"object": "chat.completion.chunk", "choices": []}\n\n'),
        ModelTransient,
        "an event without a type",
    ),
}


@pytest.mark.parametrize("fault", _STREAMS)
async def test_mod_5_a_stream_that_breaks_is_classified(fault: str) -> None:
    """What came before is told, usage too; then comes one typed error."""
    reply, kind, words = _STREAMS[fault]
    told, failure = await _fail(reply)
    assert told == ([] if fault == "speaks another format" else _TOLD)
    assert type(failure) is kind
    assert words in str(failure)


_REFUSALS: dict[str, tuple[Reply, type[ModelError], int, str]] = {
    "invalid": (error(400, "invalid_request_error", "no"), ModelPermanent, 400, "no"),
    "too long": (
        error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        ContextOverflow,
        400,
        "9 tokens > 8",
    ),
    "too long with the answer": (
        error(
            400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 9"
        ),
        ContextOverflow,
        400,
        "context limit",
    ),
    "too many bytes": (
        error(413, "request_too_large", "Request exceeds the maximum size"),
        ContextOverflow,
        413,
        "maximum size",
    ),
    "no key": (
        error(401, "authentication_error", f"invalid x-api-key {_KEY}"),
        ModelPermanent,
        401,
        "invalid x-api-key [removed]",
    ),
    "no money": (error(402, "billing_error", "no credit"), ModelPermanent, 402, "no credit"),
    "no permission": (error(403, "permission_error", "no"), ModelPermanent, 403, "no"),
    "no such model": (error(404, "not_found_error", "model: m"), ModelPermanent, 404, "model: m"),
    "a server's error": (error(500, "api_error", "boom"), ModelTransient, 500, "boom"),
    "a gateway": (
        answer(b"<html>", status=502, content_type="text/html", framing="length"),
        ModelTransient,
        502,
        "<html>",
    ),
    "late": (error(504, "timeout_error", "late"), ModelTransient, 504, "late"),
    "overloaded": (error(529, "overloaded_error", "Overloaded"), ModelTransient, 529, "Overloaded"),
}


@pytest.mark.parametrize("case", _REFUSALS)
async def test_run_11_a_refusal_is_classified(case: str) -> None:
    """By its status and type; the key is not repeated."""
    reply, kind, status, words = _REFUSALS[case]
    told, failure = await _fail(reply)
    assert told == []
    assert (type(failure), failure.status) == (kind, status)
    assert words in str(failure)
    assert "canary" not in repr(vars(failure))


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60.0),
        ({"retry-after": "7", "x-should-retry": "true"}, 7.0),
        ({}, None),
    ],
)
async def test_run_11_a_rate_limit_says_how_long_to_wait(
    headers: dict[str, str], wait: float | None
) -> None:
    """Also one that speaks of tokens: it is no overflow."""
    words = "This request would exceed your rate limit of 40,000 input tokens per minute."
    _, failure = await _fail(error(429, "rate_limit_error", words, headers=headers))
    assert isinstance(failure, ModelTransient)
    assert (failure.status, failure.retry_after_seconds) == (429, wait)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(silence(), []), (answer(_HEL, Stop.STALL), _TOLD)],
)
async def test_mod_5_silence_ends(reply: Reply, expected: list[ModelEvent]) -> None:
    """Before the answer, and in it."""
    told, failure = await _fail(reply, idle=1.0)
    assert (told, type(failure)) == (expected, ModelTransient)
    assert "1 s" in str(failure)


async def test_mod_5_a_compressed_body_is_not_taken() -> None:
    """Nobody asked for one; to ask again would bring the same."""
    body = gzip.compress(_HEL + _FINISH)
    told, failure = await _fail(answer(body, headers={"Content-Encoding": "gzip"}))
    assert (told, type(failure)) == ([], ModelPermanent)
    assert "compressed" in str(failure)


async def test_sec_2_the_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Nor are the other headers, with every logger at DEBUG."""
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "httpcore2.http11", "httpcore2.connection", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    reply = answer(_HEL + _FINISH, headers={"x-echo": _KEY})
    user = UserMessage(parts=(TextPart(text="Hello"),))
    async with AnthropicServer(reply) as server:
        client = AnthropicClient(server.base_url, api_key=_KEY, headers={"X-More": f"b {_KEY}"})
        request = ModelRequest(model="m", system="", messages=(user,))
        _ = [event async for event in client.stream(request)]
        shown = [repr(client), str(client), repr(vars(client)["_endpoint"])]
        await client.aclose()
    assert server.seen[0].headers["x-api-key"] == _KEY
    assert any("/v1/messages" in text for text in caplog.messages)
    shown += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    assert [text for text in shown if "canary" in text] == []
