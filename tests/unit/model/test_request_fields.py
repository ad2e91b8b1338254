"""What a request asks for, in the words of chat/completions (MOD-9)."""

import json
from base64 import b64encode
from typing import Any

import pytest
from pydantic import JsonValue

from psych_runtime.errors import InvalidArgument, UnsendableRequest
from psych_runtime.model._request import FIELDS, OWN, Dialect, encode
from psych_runtime.model.openai import OpenAIClient
from psych_schema.common import BlobRef
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    Message,
    ModelRequest,
    OutputFormat,
    ReasoningPart,
    TextPart,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from psych_schema.spec import ToolChoice

_ONE, _TWO = "call_" + "1" * 26, "call_" + "2" * 26
_DIALECT = Dialect(max_tokens_field="max_tokens", streaming=True, include_usage=False)
_HI = UserMessage(parts=(TextPart(text="Hi"),))
_ADD = ToolDefinition(name="add", description="Add.", parameters={"type": "object"})
_DATA = b64encode(b"bytes").decode()


def _blob(media_type: str, *, name: str | None = None) -> BlobPart:
    ref = BlobRef(hash="a" * 64, bytes=5, media_type=media_type)
    return BlobPart(blob=ref, name=name)


def _sent(*messages: Message, dialect: Dialect = _DIALECT, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(model="m", system="", messages=messages or (_HI,), **fields)
    value = json.loads(encode(request, dialect))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"top_p": 0.25}, {"top_p": 0.25}),
        ({"seed": 0}, {"seed": 0}),
        ({"stop_sequences": ("a", "b")}, {"stop": ["a", "b"]}),
        ({"extras": {"user": "u", "deep": {"a": [1]}}}, {"user": "u", "deep": {"a": [1]}}),
        (
            {"output": OutputFormat(name="n", json_schema={"type": "array"}, strict=True)},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "array"}, "strict": True},
                }
            },
        ),
    ],
)
def test_mod_9_a_field_has_its_place(fields: dict[str, Any], sent: dict[str, JsonValue]) -> None:
    """What is not asked for is not sent."""
    plain = _sent()
    found = _sent(**fields)
    assert {name: found[name] for name in found.keys() - plain.keys()} == sent


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(mode="auto"), "auto"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="required"), "required"),
        (ToolChoice(mode="tool", tool="add"), {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_mod_9_a_choice_of_tools(choice: ToolChoice, sent: JsonValue) -> None:
    """Servers refuse one without tools: what needs none is left out then."""
    found = _sent(tools=(_ADD,), tool_choice=choice, parallel_tool_calls=True)
    assert (found["tool_choice"], found["parallel_tool_calls"]) == (sent, True)
    if choice.mode in ("auto", "none"):
        bare = _sent(tool_choice=choice, parallel_tool_calls=True)
        assert "tool_choice" not in bare
        assert "parallel_tool_calls" not in bare
    else:
        with pytest.raises(UnsendableRequest, match="tool"):
            _sent(tool_choice=choice)


def test_mod_9_a_tool_that_is_not_among_them_cannot_be_required() -> None:
    """The server would refuse the whole request."""
    for tool, words in (("sub", '"sub"'), (None, "names none")):
        with pytest.raises(UnsendableRequest, match=words):
            _sent(tools=(_ADD,), tool_choice=ToolChoice(mode="tool", tool=tool))


@pytest.mark.parametrize("name", sorted(OWN))
def test_mod_9_no_extras_have_a_name_that_the_client_writes(name: str) -> None:
    """Also where this request does not set it."""
    with pytest.raises(UnsendableRequest, match=f'"{name}"'):
        _sent(extras={name: None})


def test_mod_9_every_member_that_is_ever_written_is_the_clients_own() -> None:
    """Else extras could override it."""
    fields = {
        "temperature": 0.5,
        "top_p": 0.5,
        "seed": 1,
        "stop_sequences": ("x",),
        "max_output_tokens": 7,
        "tools": (_ADD,),
        "tool_choice": ToolChoice(mode="auto"),
        "parallel_tool_calls": False,
        "output": OutputFormat(name="n", json_schema={}),
    }
    dialect = Dialect(max_tokens_field="max_completion_tokens", streaming=True, include_usage=True)
    assert _sent(dialect=dialect, **fields).keys() | {"max_tokens", "n"} == OWN


def test_mod_9_a_field_that_the_server_has_not_is_refused() -> None:
    """`without` takes it away; a word that is no field is refused, too."""
    poor = Dialect(
        max_tokens_field="max_tokens",
        streaming=True,
        include_usage=False,
        fields=FIELDS - {"seed"},
    )
    with pytest.raises(UnsendableRequest, match="does not take seed"):
        _sent(dialect=poor, seed=1)
    client = OpenAIClient("http://127.0.0.1:9/v1", without=["seed", "output"])
    assert client.takes().fields == FIELDS - {"seed", "output"}
    with pytest.raises(InvalidArgument, match="sed"):
        OpenAIClient("http://127.0.0.1:9/v1", without=["sed"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("media_type", "part"),
    [
        (
            "image/png",
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_DATA}"}},
        ),
        ("audio/wav", {"type": "input_audio", "input_audio": {"data": _DATA, "format": "wav"}}),
        ("audio/mpeg", {"type": "input_audio", "input_audio": {"data": _DATA, "format": "mp3"}}),
        (
            "application/pdf",
            {
                "type": "file",
                "file": {
                    "filename": "a.pdf",
                    "file_data": f"data:application/pdf;base64,{_DATA}",
                },
            },
        ),
    ],
)
def test_mod_9_a_blob_is_sent_as_its_kind(media_type: str, part: JsonValue) -> None:
    """In its place among the words."""
    parts = (TextPart(text="See"), _blob(media_type, name="a.pdf"), TextPart(text="?"))
    found = _sent(UserMessage(parts=parts), attachments={"a" * 64: _DATA})
    see, asks = ({"type": "text", "text": text} for text in ("See", "?"))
    assert found["messages"] == [{"role": "user", "content": [see, part, asks]}]


@pytest.mark.parametrize(
    ("media_type", "name", "sent"),
    [
        ("text/csv; charset=utf-8", "a.csv", "[a.csv, text/csv, 5 bytes]\nbytes"),
        ("application/ld+json", None, "[application/ld+json, 5 bytes]\nbytes"),
    ],
)
def test_mod_9_a_text_of_a_person_is_sent_as_text(
    media_type: str, name: str | None, sent: str
) -> None:
    """Behind a line that says which file it is: the format has files for PDF only."""
    parts = (_blob(media_type, name=name), TextPart(text="?"))
    found = _sent(UserMessage(parts=parts), attachments={"a" * 64: _DATA})
    file, asks = ({"type": "text", "text": text} for text in (sent, "?"))
    assert found["messages"] == [{"role": "user", "content": [file, asks]}]


def test_mod_9_files_of_tools_are_told_in_their_places() -> None:
    """Words in the answer, files behind it under their names, a line for what has no place."""
    asks = AssistantMessage(parts=(), calls=(AskedCall(call_id=_ONE, name="add", arguments="{}"),))
    parts = (
        _blob("application/zip", name="a.zip"),
        TextPart(text="Two"),
        _blob("application/pdf", name="b\n.pdf"),
        _blob("text/plain", name="c.txt"),
        _blob("text/plain"),
        _blob("audio/mp3"),
    )
    answered = ToolMessage(call_id=_ONE, parts=parts)
    found = _sent(_HI, asks, answered, attachments={"a" * 64: _DATA})["messages"]
    line = "[a.zip, application/zip, 5 bytes: this cannot be shown to you]"
    assert found[2:] == [
        {"role": "tool", "tool_call_id": _ONE, "content": f"{line}\nTwo\nbytes"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"Returned by the call {_ONE}:"},
                {
                    "type": "file",
                    "file": {
                        "filename": "b .pdf",
                        "file_data": f"data:application/pdf;base64,{_DATA}",
                    },
                },
                {"type": "text", "text": "[c.txt, text/plain, 5 bytes]\nbytes"},
                {"type": "input_audio", "input_audio": {"data": _DATA, "format": "mp3"}},
            ],
        },
    ]


def test_mod_8_images_of_tools_follow_the_answers_of_their_turn() -> None:
    """All answers first, as servers want them; what comes later changes nothing before it."""
    calls = tuple(AskedCall(call_id=one, name="add", arguments="{}") for one in (_ONE, _TWO))
    turn: tuple[Message, ...] = (
        _HI,
        AssistantMessage(parts=(), calls=calls),
        ToolMessage(call_id=_ONE, parts=(TextPart(text="One"), _blob("image/png"))),
        ToolMessage(call_id=_TWO, parts=(TextPart(text="Two"),)),
    )
    later = (*turn, AssistantMessage(parts=(TextPart(text="So."),)), _HI)
    attachments = {"a" * 64: _DATA}
    first = _sent(*turn, attachments=attachments)["messages"]
    assert [one["role"] for one in first] == ["user", "assistant", "tool", "tool", "user"]
    assert [one["content"] for one in first[2:4]] == ["One", "Two"]
    assert first[4]["content"] == [
        {"type": "text", "text": f"Returned by the call {_ONE}:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_DATA}"}},
    ]
    assert _sent(*later, attachments=attachments)["messages"][:5] == first


@pytest.mark.parametrize(
    ("by", "ref", "goes"),
    [(None, None, True), ("m", "m", True), ("other", "m", False), (None, "m", False)],
)
def test_mod_9_only_this_models_thoughts_go_back(
    by: str | None, ref: str | None, *, goes: bool
) -> None:
    """And only where the server has a field for them."""
    dialect = Dialect(
        max_tokens_field="max_tokens",
        streaming=True,
        include_usage=False,
        reasoning_field="reasoning",
    )
    said = AssistantMessage(parts=(ReasoningPart(text="hm", by=by), TextPart(text="So.")))
    [_, found] = _sent(_HI, said, dialect=dialect, ref=ref)["messages"]
    assert found.get("reasoning") == ("hm" if goes else None)
    assert "reasoning" not in _sent(_HI, said, ref=ref)["messages"][1]
