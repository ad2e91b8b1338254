"""What is sent: one request is one sequence of bytes, and no history can be refused (D5, MOD-8)."""

import json

import pytest

from psych_runtime.model._request import Dialect, encode
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    JsonPart,
    Message,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)

_ONE = "call_" + "1" * 26
_TWO = "call_" + "2" * 26
_DIALECT = Dialect(max_tokens_field="max_tokens", streaming=True, include_usage=True)


def _request(*messages: Message, system: str = "Be brief.") -> ModelRequest:
    return ModelRequest(model="m", system=system, messages=messages)


def _user(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),))


def _asked(arguments: str, *, name: str = "add", problem: str | None = None) -> AssistantMessage:
    call = AskedCall(
        call_id=_ONE, provider_id="theirs", name=name, arguments=arguments, problem=problem
    )
    return AssistantMessage(parts=(), calls=(call,))


def _sent(request: ModelRequest, dialect: Dialect = _DIALECT) -> dict[str, object]:
    value = json.loads(encode(request, dialect))
    assert isinstance(value, dict)
    return value


def _messages(*messages: Message) -> object:
    return _sent(_request(*messages, system=""))["messages"]


def test_mod_9_a_conversation_in_the_published_format() -> None:
    """Calls carry our ids, results name them, reasoning is left out."""
    calls = (
        AskedCall(call_id=_ONE, provider_id="x", name="add", arguments='{"a": 1}'),
        AskedCall(call_id=_TWO, provider_id="x", name="sub", arguments="{}"),
    )
    assert _sent(
        _request(
            _user("Hi"),
            AssistantMessage(
                parts=(ReasoningPart(text="hm", signature="s"), TextPart(text="So:")), calls=calls
            ),
            ToolMessage(call_id=_ONE, parts=(JsonPart(value={"b": [1, "ü"], "a": None}),)),
            ToolMessage(call_id=_TWO, parts=(TextPart(text="no"),), failed=True),
            AssistantMessage(parts=(TextPart(text="Done"),)),
        )
    ) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "So:",
                "tool_calls": [
                    {
                        "id": _ONE,
                        "type": "function",
                        "function": {"name": "add", "arguments": '{"a": 1}'},
                    },
                    {
                        "id": _TWO,
                        "type": "function",
                        "function": {"name": "sub", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": _ONE, "content": '{"a":null,"b":[1,"ü"]}'},
            {"role": "tool", "tool_call_id": _TWO, "content": "no"},
            {"role": "assistant", "content": "Done"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_mod_9_tools_and_parameters_pass_through() -> None:
    """What the request does not say is not sent."""
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = ToolDefinition.model_validate(
        {"name": "add", "description": "Add.", "parameters": parameters}
    )
    request = _request(_user("Hi")).model_copy(
        update={"tools": (tool,), "temperature": 0.5, "max_output_tokens": 7}
    )
    sent = _sent(request)
    function = {"name": "add", "description": "Add.", "parameters": parameters}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["temperature"] == 0.5
    assert sent["max_tokens"] == 7
    bare = _sent(_request(_user("Hi")))
    assert set(bare) == {"model", "messages", "stream", "stream_options"}


def test_mod_9_the_dialect_decides_fields() -> None:
    """Not every server knows them."""
    whole = Dialect(max_tokens_field="max_completion_tokens", streaming=False, include_usage=True)
    request = _request(_user("Hi")).model_copy(update={"max_output_tokens": 7})
    sent = _sent(request, whole)
    assert sent["stream"] is False
    assert "stream_options" not in sent
    assert sent["max_completion_tokens"] == 7
    silent = Dialect(max_tokens_field="max_tokens", streaming=True, include_usage=False)
    assert "stream_options" not in _sent(request, silent)


def test_mod_8_a_longer_conversation_extends_the_shorter_one() -> None:
    """The prefix that a provider caches stays the same bytes."""
    short = encode(_request(_user("Hi")), _DIALECT)
    long = encode(_request(_user("Hi"), _asked("{}")), _DIALECT)
    prefix = short[: short.index(b"]")]
    assert long.startswith(prefix)


@pytest.mark.parametrize(
    ("arguments", "problem", "sent"),
    [
        ('{"a":1}', None, '{"a":1}'),
        ("", None, "{}"),
        ("  ", None, "{}"),
        ('{"a"', "ends too early", "{}"),
        ("null", "no object", "{}"),
    ],
)
def test_d5_unreadable_arguments_do_not_go_back(
    arguments: str, problem: str | None, sent: str
) -> None:
    """Servers parse the arguments of a history, and refuse all of it for one."""
    messages = _messages(_asked(arguments, problem=problem))
    assert messages == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": _ONE, "type": "function", "function": {"name": "add", "arguments": sent}}
            ],
        }
    ]


def test_mod_9_several_parts_are_one_text() -> None:
    """Many servers take a text only."""
    message = UserMessage(parts=(TextPart(text="one"), JsonPart(value=2), TextPart(text="three")))
    assert _messages(message) == [{"role": "user", "content": "one\n2\nthree"}]
