"""A 200 does not mean an answer: garbled messages, errors in the stream, other bodies (MOD-5)."""

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Final

from pydantic import JsonValue

from psych_runtime.errors import ModelError, ModelPermanent, ModelTransient
from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import answer
from psych_runtime.testing.model_contract._scene import (
    HELLO,
    Outcome,
    ask,
    hello,
    is_whole,
    outcome,
    scene,
    stream,
)
from psych_runtime.testing.model_contract.wire import Message
from psych_schema.common import Usage
from psych_schema.model import CallDelta, Finish, ModelEvent, TextDelta, UsageReport

__all__ = [
    "a_compressed_body_is_read_or_an_error",
    "a_field_of_another_type_loses_no_words",
    "a_field_that_is_null_is_no_crash",
    "a_field_that_nobody_knows_says_nothing",
    "a_garbled_message_is_worth_another_try",
    "a_message_that_is_no_object_is_an_error",
    "a_passing_error_in_the_stream_is_worth_another_try",
    "a_web_page_is_no_answer",
    "an_error_as_the_whole_body_is_an_error",
    "an_error_in_the_stream_that_stays_is_permanent",
    "another_content_type_is_read_or_an_error",
    "bytes_that_are_no_utf_8_are_worth_another_try",
]

_WRONG: Final[tuple[JsonValue, ...]] = (7, "x", True, [7], {"a": 7})
_EMPTY: Final[tuple[JsonValue, ...]] = (None, "", [], {})
_DEEP: Final = 100_000
_EVENTS: Final[tuple[ModelEvent, ...]] = (
    TextDelta(text=HELLO),
    CallDelta(index=0, provider_id="call_x", name="add", arguments='{"a":1}'),
    UsageReport(usage=Usage(input_tokens=3, output_tokens=1)),
    Finish(reason="tool_calls"),
)


@check("MOD-5", needs=("json",))
async def a_garbled_message_is_worth_another_try(harness: Harness) -> None:
    """Cut, no JSON, or two values in one: never skipped, since words may have been in it."""
    for name, data in (
        ("cut", lambda data: data[: len(data) // 2]),
        ("no JSON", lambda data: data.replace('"', "'")),
        ("words", lambda data: "Internal Server Error"),
        ("two values", lambda data: data + data),
    ):
        found = await _garbled(harness, data(_text_message(harness).data))
        found.failed(ModelTransient, f"a garbled message ({name})")


@check("MOD-5", "SEC-3", needs=("json",))
async def a_message_that_is_no_object_is_an_error(harness: Harness) -> None:
    """Also one that is nested without end: it crashes nobody."""
    for data in ("[1]", "7", '"x"', "true", "[" * _DEEP, '{"a":' * _DEEP, "1" * 10_000):
        found = await _garbled(harness, data)
        found.failed(ModelError, f"a message that begins with {data[:9]}")


@check("MOD-5")
async def bytes_that_are_no_utf_8_are_worth_another_try(harness: Harness) -> None:
    """Nothing is put in their place."""
    first, second, finish, end = hello(harness.dialect)
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98"):
        broken = second.replace("😀".encode(), bad)
        script = stream(harness.dialect, first, broken, finish, end)
        found = await outcome(harness, script)
        found.failed(ModelTransient, f"the bytes {bad!r} in a text")
        found.may_have_told(HELLO, f"the bytes {bad!r} in a text")


@check("MOD-5", needs=("json",))
async def a_field_of_another_type_loses_no_words(harness: Harness) -> None:
    """Each field of each message in turn: an error, or an answer with all that was said."""
    async for what, found in _with_fields(harness, _WRONG):
        if found.failure is None:
            same((HELLO in found.text, len(found.calls)), (True, 1), f"words and calls {what}")


@check("MOD-5", needs=("json",))
async def a_field_that_is_null_is_no_crash(harness: Harness) -> None:
    """Null or empty, where it should not be: it may say nothing, it may be an error."""
    async for what, found in _with_fields(harness, _EMPTY):
        found.may_have_told(HELLO, f"an answer {what}")


@check("MOD-5", needs=("json",))
async def a_field_that_nobody_knows_says_nothing(harness: Harness) -> None:
    """Formats grow: in each object of each message, a field more."""
    told = [message for group in harness.dialect.answer(_EVENTS) for message in group]
    grown = [
        message._replace(data=json.dumps(_grown(json.loads(message.data)))) for message in told
    ]
    body = harness.dialect.wire.write([*grown, *harness.dialect.end()])
    found = await outcome(harness, stream(harness.dialect, body))
    same(found.failure, None, "the failure of an answer with more fields")
    same((found.text, found.finish), (HELLO, "tool_calls"), "an answer with more fields")
    same([call.arguments for call in found.calls], ['{"a":1}'], "calls with more fields")


@check("MOD-5", needs=("stream_errors",))
async def a_passing_error_in_the_stream_is_worth_another_try(harness: Harness) -> None:
    """In each form, behind words, and as the first message."""
    for message in harness.dialect.failures("transient", "The server is overloaded."):
        await _fails(harness, message, ModelTransient)


@check("MOD-5", needs=("stream_errors",))
async def an_error_in_the_stream_that_stays_is_permanent(harness: Harness) -> None:
    """The same request would fail again."""
    for message in harness.dialect.failures("permanent", "Your tools are not valid."):
        await _fails(harness, message, ModelPermanent)


@check("MOD-5")
async def an_error_as_the_whole_body_is_an_error(harness: Harness) -> None:
    """200, and in the body what belongs to another status."""
    for status in (400, 429, 500):
        refusal = harness.dialect.refusal(status, "No.")
        for content_type in (refusal.content_type, harness.dialect.wire.content_type):
            script = answer(refusal.body, content_type=content_type, framing="length")
            found = await outcome(harness, script)
            found.failed(ModelError, f"the error object of {status} with status 200")


@check("MOD-5")
async def a_web_page_is_no_answer(harness: Harness) -> None:
    """A login page, or a proxy that answers for everybody."""
    page = b"<!doctype html>\n<html><body>Welcome. data: none</body></html>\n"
    for content_type in ("text/html", harness.dialect.wire.content_type):
        script = answer(page, content_type=content_type, framing="length")
        found = await outcome(harness, script)
        found.failed(ModelError, f"a web page as {content_type}")
        found.may_have_told("", f"a web page as {content_type}")


@check("MOD-5")
async def another_content_type_is_read_or_an_error(harness: Harness) -> None:
    """Whole or not at all."""
    for content_type in ("text/plain", "application/octet-stream", "x", None):
        script = answer(*hello(harness.dialect), content_type=content_type)
        _whole_or_error(await outcome(harness, script), f"a stream as {content_type}")


@check("MOD-5")
async def a_compressed_body_is_read_or_an_error(harness: Harness) -> None:
    """Asked for or not, as said or not."""
    plain = b"".join(hello(harness.dialect))
    content_type = harness.dialect.wire.content_type
    for body, encoding in (
        (gzip.compress(plain), "gzip"),
        (gzip.compress(plain)[:-12], "gzip"),
        (plain, "gzip"),
        (plain, "no-such-coding"),
        (gzip.compress(plain), "identity"),
    ):
        headers = {"Content-Encoding": encoding}
        script = answer(body, content_type=content_type, headers=headers, framing="length")
        _whole_or_error(await outcome(harness, script), f"a body that says it is {encoding}")


def _whole_or_error(found: Outcome, what: str) -> None:
    if found.failure is None:
        is_whole(found, what)
    found.may_have_told(HELLO, what)


def _text_message(harness: Harness) -> Message:
    return harness.dialect.answer([TextDelta(text="x"), TextDelta(text=HELLO[3:])])[1][-1]


async def _garbled(harness: Harness, data: str) -> Outcome:
    """Return what comes of an answer with another message in the place of its second text."""
    first, _, finish, end = hello(harness.dialect)
    message = _text_message(harness)._replace(data=data)
    script = stream(harness.dialect, first, harness.dialect.wire.write([message]), finish, end)
    found = await outcome(harness, script)
    found.may_have_told(HELLO, "an answer with a garbled message")
    return found


async def _fails(harness: Harness, message: Message, kind: type[ModelError]) -> None:
    first, second, finish, end = hello(harness.dialect)
    failure = harness.dialect.wire.write([message])
    for pieces, told in (
        ((first, second, failure), HELLO),
        ((first, second, failure, finish, end), HELLO),
        ((failure,), ""),
    ):
        found = await outcome(harness, stream(harness.dialect, *pieces))
        found.failed(kind, f"an error in the stream: {message.data}")
        same(type(found.failure), kind, "the kind of an error in the stream")
        same(found.text, told, "what was told before an error in the stream")


async def _with_fields(
    harness: Harness, values: tuple[JsonValue, ...]
) -> AsyncIterator[tuple[str, Outcome]]:
    """Yield what comes of an answer with one field changed, for each field and value."""
    dialect = harness.dialect
    messages = [message for group in dialect.answer(_EVENTS) for message in group]
    cases: list[tuple[str, list[Message]]] = []
    for at, message in enumerate(messages):
        for place, changed in _changed(json.loads(message.data), values):
            data = json.dumps(changed, ensure_ascii=False)
            told = [*messages[:at], message._replace(data=data), *messages[at + 1 :]]
            cases.append((f"with {place} in message {at}", told))
    scripts = [stream(dialect, dialect.wire.write([*told, *dialect.end()])) for _, told in cases]
    async with scene(harness, *scripts) as (_, client):
        for what, _ in cases:
            yield what, await ask(client)


def _changed(
    value: JsonValue, values: tuple[JsonValue, ...], path: str = ""
) -> Iterator[tuple[str, JsonValue]]:
    """Yield `value` with each part of it in turn replaced by those of another type."""
    parts: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for key, part in parts:
        here = f"{path}/{key}"
        others = [other for other in values if type(other) is not type(part)]
        inner = [(f"{json.dumps(other)} at {here}", other) for other in others]
        for place, other in [*inner, *_changed(part, values, here)]:
            if isinstance(value, dict):
                yield place, value | {str(key): other}
            elif isinstance(value, list):
                assert isinstance(key, int)
                yield place, [*value[:key], other, *value[key + 1 :]]


def _grown(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {"a_new_field": {"a": [1]}, **{key: _grown(part) for key, part in value.items()}}
    return [_grown(part) for part in value] if isinstance(value, list) else value
