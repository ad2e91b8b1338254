"""OpenAIClient against a server that misbehaves: each fault is classified (MOD-5, RUN-11)."""

import gzip
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from psych_runtime._system import System
from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model.openai import OpenAIClient
from psych_schema.common import Usage
from psych_schema.model import (
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPart,
    UsageReport,
    UserMessage,
)
from tests.servers.openai_server import (
    OpenAIServer,
    Reply,
    Stop,
    answer,
    error,
    finish_chunk,
    silence,
    sse,
    text_chunk,
)

_HEL = sse(text_chunk("Hel"))
_FINISH = sse(finish_chunk(), "[DONE]")


class _Noon(System):
    def now(self) -> datetime:
        return datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


async def _collect(client: OpenAIClient, request: ModelRequest, into: list[ModelEvent]) -> None:
    async with aclosing(client.stream(request)) as stream:
        while (event := await anext(stream, None)) is not None:
            into.append(event)


async def _fail(
    reply: Reply, *, idle: float = 30.0, streaming: bool = True
) -> tuple[list[ModelEvent], ModelError]:
    """Return what came before the failure, and the failure."""
    user = UserMessage(parts=(TextPart(text="Hello"),))
    request = ModelRequest(model="m", system="", messages=(user,), stream_idle_seconds=idle)
    events: list[ModelEvent] = []
    async with OpenAIServer(reply) as server:
        client = OpenAIClient(server.base_url, streaming=streaming, system=_Noon())
        with pytest.raises(ModelError) as caught:
            await _collect(client, request, events)
        await client.aclose()
    return events, caught.value


_STREAMS: dict[str, tuple[Reply, type[ModelError], str]] = {
    "ends without a finish": (answer(_HEL), ModelTransient, "without a finish reason"),
    "DONE without a finish": (
        answer(_HEL + sse("[DONE]")),
        ModelTransient,
        "without a finish reason",
    ),
    "hangs up": (answer(_HEL, Stop.HANG_UP), ModelTransient, "127.0.0.1"),
    "hangs up in a line": (answer(_HEL, b'data: {"cho', Stop.HANG_UP), ModelTransient, "127.0.0.1"),
    "is shorter than it said": (
        answer(_HEL, framing="length", length=10_000),
        ModelTransient,
        "127.0.0.1",
    ),
    "is garbled JSON": (answer(_HEL, b"data: {\n\n", _FINISH), ModelTransient, "garbled"),
    "is no object": (answer(_HEL, sse([1]), _FINISH), ModelTransient, "garbled"),
    "is no UTF-8": (answer(_HEL, b"data: \xff\n\n", _FINISH), ModelTransient, "garbled"),
    "is cut in a chunk": (answer(_HEL, b'data: {"choices": [{"ind'), ModelTransient, "garbled"),
    "is too deep": (answer(_HEL, sse("[" * 500), _FINISH), ModelTransient, "too deep"),
    "has an error chunk": (
        answer(_HEL, sse({"error": {"message": "overloaded", "type": "server_error"}})),
        ModelTransient,
        "overloaded",
    ),
    "has an error event": (
        answer(_HEL, b'event: error\ndata: {"message": "overloaded"}\n\n'),
        ModelTransient,
        "overloaded",
    ),
    "has an error event in words": (
        answer(_HEL, b"event: error\ndata: overloaded\n\n"),
        ModelTransient,
        "overloaded",
    ),
    "has an error event that wraps a permanent error": (
        answer(_HEL, b'event: error\ndata: {"error": {"message": "no", "code": 400}}\n\n'),
        ModelPermanent,
        "no",
    ),
    "has a permanent error": (
        answer(_HEL, sse({"error": {"message": "no", "type": "invalid_request_error"}})),
        ModelPermanent,
        "no",
    ),
    "overflows in the stream": (
        answer(_HEL, sse({"error": {"message": "x", "code": "context_length_exceeded"}})),
        ContextOverflow,
        "x",
    ),
    "has a line without end": (
        answer(_HEL, b"data: ", *[b"x" * 65_536] * 17),
        ModelPermanent,
        "longer than 1048576 bytes",
    ),
}


@pytest.mark.parametrize("fault", _STREAMS)
async def test_mod_5_a_stream_that_breaks_is_classified(fault: str) -> None:
    """What came before is told; then comes one typed error."""
    reply, kind, words = _STREAMS[fault]
    events, failure = await _fail(reply)
    assert events == [TextDelta(text="Hel")]
    assert type(failure) is kind
    assert words in str(failure)


_ANSWERS: dict[str, tuple[Reply, type[ModelError], str]] = {
    "empty": (answer(), ModelTransient, "without a finish reason"),
    "blank": (answer(b" \n\n "), ModelTransient, "without a finish reason"),
    "cut before the headers end": (answer(Stop.HANG_UP), ModelTransient, "127.0.0.1"),
    "a web page": (
        answer(b"<!doctype html>", content_type="text/html"),
        ModelPermanent,
        "a web page; is base_url right?",
    ),
    "compressed though not asked": (
        answer(gzip.compress(_HEL + _FINISH), headers={"Content-Encoding": "gzip"}),
        ModelPermanent,
        "compressed",
    ),
    "JSON that says nothing": (
        answer(b'{"ok": true}', content_type="application/json"),
        ModelTransient,
        "without a finish reason",
    ),
    "JSON that is an error": (
        answer(b'{"error": {"message": "slow down", "code": 429}}'),
        ModelTransient,
        "slow down",
    ),
    "JSON that is cut": (answer(b'{"choices": ['), ModelTransient, "garbled"),
    "JSON that is no UTF-8": (answer(b'{"a": "\xff"}'), ModelTransient, "no UTF-8"),
    "JSON without end": (answer(b"{", *[b" " * (1 << 20)] * 9), ModelPermanent, "8388608 bytes"),
    "no HTTP": (answer(b"x", headers={"Bad\x01Name": "x"}), ModelTransient, "no HTTP"),
    "a redirect": (
        answer(status=307, headers={"Location": "http://127.0.0.1:9/"}),
        ModelPermanent,
        "redirects are not followed",
    ),
}


@pytest.mark.parametrize("fault", _ANSWERS)
async def test_mod_5_an_answer_that_is_none_is_classified(fault: str) -> None:
    """Nothing is told before the error."""
    reply, kind, words = _ANSWERS[fault]
    events, failure = await _fail(reply)
    assert events == []
    assert type(failure) is kind
    assert words in str(failure)


async def test_mod_5_a_stream_without_done_is_whole_with_its_finish() -> None:
    """Some servers leave `[DONE]` out."""
    async with OpenAIServer(answer(_HEL, sse(finish_chunk()))) as server:
        client = OpenAIClient(server.base_url)
        user = UserMessage(parts=(TextPart(text="Hello"),))
        request = ModelRequest(model="m", system="", messages=(user,))
        assert len([event async for event in client.stream(request)]) == 2
        await client.aclose()


async def test_mod_5_usage_before_the_failure_is_kept() -> None:
    """It was paid for."""
    chunk = {**text_chunk("Hel"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    events, _ = await _fail(answer(sse(chunk), Stop.HANG_UP))
    assert UsageReport(usage=Usage(input_tokens=3, output_tokens=1)) in events


async def test_mod_5_silence_in_the_stream_is_given_up() -> None:
    """After the request's own limit."""
    events, failure = await _fail(answer(_HEL, Stop.STALL), idle=0.1)
    assert events == [TextDelta(text="Hel")]
    assert type(failure) is ModelTransient
    assert "0.1 s" in str(failure) or "silence" in str(failure)


async def test_mod_5_comments_are_no_sign_of_life() -> None:
    """A proxy that keeps the connection open does not keep the call alive."""
    comments = [b": keep-alive\n\n"] * 5
    _, failure = await _fail(answer(_HEL, *comments, Stop.STALL), idle=0.1)
    assert type(failure) is ModelTransient


async def test_mod_5_silence_before_the_headers_is_given_up() -> None:
    """The server took the request and says nothing."""
    events, failure = await _fail(silence(), idle=0.1)
    assert events == []
    assert type(failure) is ModelTransient


async def test_mod_5_nobody_there_is_transient() -> None:
    """A server that restarts comes back."""
    async with OpenAIServer() as server:
        url = server.base_url
    user = UserMessage(parts=(TextPart(text="Hello"),))
    client = OpenAIClient(url)
    with pytest.raises(ModelTransient, match="no connection"):
        await anext(client.stream(ModelRequest(model="m", system="", messages=(user,))))
    await client.aclose()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30.0),
        ({}, None),
    ],
)
async def test_run_11_retry_after_comes_with_the_error(
    headers: dict[str, str], seconds: float | None
) -> None:
    """In the three forms in use."""
    events, failure = await _fail(error(429, "Slow down.", headers=headers))
    assert events == []
    assert isinstance(failure, ModelTransient)
    assert (failure.status, failure.retry_after_seconds) == (429, seconds)
    assert str(failure) == "127.0.0.1 answered 429: Slow down."


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelPermanent),
        (401, ModelPermanent),
        (404, ModelPermanent),
        (422, ModelPermanent),
        (408, ModelTransient),
        (409, ModelTransient),
        (500, ModelTransient),
        (503, ModelTransient),
        (529, ModelTransient),
    ],
)
async def test_run_11_statuses_are_classified(status: int, kind: type[ModelError]) -> None:
    """With the provider's words and the status."""
    _, failure = await _fail(error(status, "Because."))
    assert type(failure) is kind
    assert failure.status == status
    assert "Because." in str(failure)


async def test_mod_6_overflow_is_its_own_error() -> None:
    """The runtime compacts then."""
    words = "This model's maximum context length is 8192 tokens. However, you requested 9000."
    _, failure = await _fail(error(400, words, code="context_length_exceeded"))
    assert isinstance(failure, ContextOverflow)
    assert failure.status == 400


async def test_sec_3_an_error_body_without_end_is_cut() -> None:
    """64 KiB are read, 1 KB of words is kept."""
    endless = answer(*[b"x" * 65_536] * 32, status=500, content_type="text/plain")
    _, failure = await _fail(endless)
    assert type(failure) is ModelTransient
    assert len(str(failure).encode()) == 1024
