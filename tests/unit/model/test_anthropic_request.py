"""What is sent in the Messages format: all that is set, and no history that is refused (D5)."""

import json
from base64 import b64encode
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.errors import UnsendableRequest
from psych_runtime.model._anthropic_request import FIELDS, encode
from psych_schema.common import BlobRef
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    JsonPart,
    Message,
    ModelRequest,
    OutputFormat,
    Part,
    ReasoningPart,
    TextPart,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from psych_schema.spec import ToolChoice
from tests.servers.anthropic_server import complaint

_ONE = "call_" + "1" * 26
_TWO = "call_" + "2" * 26
_MARK = {"type": "ephemeral"}
_SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {"a": {"type": "integer"}}}
_TOOLS = tuple(
    ToolDefinition(name=name, description=f"{name}s.", parameters=_SCHEMA)
    for name in ("add", "sub")
)


def _request(*messages: Message, **more: object) -> ModelRequest:
    request = ModelRequest(model="m", system="Be brief.", messages=messages)
    return request.model_copy(update=more)


def _user(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def _call(call_id: str, arguments: str = "{}", *, name: str = "add") -> AskedCall:
    return AskedCall(call_id=call_id, provider_id="theirs", name=name, arguments=arguments)


def _encode(request: ModelRequest) -> bytes:
    return encode(request, fields=FIELDS, max_tokens=900)


def _sent(request: ModelRequest) -> dict[str, JsonValue]:
    value = json.loads(_encode(request))
    assert isinstance(value, dict)
    assert complaint(value) is None
    return value


def _messages(*messages: Message, **more: object) -> JsonValue:
    return _sent(_request(*messages, **more))["messages"]


def _blob(kind: str, *, name: str | None = None) -> BlobPart:
    return BlobPart(blob=BlobRef(hash="0" * 64, bytes=3, media_type=kind), name=name)


def _attached(data: bytes) -> dict[str, str]:
    return {"0" * 64: b64encode(data).decode()}


def test_mod_9_a_conversation_in_the_published_format() -> None:
    """The answers to the calls of a turn are one message; calls carry our ids."""
    assert _sent(
        _request(
            _user("Hi"),
            AssistantMessage(
                parts=(ReasoningPart(text="hm", signature="s="), TextPart(text="So:")),
                calls=(_call(_ONE, '{"a": 1}'), _call(_TWO)),
            ),
            ToolMessage(call_id=_ONE, parts=(JsonPart(value={"b": [1, "ü"], "a": None}),)),
            ToolMessage(call_id=_TWO, parts=(TextPart(text="no"),), failed=True),
            AssistantMessage(parts=(TextPart(text="Done"),)),
            _user("Thanks"),
        )
    ) == {
        "model": "m",
        "max_tokens": 900,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s="},
                    {"type": "text", "text": "So:"},
                    {"type": "tool_use", "id": _ONE, "name": "add", "input": {"a": 1}},
                    {"type": "tool_use", "id": _TWO, "name": "add", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": _ONE,
                        "content": [{"type": "text", "text": '{"a":null,"b":[1,"ü"]}'}],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": _TWO,
                        "content": [{"type": "text", "text": "no"}],
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
            {"role": "user", "content": [{"type": "text", "text": "Thanks"}]},
        ],
    }


def test_mod_9_what_a_spec_sets_is_sent() -> None:
    """Each field under the name that it has in this format."""
    sent = _sent(
        _request(
            _user("Hi"),
            tools=_TOOLS,
            temperature=0.5,
            top_p=0.9,
            max_output_tokens=7,
            stop_sequences=("END",),
            extras={"thinking": {"type": "adaptive"}, "top_k": 4},
        )
    )
    assert sent["tools"] == [
        {"name": "add", "description": "adds.", "input_schema": _SCHEMA},
        {"name": "sub", "description": "subs.", "input_schema": _SCHEMA},
    ]
    assert {key: sent[key] for key in ("temperature", "top_p", "max_tokens")} == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
    }
    assert sent["stop_sequences"] == ["END"]
    assert (sent["thinking"], sent["top_k"]) == ({"type": "adaptive"}, 4)
    bare = _sent(_request(_user("Hi"), system=" "))
    assert set(bare) == {"model", "max_tokens", "stream", "messages"}


def test_mod_9_a_schema_without_a_type_is_that_of_an_object() -> None:
    """The service wants it said."""
    tool = ToolDefinition(name="now", description="Now.", parameters={})
    [sent] = cast(
        "list[dict[str, JsonValue]]", _sent(_request(_user("Hi"), tools=(tool,)))["tools"]
    )
    assert sent["input_schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        (ToolChoice(mode="auto"), None, {"type": "auto"}),
        (ToolChoice(mode="none"), False, {"type": "none"}),
        (ToolChoice(mode="required"), None, {"type": "any"}),
        (ToolChoice(mode="tool", tool="sub"), None, {"type": "tool", "name": "sub"}),
        (ToolChoice(mode="required"), False, {"type": "any", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (None, True, {"type": "auto", "disable_parallel_tool_use": False}),
    ],
)
def test_mod_9_the_choice_of_tools(
    choice: ToolChoice | None, parallel: bool | None, sent: JsonValue
) -> None:
    """Whether several calls may come in one turn is a part of it."""
    request = _request(_user("Hi"), tool_choice=choice, parallel_tool_calls=parallel, tools=_TOOLS)
    assert _sent(request)["tool_choice"] == sent


def test_mod_9_without_tools_there_is_no_choice() -> None:
    """The service refuses one."""
    request = _request(_user("Hi"), parallel_tool_calls=False, tool_choice=ToolChoice(mode="none"))
    assert "tool_choice" not in _sent(request)


def test_mod_9_a_strict_output_is_enforced() -> None:
    """Beside what extras say of the output."""
    output = OutputFormat(name="x", json_schema=_SCHEMA, strict=True)
    sent = _sent(_request(_user("Hi"), output=output, extras={"output_config": {"effort": "low"}}))
    schema = {"type": "json_schema", "schema": _SCHEMA}
    assert sent["output_config"] == {"effort": "low", "format": schema}
    assert sent["system"] == [{"type": "text", "text": "Be brief."}]


def test_mod_9_another_output_is_asked_for() -> None:
    """The format has no word for a wish: it stands behind the system prompt."""
    output = OutputFormat(name="x", json_schema=_SCHEMA)
    sent = _sent(_request(_user("Hi"), output=output))
    assert "output_config" not in sent
    first, second = cast("list[dict[str, str]]", sent["system"])
    assert first["text"] == "Be brief."
    assert json.dumps(_SCHEMA, separators=(",", ":")) in second["text"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"seed": 1}, "does not take seed"),
        ({"temperature": 1.5}, r"temperature is 1\.5; this format takes 0 to 1"),
        ({"stop_sequences": ("\n",)}, "a stop sequence is blank"),
        ({"extras": {"max_tokens": 3}}, 'extras have "max_tokens"'),
        (
            {
                "extras": {"output_config": {"format": {}}},
                "output": OutputFormat(name="x", json_schema={}, strict=True),
            },
            "output_config with a format",
        ),
        ({"tool_choice": ToolChoice(mode="required")}, "requires a call"),
    ],
)
def test_mod_9_what_the_format_has_not_is_refused(more: dict[str, object], words: str) -> None:
    """Before anything is sent, by name."""
    with pytest.raises(UnsendableRequest, match=words):
        _encode(_request(_user("Hi"), **more))


def test_mod_9_a_field_that_the_server_has_not_is_refused() -> None:
    """As the operator said."""
    request = _request(_user("Hi"), top_p=0.5)
    with pytest.raises(UnsendableRequest, match="does not take top_p"):
        encode(request, fields=FIELDS - {"top_p"}, max_tokens=900)


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg; a=b", "IMAGE/WEBP"])
def test_mod_9_an_image_is_shown(kind: str) -> None:
    """Also one that a tool returned, in its answer."""
    image = _blob(kind)
    sent = _messages(
        UserMessage(parts=(TextPart(text="See:"), image)),
        AssistantMessage(parts=(), calls=(_call(_ONE),)),
        ToolMessage(call_id=_ONE, parts=(image,)),
        attachments=_attached(b"png"),
    )
    media_type = kind.split(";")[0].lower()
    source = {"type": "base64", "media_type": media_type, "data": "cG5n"}
    shown = {"type": "image", "source": source}
    assert isinstance(sent, list)
    assert sent[0] == {"role": "user", "content": [{"type": "text", "text": "See:"}, shown]}
    result = {"type": "tool_result", "tool_use_id": _ONE, "content": [shown]}
    assert sent[2] == {"role": "user", "content": [result]}


def test_mod_9_documents_are_shown() -> None:
    """PDF as bytes, text as text, under their names."""
    pdf, csv = _blob("application/pdf"), _blob("text/csv", name="a.csv")
    sent = _messages(UserMessage(parts=(pdf, csv)), attachments=_attached(b"a,\xc3\xbc"))
    pdf_source = {"type": "base64", "media_type": "application/pdf", "data": "YSzDvA=="}
    text_source = {"type": "text", "media_type": "text/plain", "data": "a,ü"}
    assert sent == [
        {
            "role": "user",
            "content": [
                {"type": "document", "source": pdf_source},
                {"type": "document", "source": text_source, "title": "a.csv"},
            ],
        }
    ]


def test_mod_9_files_of_tools_are_told_in_their_places() -> None:
    """Words as words, files under their names, a line for what has no place."""
    parts = (
        _blob("application/zip", name="a.zip"),
        _blob("application/pdf", name="b\n.pdf"),
        _blob("text/plain", name="c.txt"),
        _blob("application/json"),
    )
    sent = _messages(
        _user("Hi"),
        AssistantMessage(parts=(), calls=(_call(_ONE), _call(_TWO))),
        ToolMessage(call_id=_ONE, parts=parts, failed=True),
        ToolMessage(call_id=_TWO, parts=parts[:1], failed=True),
        attachments=_attached(b"{} "),
    )
    line = "[a.zip, application/zip, 3 bytes: this cannot be shown to you]"
    told: JsonValue = {"type": "text", "text": line}
    pdf: JsonValue = {"type": "base64", "media_type": "application/pdf", "data": "e30g"}
    text: JsonValue = {"type": "text", "media_type": "text/plain", "data": "{} "}
    first: JsonValue = {
        "type": "tool_result",
        "tool_use_id": _ONE,
        "content": [
            told,
            {"type": "document", "source": pdf, "title": "b .pdf"},
            {"type": "document", "source": text, "title": "c.txt"},
            {"type": "text", "text": "{} "},
        ],
    }
    second: JsonValue = {
        "type": "tool_result",
        "tool_use_id": _TWO,
        "content": [told],
        "is_error": True,
    }
    assert isinstance(sent, list)
    assert sent[2] == {"role": "user", "content": [first, second]}


@pytest.mark.parametrize(
    ("message", "data", "words"),
    [
        (UserMessage(parts=(_blob("image/tiff"),)), b"x", r"image/tiff\), which this format"),
        (
            UserMessage(parts=(_blob("audio/mpeg"),)),
            b"x",
            "it takes image/gif, .*, application/pdf",
        ),
        (UserMessage(parts=(_blob("text/plain"),)), b"\xff", "no text in UTF-8"),
        (UserMessage(parts=(_blob("text/plain"),)), b" ", "is blank"),
    ],
)
def test_mod_9_a_blob_without_a_place_is_refused(message: Message, data: bytes, words: str) -> None:
    """Nothing is left out silently."""
    with pytest.raises(UnsendableRequest, match=words):
        _encode(_request(_user("Hi"), message, attachments=_attached(data)))


def _thinks(*parts: Part, ref: str | None = None) -> JsonValue:
    said = AssistantMessage(parts=(*parts, TextPart(text="So")))
    sent = _messages(_user("Hi"), said, _user("And?"), ref=ref)
    assert isinstance(sent, list)
    assert isinstance(sent[1], dict)
    content = sent[1]["content"]
    assert isinstance(content, list)
    return content[:-1]


def test_mod_9_reasoning_goes_back_unchanged() -> None:
    """With its signature, in its place; what is redacted as it came."""
    parts = (
        ReasoningPart(text=" hm\n", signature="a+/="),
        ReasoningPart(text="", signature="b"),
        ReasoningPart(text="", signature="c", redacted=True),
    )
    assert _thinks(*parts) == [
        {"type": "thinking", "thinking": " hm\n", "signature": "a+/="},
        {"type": "thinking", "thinking": "", "signature": "b"},
        {"type": "redacted_thinking", "data": "c"},
    ]


def test_mod_9_reasoning_of_another_model_does_not_go_back() -> None:
    """The service refuses a signature that is none of its own, and reasoning without one."""
    ours = ReasoningPart(text="x", signature="s", by="a/m")
    theirs = ReasoningPart(text="y", signature="s", by="b/m")
    unsigned = ReasoningPart(text="z", by="a/m")
    sent = [{"type": "thinking", "thinking": "x", "signature": "s"}]
    assert _thinks(ours, theirs, unsigned, ref="a/m") == sent
    assert _thinks(ours) == []


def test_d5_a_turn_does_not_end_with_what_was_thought() -> None:
    """The service refuses that; a turn with nothing else is left out."""
    thought = ReasoningPart(text="x", signature="s")
    sent = _messages(_user("Hi"), AssistantMessage(parts=(thought,)), _user("And?"))
    both = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "And?"}]
    assert sent == [{"role": "user", "content": both}]


@pytest.mark.parametrize("messages", [(), (_user(""),), (_user(" \n"),), (UserMessage(parts=()),)])
def test_d5_a_conversation_without_words_can_be_sent(messages: tuple[Message, ...]) -> None:
    """As other formats can."""
    nothing = {"role": "user", "content": [{"type": "text", "text": "(no text)"}]}
    assert _messages(*messages) == [nothing]


def test_d5_a_result_without_words_stays_a_result() -> None:
    """The call has its answer; a failure with an image is no error in this format."""
    asked = AssistantMessage(parts=(), calls=(_call(_ONE), _call(_TWO)))
    empty = ToolMessage(call_id=_ONE, parts=(TextPart(text=""),))
    image = ToolMessage(call_id=_TWO, parts=(_blob("image/png"),), failed=True)
    sent = _messages(_user("Hi"), asked, empty, image, attachments=_attached(b"png"))
    assert isinstance(sent, list)
    source = {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    content = [{"type": "image", "source": source}]
    assert sent[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": _ONE},
            {"type": "tool_result", "tool_use_id": _TWO, "content": content},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "problem", "sent"),
    [
        ('{"a":1.5, "b": "\\ud83d\\ude00"}', None, {"a": 1.5, "b": "😀"}),
        ('{"a":"\\ud83d"}', None, {"a": "\ufffd"}),
        ("", None, {}),
        ('{"a"', "ends too early", {}),
        ("null", None, {}),
        ("[1]", None, {}),
        ('{"a":1e400}', None, {}),
        ('{"a":' * 100, None, {}),
    ],
)
def test_d5_arguments_go_back_as_an_object(
    arguments: str, problem: str | None, sent: JsonValue
) -> None:
    """The service takes nothing else, and refuses the whole history for it."""
    call = AskedCall(call_id=_ONE, name="add", arguments=arguments, problem=problem)
    answered = ToolMessage(call_id=_ONE, parts=())
    turns = _messages(_user("Hi"), AssistantMessage(parts=(), calls=(call,)), answered)
    assert isinstance(turns, list)
    use = {"type": "tool_use", "id": _ONE, "name": "add", "input": sent}
    assert turns[1] == {"role": "assistant", "content": [use]}


def _talk(turns: int) -> tuple[Message, ...]:
    """Return so many turns with a call each, and a word of the user's first."""
    messages: list[Message] = [_user("Hi")]
    for turn in range(turns):
        call = f"call_{turn:026d}"
        messages.append(AssistantMessage(parts=(TextPart(text="So"),), calls=(_call(call),)))
        messages.append(ToolMessage(call_id=call, parts=(TextPart(text=f"{turn}"),)))
    return tuple(messages)


def test_mod_8_a_longer_conversation_extends_the_shorter_one() -> None:
    """The bytes stay the same up to the end of the shorter one."""
    for turns in range(4):
        short = _encode(_request(*_talk(turns), tools=_TOOLS))
        long = _encode(_request(*_talk(turns + 1), tools=_TOOLS))
        assert long.startswith(short.removesuffix(b"]}"))
        assert len(long) > len(short)


def test_mod_8_what_a_user_adds_extends_the_turn() -> None:
    """An advisory stands behind the answers of the turn."""
    short = _encode(_request(*_talk(1)))
    long = _encode(_request(*_talk(1), _user("By the way")))
    assert long.startswith(short.removesuffix(b"]}]}"))
    assert len(long) > len(short)


def _marked(request: ModelRequest) -> dict[str, list[int]]:
    """Return the places of the blocks that have a mark: tools, system, and each turn."""
    sent = _sent(request)
    turns = cast("list[dict[str, JsonValue]]", sent["messages"])
    found = {f"turn {place}": turn["content"] for place, turn in enumerate(turns)}
    places: dict[str, list[int]] = {}
    for name, blocks in {"tools": sent.get("tools"), "system": sent.get("system"), **found}.items():
        marks = [
            place
            for place, one in enumerate(cast("list[dict[str, JsonValue]]", blocks or []))
            if one.get("cache_control") == _MARK
        ]
        if marks:
            places[name] = marks
    return places


def test_mod_9_the_system_prompt_is_kept_with_the_tools() -> None:
    """They stand before it; without a prompt, the last tool has the mark."""
    assert _marked(_request(_user("Hi"), tools=_TOOLS, cache="system")) == {"system": [0]}
    bare = _request(_user("Hi"), tools=_TOOLS, cache="system", system="")
    assert _marked(bare) == {"tools": [1]}
    assert _marked(_request(_user("Hi"), cache="system", system="")) == {}
    assert _marked(_request(_user("Hi"), tools=_TOOLS)) == {}


def test_mod_9_the_conversation_is_kept_to_its_end() -> None:
    """And to the end that the request before had."""
    one = _request(_user("Hi"), cache="conversation")
    assert _marked(one) == {"system": [0], "turn 0": [0]}
    more = _request(*_talk(2), _user("And?"), cache="conversation")
    assert _marked(more) == {"system": [0], "turn 2": [0], "turn 4": [1]}


_WORDS = st.sampled_from(["", " ", "a", "é 😀", "\ud83d"])
_PARTS: st.SearchStrategy[list[Part]] = st.lists(
    st.one_of(
        st.builds(TextPart, text=_WORDS.filter(lambda text: text != "\ud83d")),
        st.builds(
            ReasoningPart,
            text=st.just("hm"),
            signature=st.sampled_from([None, "", "s"]),
            redacted=st.booleans(),
            by=st.sampled_from([None, "x"]),
        ),
        st.builds(JsonPart, value=st.sampled_from([None, "", {}, [1]])),
        st.just(_blob("image/png")),
    ),
    max_size=3,
)
_ASKED = st.lists(
    st.tuples(
        st.text(max_size=70),
        st.one_of(st.text(max_size=9), st.sampled_from(["{}", '{"a":1}', "null", '{"a":NaN}'])),
        st.sampled_from([None, "broken"]),
        _PARTS,
        st.booleans(),
    ),
    max_size=3,
)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw what the runtime may have recorded: each call is answered, in order."""
    messages: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            messages.append(UserMessage(parts=tuple(draw(_PARTS))))
            continue
        parts = tuple(part for part in draw(_PARTS) if not isinstance(part, BlobPart))
        calls, answers = [], []
        for name, arguments, problem, result, failed in draw(_ASKED):
            call_id = f"call_{number:026d}"
            number += 1
            calls.append(
                AskedCall(call_id=call_id, name=name, arguments=arguments, problem=problem)
            )
            answers.append(ToolMessage(call_id=call_id, parts=tuple(result), failed=failed))
        messages += [AssistantMessage(parts=parts, calls=tuple(calls)), *answers]
    return tuple(messages)


@given(_histories(), st.sampled_from([None, "system", "conversation"]), _WORDS)
def test_d5_no_history_is_refused(
    history: tuple[Message, ...], cache: str | None, system: str
) -> None:
    """Whatever was said, called and answered: the published rules hold."""
    request = _request(*history, system=system, cache=cache, attachments=_attached(b"png"))
    assert complaint(json.loads(_encode(request))) is None
