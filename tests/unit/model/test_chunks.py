"""Chunks of the published shape, and of the shapes that servers really send (MOD-1, MOD-5)."""

import pytest

from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model._chunks import ChunkReader
from psych_schema.common import Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)


def _reader() -> ChunkReader:
    return ChunkReader(host="h", redact=lambda text: text.replace("sk-canary", "[removed]"))


def _read(*chunks: object) -> list[ModelEvent]:
    reader = _reader()
    return [event for chunk in chunks for event in reader.read(chunk)] + list(reader.end())


def _chunk(delta: object, reason: object = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


_STOP = _chunk({}, "stop")


def test_mod_5_text_then_finish_then_usage() -> None:
    """The finish comes last, though the usage is sent behind it."""
    assert _read(
        _chunk({"role": "assistant", "content": ""}, model="m-1"),
        _chunk({"content": "Hi"}),
        _chunk({"content": None}),
        _STOP,
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}, "model": "m-1"},
    ) == [
        TextDelta(text="Hi"),
        UsageReport(usage=Usage(input_tokens=3, output_tokens=1)),
        Finish(reason="stop", served_by="m-1"),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "stop"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("malformed_function_call", "other"),
    ],
)
def test_mod_4_finish_reasons_are_mapped(said: str, reason: str) -> None:
    """One closed set, whatever a server calls it."""
    assert _read(_chunk({"content": "x"}, said))[-1] == Finish.model_validate({"reason": reason})


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_mod_9_reasoning_of_compatible_servers(name: str) -> None:
    """Both names that are in use."""
    assert _read(_chunk({name: "hm", "content": "x"}), _STOP)[:2] == [
        ReasoningDelta(text="hm"),
        TextDelta(text="x"),
    ]


def test_mod_9_reasoning_under_both_names_is_told_once() -> None:
    """Some servers send the same text twice."""
    events = _read(_chunk({"reasoning": "hm", "reasoning_content": "hm"}), _STOP)
    assert events == [ReasoningDelta(text="hm"), Finish(reason="stop")]


def test_mod_9_content_as_parts() -> None:
    """Text and thinking in one array."""
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Hi"},
    ]
    assert _read(_chunk({"content": content}), _STOP)[:2] == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hi"),
    ]


def test_mod_4_a_refusal_is_what_the_model_says() -> None:
    """It would be an empty answer otherwise."""
    assert _read(_chunk({"content": None, "refusal": "No."}), _STOP)[0] == TextDelta(text="No.")


def test_mod_1_a_legacy_function_call_is_a_call() -> None:
    """It has no id."""
    events = _read(
        _chunk({"function_call": {"name": "add", "arguments": '{"a"'}}),
        _chunk({"function_call": {"arguments": ":1}"}}, "function_call"),
    )
    assert events == [
        CallDelta(index=0, name="add", arguments='{"a"'),
        CallDelta(index=0, arguments=":1}"),
        Finish(reason="tool_calls"),
    ]


def test_mod_5_a_whole_completion_is_one_chunk() -> None:
    """Servers that ignore `stream` send a message instead of deltas."""
    call = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    whole = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    assert _read(whole) == [
        UsageReport(usage=Usage(input_tokens=3, output_tokens=1)),
        TextDelta(text="Hi"),
        CallDelta(index=0, provider_id="a", name="add", arguments="{}"),
        Finish(reason="tool_calls", served_by="m"),
    ]


def test_tok_1_the_last_of_cumulative_reports_counts() -> None:
    """Each report replaces the one before; equal ones are told once."""
    usages = [{"prompt_tokens": 3, "completion_tokens": n} for n in (1, 1, 2)]
    events = _read(*(_chunk({"content": "x"}, usage=usage) for usage in usages), _STOP)
    reports = [event for event in events if isinstance(event, UsageReport)]
    assert [report.usage.output_tokens for report in reports] == [1, 2]


def test_tok_1_no_usage_is_no_report() -> None:
    """Unknown is not zero."""
    events = _read(_chunk({"content": "x"}, "stop", usage=None))
    assert events == [TextDelta(text="x"), Finish(reason="stop")]


def test_mod_5_another_choice_is_not_ours() -> None:
    """One answer was asked for."""
    other = {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}
    assert _read({"choices": [other]}, _STOP) == [Finish(reason="stop")]


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": None},
        {"choices": ""},
        {"choices": [None, [], ""]},
        {"choices": [{"delta": [], "finish_reason": 0}]},
        {"choices": [{"index": 0, "delta": {"content": {}, "tool_calls": "", "refusal": False}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [None, {}], "function_call": None}}]},
        {"model": 3, "usage": "much", "created": {}},
        {},
    ],
)
def test_mod_5_empty_shapes_say_nothing(chunk: object) -> None:
    """Null, and what languages without null send for it: they neither fail nor invent."""
    assert _read(chunk, _STOP) == [Finish(reason="stop")]


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": {"a": 1}},
        {"choices": [1]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {}, "finish_reason": 1}]},
        {"choices": [{"index": "0", "delta": {"content": "x"}}]},
        {"choices": [{"index": True, "delta": {"content": "x"}}]},
        _chunk({"content": {"a": 1}}),
        _chunk({"content": 7}),
        _chunk({"content": ["x"]}),
        _chunk({"content": [{"type": "text", "text": 7}]}),
        _chunk({"refusal": True}),
        _chunk({"tool_calls": "x"}),
        _chunk({"tool_calls": ["x"]}),
        _chunk({"tool_calls": [{"index": 0, "function": "add"}]}),
        _chunk({"tool_calls": [{"index": 0, "function": {"name": 7}}]}),
        _chunk({"function_call": "add"}),
    ],
)
def test_mod_5_words_in_another_shape_are_garbled(chunk: object) -> None:
    """They would be lost without anybody knowing; another try may bring them."""
    with pytest.raises(ModelTransient, match="garbled"):
        _read(chunk, _STOP)


_ERRORS: dict[str, tuple[object, type[ModelError], int | None]] = {
    "server error": ({"error": {"message": "boom", "type": "server_error"}}, ModelTransient, None),
    "only words": ({"error": "boom"}, ModelTransient, None),
    "rate limit": ({"error": {"message": "slow", "code": 429}}, ModelTransient, 429),
    "bad gateway": ({"error": {"message": "x", "code": "502"}}, ModelTransient, 502),
    "status 400": ({"error": {"message": "x", "code": 400}}, ModelPermanent, 400),
    "invalid request": (
        {"error": {"message": "x", "type": "invalid_request_error"}},
        ModelPermanent,
        None,
    ),
    "quota": ({"error": {"message": "x", "code": "insufficient_quota"}}, ModelPermanent, None),
    "overflow by code": (
        {"error": {"message": "x", "code": "context_length_exceeded"}},
        ContextOverflow,
        None,
    ),
    "named and wrapped": (
        {"type": "error", "error": {"message": "x", "type": "invalid_request_error"}},
        ModelPermanent,
        None,
    ),
    "throttled in tokens": (
        {"error": {"message": "Too many tokens, please wait before trying again."}},
        ModelTransient,
        None,
    ),
    "overflow by words": (
        {"error": {"message": "This model's maximum context length is 8 tokens"}},
        ContextOverflow,
        None,
    ),
    "an error object": (
        {"object": "error", "message": "boom", "code": 500},
        ModelTransient,
        500,
    ),
    "a typed error": ({"type": "error", "message": "boom"}, ModelTransient, None),
    "in a choice": (
        {"choices": [{"index": 0, "error": {"message": "boom", "code": 503}}]},
        ModelTransient,
        503,
    ),
    "a finish reason": (_chunk({}, "error"), ModelTransient, None),
}


@pytest.mark.parametrize("case", _ERRORS)
def test_mod_5_an_error_inside_the_stream_is_classified(case: str) -> None:
    """Transient unless it says otherwise."""
    chunk, kind, status = _ERRORS[case]
    with pytest.raises(ModelError) as caught:
        _read(_chunk({"content": "Hel"}), chunk)
    assert type(caught.value) is kind
    assert caught.value.status == status


def test_mod_5_text_and_usage_before_the_error_are_told() -> None:
    """What has been seen is kept."""
    reader = _reader()
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    events = reader.read(_chunk({"content": "Hel"}, "error", usage=usage))
    assert next(events) == UsageReport(usage=Usage(input_tokens=3, output_tokens=1))
    assert next(events) == TextDelta(text="Hel")
    with pytest.raises(ModelTransient):
        next(events)
