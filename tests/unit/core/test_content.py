"""LOG-5: what people, models and tools say comes back as it was said, or is refused whole."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime.core.codec import (
    Position,
    content_fits,
    content_text,
    decode_anew,
    record_text,
    seal,
)
from psych_runtime.errors import InvalidPayload
from psych_runtime.ports.store import Sealed
from psych_runtime.testing import LogBuilder
from psych_schema.model import JsonPart, ReasoningPart, TextPart, UserMessage
from psych_schema.record import (
    AdvisoryAdded,
    ModelStarted,
    Record,
    StepResult,
    TasksUpdated,
    ToolResult,
    Verdict,
)
from tests.unit.core.drafts import draft

LOG = LogBuilder()


def sealed(record: Record) -> Sealed:
    """Return the record at seq 2."""
    [one] = seal(
        [record],
        Position(1, "a" * 64, record.at),
        tenant="acme",
        epoch=1,
        commit_id="com_" + "0" * 26,
        salts=["5" * 32],
    )
    return one


def tasks(value: JsonValue) -> Record:
    """Return a record whose content is this value."""
    return LOG.draft(TasksUpdated, tasks=value)


def nested(depth: int, leaf: JsonValue = 1) -> JsonValue:
    """Return lists in lists."""
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


def boxed(depth: int) -> JsonValue:
    """Return objects in objects."""
    value: JsonValue = None
    for _ in range(depth):
        value = {"k": value}
    return value


def same(one: object, other: object) -> bool:
    """Tell whether values are equal in kind and sign, too."""
    return repr(one) == repr(other)


VALUES: list[JsonValue] = [
    "",
    "\x00",
    "a\x00b\x1f\x7f",
    "\u2028\u2029\ufeff\ufffe\uffff",
    "😀👩‍👩‍👧‍👦e\u0301é",
    '"\\/\b\f\n\r\t',
    '","type":"run.erased","x":"',
    "</script><!--",
    0,
    -0.0,
    0.1 + 0.2,
    1.0,
    1e22,
    1e-320,
    1.7976931348623157e308,
    2**53 + 1,
    2**63,
    -(2**64),
    10**300,
    10**4299,
    True,
    False,
    [],
    {},
    [None],
    {"": None},
    {"message": None},
    {"a": {"b": [None, {}, [[]]]}},
    {"type": "run.erased", "v": 7, "seq": -1},
    {"\x00": "\x00", "__class__": "x"},
    {"é": 1, "e\u0301": 2},
    nested(199),
    boxed(199),
    [nested(150), nested(150)],
    "[" * 1000,
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_log_5_values_come_back_equal(value: JsonValue) -> None:
    """Through text and back, with kinds and signs; and again from the text a reader prints."""
    one = sealed(tasks(value))
    record = decode_anew(one.row).record
    assert isinstance(record, TasksUpdated)
    assert same(record.tasks, value)
    assert record == one.record
    assert content_fits(one.row)
    assert one.row.content is not None
    assert one.row.content.encode().decode() == one.row.content
    assert record_text(one.row).endswith(f',"tasks":{one.row.content}}}')


def test_log_5_null_is_no_content_and_null_inside_is_kept() -> None:
    """Null by itself says nothing; in a list, an object or a part it is a value."""
    assert sealed(tasks(None)).row.content is None
    for record, text in [
        (tasks([None]), "[null]"),
        (
            draft(
                LOG,
                "tool.completed",
                result=ToolResult(parts=(JsonPart(value=None),), message=None),
            ),
            '{"parts":[{"kind":"json","value":null}],"message":null}',
        ),
        (
            draft(LOG, "step.completed", result=StepResult(output=None, state_set={"a": None})),
            '{"output":null,"state_set":{"a":null}}',
        ),
        (draft(LOG, "run.admitted", input={"message": None}), '{"message":null}'),
        (
            draft(LOG, "approval.decided", verdict=Verdict(arguments=None)),
            '{"arguments":null,"reason":null}',
        ),
    ]:
        one = sealed(record)
        assert one.row.content == text
        assert decode_anew(one.row).record == one.record


def test_log_5_null_in_a_json_value_of_the_body_is_kept() -> None:
    """Only the fields of a record are left out when they are null."""
    for record in (
        draft(LOG, "model.started", params={"stop": None, "x": {"y": [None, {"z": None}]}}),
        draft(LOG, "wait.opened", payload_schema={"default": None, "enum": [None]}),
    ):
        assert decode_anew(sealed(record).row).record == sealed(record).record
    row = sealed(draft(LOG, "model.started", params={"stop": None})).row
    assert '"params":{"stop":null}' in row.body


def test_log_5_strings_of_the_body_are_escaped() -> None:
    """A name with quotes, NUL and line separators stays one string."""
    nasty = 'a"b\\c\x00\u2028😀'
    record = draft(LOG, "model.started", model=nasty)
    one = sealed(record)
    assert decode_anew(one.row).record == one.record
    assert "\x00" not in one.row.body


@pytest.mark.parametrize(
    "make",
    [
        lambda text: tasks(text),
        lambda text: tasks({text: 1}),
        lambda text: tasks([[text]]),
        lambda text: LOG.draft(
            AdvisoryAdded, advisory_id="adv_" + "0" * 26, code="x", message=text
        ),
        lambda text: draft(
            LOG, "queue.enqueued", message=UserMessage(parts=(TextPart(text=text),))
        ),
        lambda text: draft(LOG, "tool.completed", result=ToolResult(message=text)),
        lambda text: draft(
            LOG, "tool.completed", result=ToolResult(parts=(ReasoningPart(text=text),))
        ),
        lambda text: draft(LOG, "model.started", model=text),
        lambda text: draft(LOG, "model.started", params={"a": text}),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_log_5_a_lone_surrogate_is_refused(make: Callable[[str], Record], text: str) -> None:
    """In every place of content and body: a typed error, never half a row."""
    with pytest.raises(InvalidPayload) as caught:
        sealed(make(text))
    assert "surrogate" in caught.value.problem or "utf-8" in caught.value.problem


@pytest.mark.parametrize("depth", [200, 210, 253])
def test_log_5_what_no_reader_could_parse_is_refused(depth: int) -> None:
    """One level more than the deepest that is read, as content and in the body."""
    values: list[JsonValue] = [nested(depth), boxed(depth), [0, "[", nested(depth - 1)]]
    for value in values:
        with pytest.raises(InvalidPayload):
            content_text(tasks(value))
        with pytest.raises(InvalidPayload):
            sealed(draft(LOG, "wait.opened", payload_schema=value))
    inner = draft(LOG, "tool.completed", result=ToolResult(parts=(JsonPart(value=nested(197)),)))
    with pytest.raises(InvalidPayload):
        sealed(inner)
    body = draft(LOG, "wait.opened", payload_schema=nested(199))
    assert decode_anew(sealed(body).row).record == sealed(body).record


def test_log_5_an_integer_of_too_many_digits_is_refused() -> None:
    """4,300 digits are the most that every reader takes."""
    with pytest.raises(InvalidPayload):
        sealed(tasks(10**4300))
    with pytest.raises(InvalidPayload):
        sealed(LOG.draft(ModelStarted, **dict(draft(LOG, "model.started", params={"a": 10**4300}))))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=60)
@given(value=JSON)
def test_log_5_any_json_comes_back(value: JsonValue) -> None:
    """As content, as part of a result, and inside the body."""
    for record in (
        tasks(value),
        draft(LOG, "tool.completed", result=ToolResult(parts=(JsonPart(value=value),))),
        draft(LOG, "model.started", params={"x": value}),
    ):
        one = sealed(record)
        back = decode_anew(one.row).record
        assert back == one.record
        assert same(back, one.record)


def test_log_5_numbers_that_are_none_are_refused_where_a_record_is_made() -> None:
    """NaN and the infinities never reach a log."""
    values: list[JsonValue] = [math.nan, math.inf, -math.inf, [math.nan], {"a": math.inf}]
    for value in values:
        with pytest.raises(ValueError, match="finite"):
            tasks(value)
