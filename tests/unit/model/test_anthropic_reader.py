"""Events of the published shape, and of shapes that should not come (MOD-1, MOD-5, TOK-1)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model._anthropic_reader import MessageReader, is_last
from psych_runtime.model._sse import Event
from psych_schema.common import Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from tests.servers.anthropic_server import block, delta, message_delta, start, stop, text

_STOP = message_delta("end_turn")
_END = Finish(reason="stop", served_by="served-model")


def _reader() -> MessageReader:
    return MessageReader(host="h", redact=lambda said: said.replace("sk-canary", "[removed]"))


def _read(*values: object) -> list[ModelEvent]:
    reader = _reader()
    return [event for value in values for event in reader.read(value)] + list(reader.end())


def test_mod_9_everything_that_the_format_says_in_its_order() -> None:
    """Reasoning with its signature, text, calls, usage; the finish comes last."""
    assert _read(
        start(input_tokens=40, cache_read_input_tokens=60, output_tokens=1),
        {"type": "ping"},
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="a+"),
        delta(0, "signature_delta", signature="/="),
        stop(0),
        *text(1, "S", "o"),
        block(2, "tool_use", id="toolu_1", name="add", input={}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"a":'),
        delta(2, "input_json_delta", partial_json="1}"),
        stop(2),
        message_delta("tool_use", output_tokens=20),
        {"type": "message_stop"},
    ) == [
        UsageReport(usage=Usage(input_tokens=40, cache_read_tokens=60, output_tokens=1)),
        ReasoningDelta(text="hm"),
        ReasoningDelta(text="", signature="a+/="),
        TextDelta(text="S"),
        TextDelta(text="o"),
        CallDelta(index=0, provider_id="toolu_1", name="add", arguments='{"a":'),
        CallDelta(index=0, arguments="1}"),
        UsageReport(usage=Usage(input_tokens=40, cache_read_tokens=60, output_tokens=20)),
        Finish(reason="tool_calls", served_by="served-model"),
    ]


def test_mod_9_redacted_reasoning_is_kept() -> None:
    """Its data is all there is, and goes back."""
    redacted = block(0, "redacted_thinking", data="opaque")
    assert _read(start(), redacted, stop(0), _STOP) == [
        ReasoningDelta(text="", signature="opaque", redacted=True),
        _END,
    ]


def test_mod_9_reasoning_that_is_not_shown_has_a_signature() -> None:
    """The text is empty then."""
    values = (
        block(0, "thinking", thinking=""),
        delta(0, "signature_delta", signature="s"),
        stop(0),
    )
    assert _read(*values, _STOP)[0] == ReasoningDelta(text="", signature="s")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("something_new", "other"),
    ],
)
def test_mod_4_stop_reasons_are_mapped(said: str, reason: str) -> None:
    """One closed set."""
    assert _read(message_delta(said))[-1] == Finish.model_validate({"reason": reason})


def test_mod_1_calls_are_counted_apart_from_blocks() -> None:
    """Two of one id, one without arguments, one without an id."""
    events = _read(
        *text(0, "So"),
        block(1, "tool_use", id="a", name="add", input={}),
        delta(1, "input_json_delta", partial_json="{}"),
        stop(1),
        block(2, "tool_use", id="a", name="now", input={}),
        stop(2),
        block(3, "tool_use", name="sub", input={}),
        delta(3, "input_json_delta", partial_json="[1"),
        stop(3),
        _STOP,
    )
    assert [event for event in events if isinstance(event, CallDelta)] == [
        CallDelta(index=0, provider_id="a", name="add", arguments="{}"),
        CallDelta(index=2, name="sub", arguments="[1"),
        CallDelta(index=1, provider_id="a", name="now"),
    ]


def test_mod_1_blocks_that_are_open_together_do_not_mix() -> None:
    """Servers that translate another format do that."""
    events = _read(
        block(0, "tool_use", id="a", name="add", input={}),
        block(1, "tool_use", id="b", name="sub", input={}),
        delta(1, "input_json_delta", partial_json="[2]"),
        delta(0, "input_json_delta", partial_json="[1]"),
        _STOP,
    )
    assert [(e.index, e.name, e.arguments) for e in events if isinstance(e, CallDelta)] == [
        (1, "sub", "[2]"),
        (0, "add", "[1]"),
    ]


@pytest.mark.parametrize("given_input", [{"a": "ü"}, [1], "x", 7])
def test_mod_2_an_input_that_comes_at_once_is_told(given_input: JsonValue) -> None:
    """Whatever it is: who reads arguments judges them."""
    opened = block(0, "tool_use", id="a", name="add", input=given_input)
    arguments = json.dumps(given_input, ensure_ascii=False, separators=(",", ":"))
    assert _read(opened, stop(0), _STOP)[0] == CallDelta(
        index=0, provider_id="a", name="add", arguments=arguments
    )


def test_mod_2_an_input_that_comes_in_pieces_is_told_once() -> None:
    """What stands at the start of the block is no part of it then."""
    opened = block(0, "tool_use", id="a", name="add", input={"a": 0})
    piece = delta(0, "input_json_delta", partial_json='{"a":1}')
    assert _read(opened, piece, stop(0), _STOP)[:-1] == [
        CallDelta(index=0, provider_id="a", name="add", arguments='{"a":1}')
    ]


def test_mod_5_a_block_that_is_not_closed_is_told_whole() -> None:
    """Another under its index, or the end of the stream, closes it."""
    events = _read(
        block(0, "thinking", thinking=""),
        delta(0, "signature_delta", signature="s"),
        block(0, "text", text="a\ud83d"),
        block(0, "tool_use", id="a", name="add", input={"a": 1}),
        _STOP,
    )
    assert events[:-1] == [
        ReasoningDelta(text="", signature="s"),
        TextDelta(text="a"),
        TextDelta(text="\ufffd"),
        CallDelta(index=0, provider_id="a", name="add", arguments='{"a":1}'),
    ]


def test_mod_5_a_whole_message_is_one_event() -> None:
    """From servers that do not stream, though asked to."""
    content: list[JsonValue] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1}},
        {"type": "something_new", "text": "no"},
    ]
    whole = {
        "type": "message",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    assert _read(whole) == [
        UsageReport(usage=Usage(input_tokens=3, output_tokens=1)),
        ReasoningDelta(text="hm"),
        ReasoningDelta(text="", signature="s"),
        TextDelta(text="Hi"),
        CallDelta(index=0, provider_id="a", name="add", arguments='{"a":1}'),
        Finish(reason="tool_calls", served_by="m"),
    ]


def test_mod_5_what_is_not_known_says_nothing() -> None:
    """Types of events, blocks and deltas grow; the input of a server's tool is no call of ours."""
    assert _read(
        start(),
        {"type": "something_new", "index": 0, "delta": {"text": "no"}},
        block(0, "server_tool_use", id="srv", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query":"x"}'),
        stop(0),
        block(1, "web_search_tool_result", tool_use_id="srv", content=[]),
        delta(1, "text_delta", text="no"),
        stop(1),
        block(2, "text", text="", citations=[]),
        delta(2, "citations_delta", citation={}),
        delta(2, "text_delta", text="yes"),
        stop(2),
        stop(9),
        _STOP,
    ) == [TextDelta(text="yes"), _END]


def test_mod_5_words_of_a_block_that_was_not_opened_are_told() -> None:
    """Or closed too early: nothing is lost."""
    assert _read(delta(0, "text_delta", text="a"), delta(1, "thinking_delta", thinking="b"), _STOP)[
        :2
    ] == [TextDelta(text="a"), ReasoningDelta(text="b")]


def test_log_5_a_character_split_over_two_deltas_is_one() -> None:
    """And a half at the end of a block is replaced."""
    assert _read(*text(0, "a\ud83d", "\ude00b", "\ud83d"), *text(1, "c"), _STOP)[:4] == [
        TextDelta(text="a"),
        TextDelta(text="😀b"),
        TextDelta(text="\ufffd"),
        TextDelta(text="c"),
    ]


_USAGES: dict[str, tuple[list[dict[str, JsonValue]], list[Usage]]] = {
    "exclusive input": (
        [{"input_tokens": 40, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 7}],
        [Usage(input_tokens=40, cache_read_tokens=60, cache_write_tokens=7)],
    ),
    "totals so far": (
        [{"input_tokens": 3, "output_tokens": 1}, {"output_tokens": 5}, {"output_tokens": 20}],
        [
            Usage(input_tokens=3, output_tokens=1),
            Usage(input_tokens=3, output_tokens=5),
            Usage(input_tokens=3, output_tokens=20),
        ],
    ),
    "a later total replaces": (
        [{"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 30, "output_tokens": 9}],
        [Usage(input_tokens=0, output_tokens=0), Usage(input_tokens=30, output_tokens=9)],
    ),
    "null changes nothing": (
        [{"input_tokens": 3}, {"input_tokens": None, "cache_read_input_tokens": None}],
        [Usage(input_tokens=3)],
    ),
    "thinking is a part of the output": (
        [{"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}],
        [Usage(output_tokens=20, reasoning_tokens=12)],
    ),
    "or it is wrong": (
        [{"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 21}}],
        [Usage(output_tokens=20)],
    ),
    "nonsense is unknown, never zero": (
        [{"input_tokens": -1, "output_tokens": "many", "cache_read_input_tokens": 1.5}],
        [],
    ),
    "nothing": ([{}], []),
}


@pytest.mark.parametrize("name", _USAGES)
def test_tok_1_counters_are_taken_as_they_are(name: str) -> None:
    """They are disjoint here; the last value of each counts, and is told once."""
    given_usages, expected = _USAGES[name]
    first, *rest = given_usages
    events = _read(start(**first), *(message_delta(None, **usage) for usage in rest), _STOP)
    assert [event.usage for event in events if isinstance(event, UsageReport)] == expected


def test_mod_5_an_end_without_a_stop_reason_is_transient() -> None:
    """A stream that was cut looks like this."""
    with pytest.raises(ModelTransient, match="without a stop reason"):
        _read(start(), *text(0, "Hel"), message_delta(None), {"type": "message_stop"})


@pytest.mark.parametrize("value", [{}, {"type": None}, {"type": 7}])
def test_mod_5_an_event_without_a_type_is_garbled(value: object) -> None:
    """Worth another try."""
    with pytest.raises(ModelTransient, match="garbled"):
        _read(value, _STOP)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "message_start", "message": "x"},
        {"type": "message", "content": "x"},
        {"type": "message", "content": ["x"]},
        {"type": "content_block_start", "index": "0"},
        {"type": "content_block_start", "index": True},
        {"type": "content_block_start", "index": 0, "content_block": "x"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": 7}},
        block(0, "text", text=7),
        block(0, "thinking", thinking=["x"]),
        block(0, "redacted_thinking", data={"a": 1}),
        block(0, "tool_use", id="a", name=7),
        {"type": "content_block_delta", "index": 0, "delta": "x"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": 7}},
        delta(0, "text_delta", text=7),
        delta(0, "signature_delta", signature=7),
        delta(0, "input_json_delta", partial_json="{}"),
        {"type": "message_delta", "delta": "x"},
        {"type": "message_delta", "delta": {"stop_reason": 7}},
    ],
)
def test_mod_5_words_in_another_shape_are_garbled(value: object) -> None:
    """They would be lost without anybody knowing; another try may bring them."""
    with pytest.raises(ModelTransient, match="garbled"):
        _read(value, _STOP)


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        ("overloaded_error", "Overloaded", ModelTransient),
        ("api_error", "boom", ModelTransient),
        ("rate_limit_error", "slow down", ModelTransient),
        ("timeout_error", "late", ModelTransient),
        ("something_new", "x", ModelTransient),
        ("invalid_request_error", "no", ModelPermanent),
        ("authentication_error", "no", ModelPermanent),
        ("permission_error", "no", ModelPermanent),
        ("billing_error", "no", ModelPermanent),
        ("not_found_error", "no", ModelPermanent),
        ("request_too_large", "no", ContextOverflow),
        ("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum", ContextOverflow),
    ],
)
def test_mod_5_an_error_in_the_stream_is_sorted(
    kind: str, words: str, expected: type[ModelError]
) -> None:
    """By its type; its words are told, without secrets."""
    error = {"type": "error", "error": {"type": kind, "message": f"{words} sk-canary"}}
    with pytest.raises(ModelError) as caught:
        _read(start(), error)
    assert type(caught.value) is expected
    assert f"{words} [removed]" in str(caught.value)


def test_sec_3_an_answer_that_grows_without_a_word_is_given_up() -> None:
    """Signatures are kept until their block ends, and calls without arguments to the end."""
    piece = delta(0, "signature_delta", signature="x" * (1 << 16))
    with pytest.raises(ModelPermanent, match="a signature of more than 1048576 characters"):
        _read(*([piece] * 17), _STOP)
    assert len(_read(*([piece] * 16), _STOP)) == 2
    opened = [block(place, "tool_use", id="a", name="add") for place in range(10_001)]
    with pytest.raises(ModelPermanent, match="more than 10000 blocks"):
        _read(*opened, _STOP)
    assert len(_read(*opened[1:], _STOP)) == 10_001


@pytest.mark.parametrize(
    ("event", "last"),
    [
        (Event("message_stop", '{"type":"message_stop"}'), True),
        (Event("", '{"type": "message_stop"}'), True),
        (Event("message_delta", '{"type":"message_stop"}'), False),
        (Event("", json.dumps(delta(0, "text_delta", text='"message_stop"'))), False),
        (Event("ping", '{"type":"ping"}'), False),
    ],
)
def test_mod_5_the_last_event_is_known(event: Event, last: bool) -> None:
    """By its name, or by its data where it has none."""
    assert is_last(event) is last


_JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 2), st.sampled_from(["", "x", "\ud83d"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["type", "text", "delta", "a"]), inner, max_size=3),
    ),
    max_leaves=6,
)
_TYPES = st.sampled_from(
    [
        "message_start",
        "message",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "ping",
        "error",
    ]
)
_KINDS = st.sampled_from(
    [
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
    ]
)
_FIELDS = st.dictionaries(
    st.sampled_from(
        ["text", "thinking", "signature", "data", "id", "name", "input", "partial_json", "content"]
    ),
    _JSON,
    max_size=3,
)
_INNER = st.one_of(_JSON, st.builds(lambda kind, more: {**more, "type": kind}, _KINDS, _FIELDS))
_VALUES = st.one_of(
    _JSON,
    st.builds(
        lambda kind, fields: {**fields, "type": kind},
        _TYPES,
        st.dictionaries(
            st.sampled_from(
                ["index", "delta", "content_block", "message", "usage", "error", "content"]
            ),
            _INNER,
            max_size=4,
        ),
    ),
)


@given(st.lists(_VALUES, max_size=6))
def test_sec_3_no_events_crash_the_reader(values: list[JsonValue]) -> None:
    """Whatever comes: events that can be recorded, or a typed error; a finish only at the end."""
    reader = _reader()
    events: list[ModelEvent] = []
    try:
        for value in values:
            events += reader.read(value)
    except ModelError:
        pass
    for event in events:
        assert not isinstance(event, Finish)
        event.model_dump_json().encode()


_PIECES = st.lists(st.text(st.characters(codec="utf-16", categories=None), max_size=4), max_size=5)


@given(_PIECES, _PIECES, _PIECES)
def test_mod_5_pieces_are_passed_on_whole(
    thought: list[str], said: list[str], asked: list[str]
) -> None:
    """However a text is cut: together, the deltas are what was sent."""
    events = _read(
        block(0, "thinking", thinking=""),
        *(delta(0, "thinking_delta", thinking=piece) for piece in thought),
        stop(0),
        *text(1, *said),
        block(2, "tool_use", id="a", name="add", input={}),
        *(delta(2, "input_json_delta", partial_json=piece) for piece in asked),
        stop(2),
        _STOP,
    )
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "".join(thought)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "".join(said)
    assert "".join(e.arguments for e in events if isinstance(e, CallDelta)) == "".join(asked)
