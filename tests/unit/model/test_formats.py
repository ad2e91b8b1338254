"""What every format keeps to when a request is written in it (D5, MOD-8, MOD-9)."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.errors import UnsendableRequest
from psych_schema.common import BlobRef
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    JsonPart,
    Message,
    ModelRequest,
    Part,
    TextPart,
    ToolMessage,
    UserMessage,
)
from tests.servers.anthropic_server import complaint
from tests.servers.formats import ANTHROPIC, Format, each_format

_ONE = "call_" + "1" * 26
_HI = UserMessage(parts=(TextPart(text="Hi"),))
_ASKS = AssistantMessage(parts=(), calls=(AskedCall(call_id=_ONE, name="add", arguments="{}"),))
_ANY_FORMAT: Final = ("image/png", "application/pdf", "text/csv", "application/json")
_NO_FORMAT: Final = ("application/zip", "image/svg+xml", "image/tiff", "video/mp4", "", "a\nb/c")


def _request(*messages: Message, **attachments: str) -> ModelRequest:
    return ModelRequest(model="m", system="Be brief.", messages=messages, attachments=attachments)


def _blob(media_type: str, data: bytes, *, name: str | None = None) -> BlobPart:
    ref = BlobRef(hash=sha256(data).hexdigest(), bytes=len(data), media_type=media_type)
    return BlobPart(blob=ref, name=name)


def _attached(*data: bytes) -> dict[str, str]:
    return {sha256(one).hexdigest(): b64encode(one).decode() for one in data}


def _answered(form: Format, *parts: Part, data: bytes) -> bytes:
    """Return the body of a request in which a tool has returned these."""
    message = ToolMessage(call_id=_ONE, parts=parts)
    return form.encode(_request(_HI, _ASKS, message, **_attached(data)))


_IMAGE = _blob("image/png", b"png")


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield every text in the messages of a body."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _said(body: bytes) -> list[str]:
    return list(_texts(json.loads(body)["messages"]))


@each_format
def test_mod_8_one_request_is_one_sequence_of_bytes(form: Format) -> None:
    """The order in which a value's keys were put in does not matter."""
    one = _request(UserMessage(parts=(JsonPart(value={"a": 1, "b": 2.5}),)))
    other = _request(UserMessage(parts=(JsonPart(value={"b": 2.5, "a": 1}),)))
    assert form.encode(one) == form.encode(other)


@each_format
@pytest.mark.parametrize(
    ("name", "sent"), [("a b/ü", "a_b__"), ("", "_"), ("x" * 70, "x" * 64), ("ok-1_", "ok-1_")]
)
def test_d5_a_name_that_no_tool_can_have_does_not_go_back(
    form: Format, name: str, sent: str
) -> None:
    """Servers check the names of a history, too."""
    call = AskedCall(call_id=_ONE, name=name, arguments="{}")
    said = AssistantMessage(parts=(), calls=(call,))
    answered = ToolMessage(call_id=_ONE, parts=())
    assert f'"name":"{sent}"'.encode() in form.encode(_request(_HI, said, answered))


@each_format
def test_mod_9_a_blob_without_its_bytes_is_refused(form: Format) -> None:
    """Nothing is left out silently."""
    with pytest.raises(UnsendableRequest, match=r"message 1 has a blob part \(image/png\) whose"):
        form.encode(_request(_HI, UserMessage(parts=(_IMAGE,))))


@each_format
def test_mod_9_a_blob_of_the_model_cannot_be_said(form: Format) -> None:
    """No format has words for it: refused, with the place."""
    with pytest.raises(UnsendableRequest, match="message 1 is the model's"):
        form.encode(_request(_HI, AssistantMessage(parts=(_IMAGE,)), **_attached(b"png")))


@each_format
@pytest.mark.parametrize("media_type", _NO_FORMAT)
def test_mod_9_a_line_stands_for_a_tools_file_that_has_no_place(
    form: Format, media_type: str
) -> None:
    """It names the file; a person's file is refused instead, since a person chose it."""
    file = _blob(media_type, b"bytes", name="report.zip")
    [line] = [text for text in _said(_answered(form, file, data=b"bytes")) if "report" in text]
    kind = f"{' '.join(media_type.split())}, " if media_type else ""
    assert line == f"[report.zip, {kind}5 bytes: this cannot be shown to you]"
    with pytest.raises(UnsendableRequest, match=r"message 1 .*, which this format has no place f"):
        form.encode(_request(_HI, UserMessage(parts=(file,)), **_attached(b"bytes")))


@each_format
def test_mod_9_a_line_needs_no_bytes(form: Format) -> None:
    """Nobody has to read them; what is shown does need them, of a tool's, too."""
    nowhere = _blob("application/zip", b"bytes", name="report.zip")
    assert b"report.zip" in _answered(form, nowhere, data=b"other")
    for media_type in _ANY_FORMAT:
        with pytest.raises(UnsendableRequest, match="not among the attachments"):
            _answered(form, _blob(media_type, b"bytes"), data=b"other")


@each_format
@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "TEXT/HTML; charset=utf-8", "application/json", "application/problem+json;a=b"],
)
def test_tool_6_a_text_without_a_name_is_what_the_tool_said(form: Format, media_type: str) -> None:
    """A large result, kept outside of the log: written as if it stood in the message."""
    said = ' {"é": 1}\n'
    blob = _blob(media_type, said.encode())
    for before, after in (((), ()), ((TextPart(text="a"),), (_IMAGE,))):
        attachments = _attached(said.encode(), b"png")
        bodies = [
            form.encode(
                _request(
                    _HI,
                    _ASKS,
                    ToolMessage(call_id=_ONE, parts=(*before, part, *after), failed=True),
                    **attachments,
                )
            )
            for part in (blob, TextPart(text=said))
        ]
        assert bodies[0] == bodies[1]


@each_format
def test_mod_9_a_text_with_a_name_is_a_file(form: Format) -> None:
    """Its words are told behind its name."""
    file = _blob("text/csv", b"a,b", name="table.csv")
    said = _said(_answered(form, file, data=b"a,b"))
    assert any("table.csv" in text for text in said)
    assert any(text.endswith("a,b") for text in said)


@each_format
@pytest.mark.parametrize("name", [None, "notes.txt"])
@pytest.mark.parametrize(
    ("data", "words"), [(b"", "is blank"), (b" \n", "is blank"), (b"\xff", "is no text in UTF-8")]
)
def test_mod_9_a_text_that_is_none_is_told_as_such(
    form: Format, name: str | None, data: bytes, words: str
) -> None:
    """In a line, where a tool returned it; a person's is refused."""
    file = _blob("text/plain", data, name=name)
    label = "notes.txt, text/plain" if name else "text/plain"
    line = f"[{label}, {len(data)} bytes: this {words}]"
    assert line in _said(_answered(form, file, data=data))
    with pytest.raises(UnsendableRequest, match=f"message 1 has .*text/plain.* that {words}"):
        form.encode(_request(_HI, UserMessage(parts=(file,)), **_attached(data)))


_NAMED: Final = ("application/pdf", "text/csv", "application/json")


@each_format
@pytest.mark.parametrize(
    ("media_type", "by_tool"),
    [*((kind, False) for kind in _NAMED), *((kind, True) for kind in (*_NAMED, "x/zip"))],
)
def test_mod_9_the_name_of_a_file_is_short_and_on_one_line(
    form: Format, media_type: str, by_tool: bool
) -> None:
    """It is foreign text: what a terminal obeys, or turns letters around, is not told."""
    hostile = "a\r\n\x1b[2J\u2028b\u202e" + "c" * 100
    file = _blob(media_type, b"bytes", name=hostile)
    body = (
        _answered(form, file, data=b"bytes")
        if by_tool
        else form.encode(_request(UserMessage(parts=(file,)), **_attached(b"bytes")))
    )
    told = "a [2J b " + "c" * 72
    [said] = [text for text in _said(body) if "a [2J" in text]
    assert re.fullmatch(rf"\[?{re.escape(told)}(, .*)?", said, re.DOTALL)


@each_format
def test_mod_9_a_media_type_in_a_line_is_short_and_on_one_line(form: Format) -> None:
    """It is foreign text as well."""
    file = _blob("x/\n" + "y" * 200, b"bytes", name="\n")
    [said] = [text for text in _said(_answered(form, file, data=b"bytes")) if "x/" in text]
    assert said == f"[x/ {'y' * 77}, 5 bytes: this cannot be shown to you]"


_TYPES = st.one_of(
    st.sampled_from([*_ANY_FORMAT, *_NO_FORMAT, "audio/wav", "text/", "x+json", "image/PNG;q=1"]),
    st.text(max_size=12),
)
_FILES = st.builds(
    lambda kind, data, name: (_blob(kind, data, name=name), data),
    _TYPES,
    st.one_of(st.binary(max_size=6), st.text(max_size=6).map(str.encode)),
    st.one_of(st.none(), st.text(max_size=100)),
)
_RESULTS = st.lists(st.tuples(st.lists(_FILES, max_size=3), st.booleans()), max_size=3)


def _talk(results: list[tuple[list[tuple[BlobPart, bytes]], bool]]) -> list[Message]:
    """Return a turn for each result, with a call that brought it, and another without any."""
    messages: list[Message] = [_HI]
    for number, (files, failed) in enumerate(results):
        ids = [f"call_{number:025d}{one}" for one in (1, 2)]
        calls = tuple(AskedCall(call_id=one, name="add", arguments="{}") for one in ids)
        parts = tuple(file for file, _ in files)
        messages += [
            AssistantMessage(parts=(), calls=calls),
            ToolMessage(call_id=ids[0], parts=parts, failed=failed),
            ToolMessage(call_id=ids[1], parts=(TextPart(text="Done"),)),
        ]
    return messages


@each_format
@given(_RESULTS)
def test_mod_9_nothing_that_a_tool_returns_is_refused(
    form: Format, results: list[tuple[list[tuple[BlobPart, bytes]], bool]]
) -> None:
    """Whatever media type, name and bytes; what is sent breaks no published rule."""
    attachments = _attached(*(data for files, _ in results for _, data in files))
    body = form.encode(_request(*_talk(results), **attachments))
    if form is ANTHROPIC:
        assert complaint(json.loads(body)) is None


@each_format
@given(_RESULTS)
def test_mod_8_what_tools_returned_stays_as_it_is(
    form: Format, results: list[tuple[list[tuple[BlobPart, bytes]], bool]]
) -> None:
    """A conversation begins what a longer one is, after each turn."""
    attachments = _attached(*(data for files, _ in results for _, data in files))
    talk = _talk(results)
    whole = json.loads(form.encode(_request(*talk, **attachments)))["messages"]
    for length in range(1, len(talk), 3):
        short = json.loads(form.encode(_request(*talk[:length], **attachments)))["messages"]
        assert whole[: len(short)] == short
