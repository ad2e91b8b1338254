"""Each client against a server that misbehaves: every fault is classified (MOD-5, RUN-11)."""

import gzip
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final, NamedTuple

import pytest

from psych_runtime._system import System
from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model.openai import OpenAIClient
from psych_schema.model import ModelEvent
from tests.functional.model.asking import request, told_by
from tests.servers import anthropic_server as anthropic
from tests.servers.formats import ANTHROPIC, FORMATS, OPENAI, TOLD, Format, each_format
from tests.servers.openai_server import (
    OpenAIServer,
    Reply,
    Stop,
    answer,
    error,
    finish_chunk,
    silence,
    sse,
)

_KEY = "sk-canary/7f3a+Zq9"


class _Noon(System):
    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


async def _collect(form: Format, url: str, idle: float, into: list[ModelEvent]) -> None:
    client = form.client(url, api_key=_KEY, system=_Noon())
    try:
        async with aclosing(client.stream(request(idle=idle))) as stream:
            async for event in stream:
                into += [event]
    finally:
        await client.aclose()


async def _fail(
    form: Format, reply: Reply, *, idle: float = 30.0
) -> tuple[Sequence[ModelEvent], ModelError]:
    """Return what came before the failure, and the failure."""
    told: list[ModelEvent] = []
    async with form.server(reply) as server:
        with pytest.raises(ModelError) as caught:
            await _collect(form, server.base_url, idle, told)
    return tuple(told), caught.value


class _Fault(NamedTuple):
    reply: Reply
    kind: type[ModelError]
    words: str


def _streams(form: Format) -> Mapping[str, _Fault]:
    """Return how a stream may break behind `hel`, in any format."""
    hel, finish = form.hel, form.finish
    endless = [b"x" * 65_536] * 17
    return {
        "ends without a finish": _Fault(answer(hel), ModelTransient, form.unfinished),
        "ends with its mark only": _Fault(
            answer(hel, form.write(form.end[-1])), ModelTransient, form.unfinished
        ),
        "hangs up": _Fault(answer(hel, Stop.HANG_UP), ModelTransient, "127.0.0.1"),
        "hangs up in a line": _Fault(
            answer(hel, b'data: {"cho', Stop.HANG_UP), ModelTransient, "127.0.0.1"
        ),
        "is shorter than it said": _Fault(
            answer(hel, framing="length", length=10_000), ModelTransient, "127.0.0.1"
        ),
        "is garbled JSON": _Fault(answer(hel, b"data: {\n\n", finish), ModelTransient, "garbled"),
        "is no object": _Fault(answer(hel, sse([1]), finish), ModelTransient, "garbled"),
        "is no UTF-8": _Fault(answer(hel, b"data: \xff\n\n", finish), ModelTransient, "garbled"),
        "is cut in an event": _Fault(answer(hel, b'data: {"a": [{"b'), ModelTransient, "garbled"),
        "is too deep": _Fault(answer(hel, sse("[" * 500), finish), ModelTransient, "too deep"),
        "has an error": _Fault(
            answer(hel, form.write(form.fault("overloaded"))), ModelTransient, "overloaded"
        ),
        "has an error event in words": _Fault(
            answer(hel, b"event: error\ndata: overloaded\n\n"), ModelTransient, "overloaded"
        ),
        "has a line without end": _Fault(
            answer(hel, b"data: ", *endless), ModelPermanent, "longer than 1048576 bytes"
        ),
    }


def _error(kind: str, words: str, *, name: str = "error") -> bytes:
    value = {"type": "error", "error": {"type": kind, "message": words}}
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


_OWN_STREAMS: Final[Mapping[Format, Mapping[str, _Fault]]] = {
    OPENAI: {
        "has an error chunk": _Fault(
            answer(OPENAI.hel, sse({"error": {"message": "boom", "type": "server_error"}})),
            ModelTransient,
            "boom",
        ),
        "has an error event": _Fault(
            answer(OPENAI.hel, b'event: error\ndata: {"message": "overloaded"}\n\n'),
            ModelTransient,
            "overloaded",
        ),
        "has an error event that wraps a permanent error": _Fault(
            answer(
                OPENAI.hel, b'event: error\ndata: {"error": {"message": "no", "code": 400}}\n\n'
            ),
            ModelPermanent,
            "no",
        ),
        "has a permanent error": _Fault(
            answer(OPENAI.hel, sse({"error": {"message": "no", "type": "invalid_request_error"}})),
            ModelPermanent,
            "no",
        ),
        "overflows": _Fault(
            answer(OPENAI.hel, sse({"error": {"message": "x", "code": "context_length_exceeded"}})),
            ContextOverflow,
            "x",
        ),
    },
    ANTHROPIC: {
        "is overloaded": _Fault(
            answer(ANTHROPIC.hel, _error("overloaded_error", "Overloaded")),
            ModelTransient,
            "Overloaded",
        ),
        "has an error under another name": _Fault(
            answer(ANTHROPIC.hel, _error("api_error", "boom", name="message")),
            ModelTransient,
            "boom",
        ),
        "has an error that stays": _Fault(
            answer(ANTHROPIC.hel, _error("invalid_request_error", "no"), ANTHROPIC.finish),
            ModelPermanent,
            "no",
        ),
        "overflows": _Fault(
            answer(
                ANTHROPIC.hel,
                _error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            ),
            ContextOverflow,
            "9 tokens > 8",
        ),
    },
}


def _answers(form: Format) -> Mapping[str, _Fault]:
    """Return answers that tell nothing, in any format."""
    return {
        "empty": _Fault(answer(), ModelTransient, form.unfinished),
        "blank": _Fault(answer(b" \n\n "), ModelTransient, form.unfinished),
        "cut before the headers end": _Fault(answer(Stop.HANG_UP), ModelTransient, "127.0.0.1"),
        "a web page": _Fault(
            answer(b"<!doctype html>", content_type="text/html"),
            ModelPermanent,
            "a web page; is base_url right?",
        ),
        "compressed though not asked": _Fault(
            answer(gzip.compress(form.hel + form.finish), headers={"Content-Encoding": "gzip"}),
            ModelPermanent,
            "compressed",
        ),
        "JSON that is an error": _Fault(
            answer(json.dumps(form.fault("slow down")).encode()), ModelTransient, "slow down"
        ),
        "JSON that is cut": _Fault(answer(b'{"choices": ['), ModelTransient, "garbled"),
        "JSON that is no UTF-8": _Fault(answer(b'{"a": "\xff"}'), ModelTransient, "no UTF-8"),
        "JSON without end": _Fault(
            answer(b"{", *[b" " * (1 << 20)] * 9), ModelPermanent, "8388608 bytes"
        ),
        "no HTTP": _Fault(answer(b"x", headers={"Bad\x01Name": "x"}), ModelTransient, "no HTTP"),
        "a redirect": _Fault(
            answer(status=307, headers={"Location": "http://127.0.0.1:9/"}),
            ModelPermanent,
            "redirects are not followed",
        ),
    }


_OWN_ANSWERS: Final[Mapping[Format, Mapping[str, _Fault]]] = {
    OPENAI: {
        "JSON that says nothing": _Fault(
            answer(b'{"ok": true}', content_type="application/json"),
            ModelTransient,
            "without a finish reason",
        ),
        "JSON that is an error with a status": _Fault(
            answer(b'{"error": {"message": "slow down", "code": 429}}'),
            ModelTransient,
            "slow down",
        ),
    },
    ANTHROPIC: {
        "JSON that says nothing": _Fault(
            answer(b'{"ok": true}', content_type="application/json"),
            ModelTransient,
            "an event without a type",
        ),
        "another format": _Fault(
            answer(b'data: {"object": "chat.completion.chunk", "choices": []}\n\n'),
            ModelTransient,
            "an event without a type",
        ),
    },
}

_STREAMS: Final = {form: {**_streams(form), **_OWN_STREAMS[form]} for form in FORMATS}
_ANSWERS: Final = {form: {**_answers(form), **_OWN_ANSWERS[form]} for form in FORMATS}


@pytest.mark.parametrize(
    ("form", "fault"), [(f, name) for f in FORMATS for name in _STREAMS[f]], ids=str
)
async def test_mod_5_a_stream_that_breaks_is_classified(form: Format, fault: str) -> None:
    """What came before is told, usage too, which was paid for; then comes one typed error."""
    reply, kind, words = _STREAMS[form][fault]
    told, failure = await _fail(form, reply)
    assert told == TOLD
    assert type(failure) is kind
    assert words in str(failure)


@pytest.mark.parametrize(
    ("form", "fault"), [(f, name) for f in FORMATS for name in _ANSWERS[f]], ids=str
)
async def test_mod_5_an_answer_that_is_none_is_classified(form: Format, fault: str) -> None:
    """Nothing is told before the error."""
    reply, kind, words = _ANSWERS[form][fault]
    told, failure = await _fail(form, reply)
    assert told == ()
    assert type(failure) is kind
    assert words in str(failure)


async def test_mod_5_a_stream_without_done_is_whole_with_its_finish() -> None:
    """Some servers leave `[DONE]` out."""
    async with OpenAIServer(answer(OPENAI.hel, sse(finish_chunk()))) as server:
        client = OpenAIClient(server.base_url)
        assert len(await told_by(client)) == 3
        await client.aclose()


@each_format
async def test_mod_5_silence_in_the_stream_is_given_up(form: Format) -> None:
    """After the request's own limit."""
    told, failure = await _fail(form, answer(form.hel, Stop.STALL), idle=0.1)
    assert told == TOLD
    assert type(failure) is ModelTransient
    assert "0.1 s" in str(failure) or "silence" in str(failure)


@each_format
async def test_mod_5_comments_are_no_sign_of_life(form: Format) -> None:
    """A proxy that keeps the connection open does not keep the call alive."""
    comments = [b": keep-alive\n\n"] * 5
    _, failure = await _fail(form, answer(form.hel, *comments, Stop.STALL), idle=0.1)
    assert type(failure) is ModelTransient


@each_format
async def test_mod_5_silence_before_the_headers_is_given_up(form: Format) -> None:
    """The server took the request and says nothing."""
    told, failure = await _fail(form, silence(), idle=0.1)
    assert told == ()
    assert type(failure) is ModelTransient


@each_format
async def test_mod_5_nobody_there_is_transient(form: Format) -> None:
    """A server that restarts comes back."""
    async with form.server() as server:
        url = server.base_url
    client = form.client(url)
    with pytest.raises(ModelTransient, match="no connection"):
        await told_by(client)
    await client.aclose()


@each_format
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "7", "x-should-retry": "true"}, 7.0),
        ({}, None),
    ],
)
async def test_run_11_retry_after_comes_with_the_error(
    form: Format, headers: dict[str, str], seconds: float | None
) -> None:
    """In the three forms in use; words that speak of tokens make no overflow of it."""
    words = "This request would exceed your rate limit of 40,000 input tokens per minute."
    told, failure = await _fail(form, form.refuse(429, words, headers))
    assert told == ()
    assert type(failure) is ModelTransient
    assert (failure.status, failure.retry_after_seconds) == (429, seconds)
    assert str(failure) == f"127.0.0.1 answered 429: {words}"


@each_format
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
async def test_run_11_statuses_are_classified(
    form: Format, status: int, kind: type[ModelError]
) -> None:
    """With the provider's words and the status."""
    _, failure = await _fail(form, form.refuse(status, "Because."))
    assert type(failure) is kind
    assert failure.status == status
    assert "Because." in str(failure)


def _refused(status: int, kind: str, words: str) -> Reply:
    return anthropic.error(status, kind, words)


_TOO_LONG: Final = "input length and `max_tokens` exceed context limit: 9"
_TYPES: Final[Mapping[str, tuple[int, Reply, type[ModelError], str]]] = {
    "invalid": (400, _refused(400, "invalid_request_error", "no"), ModelPermanent, "no"),
    "too long": (
        400,
        _refused(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        ContextOverflow,
        "9 tokens > 8",
    ),
    "too long with the answer": (
        400,
        _refused(400, "invalid_request_error", _TOO_LONG),
        ContextOverflow,
        "context limit",
    ),
    "too many bytes": (
        413,
        _refused(413, "request_too_large", "Request exceeds the maximum size"),
        ContextOverflow,
        "maximum size",
    ),
    "no key": (
        401,
        _refused(401, "authentication_error", f"invalid x-api-key {_KEY}"),
        ModelPermanent,
        "invalid x-api-key [secret x-api-key]",
    ),
    "no money": (402, _refused(402, "billing_error", "no credit"), ModelPermanent, "no credit"),
    "no permission": (403, _refused(403, "permission_error", "no"), ModelPermanent, "no"),
    "no such model": (
        404,
        _refused(404, "not_found_error", "model: m"),
        ModelPermanent,
        "model: m",
    ),
    "a server's error": (500, _refused(500, "api_error", "boom"), ModelTransient, "boom"),
    "a gateway": (
        502,
        answer(b"<html>", status=502, content_type="text/html", framing="length"),
        ModelTransient,
        "<html>",
    ),
    "late": (504, _refused(504, "timeout_error", "late"), ModelTransient, "late"),
    "overloaded": (
        529,
        _refused(529, "overloaded_error", "Overloaded"),
        ModelTransient,
        "Overloaded",
    ),
    "a rate": (429, _refused(429, "rate_limit_error", "slow"), ModelTransient, "slow"),
}


@pytest.mark.parametrize("case", _TYPES)
async def test_run_11_a_refusal_is_classified_by_its_type(case: str) -> None:
    """As the Messages format publishes them; the key is not repeated."""
    status, reply, kind, words = _TYPES[case]
    told, failure = await _fail(ANTHROPIC, reply)
    assert told == ()
    assert (type(failure), failure.status) == (kind, status)
    assert words in str(failure)
    assert "canary" not in repr(vars(failure))


async def test_mod_6_overflow_is_its_own_error() -> None:
    """The runtime compacts then."""
    words = "This model's maximum context length is 8192 tokens. However, you requested 9000."
    _, failure = await _fail(OPENAI, error(400, words, code="context_length_exceeded"))
    assert isinstance(failure, ContextOverflow)
    assert failure.status == 400


@each_format
async def test_sec_3_an_error_body_without_end_is_cut(form: Format) -> None:
    """64 KiB are read, 1 KB of words is kept."""
    endless = answer(*[b"x" * 65_536] * 32, status=500, content_type="text/plain")
    _, failure = await _fail(form, endless)
    assert type(failure) is ModelTransient
    assert len(str(failure).encode()) == 1024
