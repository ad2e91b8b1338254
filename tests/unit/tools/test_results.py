"""What a tool may return, and in which form it is stored (LOG-5)."""

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, JsonValue, RootModel, SecretStr, field_serializer

from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.tools.results import MAX_RESULT_BYTES, to_result
from psych_schema.model import JsonPart, TextPart
from psych_schema.record import ToolResult


class Color(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Level(IntEnum):
    HIGH = 2


class Pair(NamedTuple):
    left: int
    right: str


@dataclasses.dataclass
class Point:
    x: int
    tag: object = None


class Person(BaseModel):
    name: str
    born: date
    friends: "list[Person]" = []


class Numbers(RootModel[list[int]]):
    pass


class Hidden(BaseModel):
    password: SecretStr


class Written(BaseModel):
    data: bytes

    @field_serializer("data")
    def as_hex(self, data: bytes) -> str:
        return data.hex()


class Breaking(BaseModel):
    data: int = 1

    @field_serializer("data")
    def refuse(self, data: int) -> str:
        raise RuntimeError("no")


def value_of(returned: object) -> JsonValue:
    """Return the JSON that is stored, after a round trip through the log's text."""
    result = to_result("probe", returned)
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    (part,) = result.parts
    assert isinstance(part, JsonPart)
    return part.value


@pytest.mark.parametrize("text", ["", "plain", "a\x00b", "\U0001f600", "é\u2028\x7f", '"\\\n'])
def test_log_5_text_is_a_text_part_kept_as_it_is(text: str) -> None:
    """NUL and emoji, too, through the text of the log and back."""
    result = to_result("probe", text)
    assert result == ToolResult(parts=(TextPart(text=text),))
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(
    ("returned", "stored"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**53 + 1, 2**53 + 1),
        (2**63, 2**63),
        (-(10**300), -(10**300)),
        (1.5, 1.5),
        (1e308, 1e308),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+5"), "1E+5"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (
            datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-02T03:04:05.000006+02:00",
        ),
        (datetime(2026, 1, 2), "2026-01-02T00:00:00"),  # noqa: DTZ001 - naive is kept naive
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=400, seconds=5), "P400DT5S"),
        (timedelta(microseconds=-1), "-P0DT0.000001S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (ip_address("::1"), "::1"),
        (ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (AnyUrl("https://example.com/a"), "https://example.com/a"),
        (Color.RED, "red"),
        (Word.YES, "yes"),
        (Level.HIGH, 2),
        ((1, "a"), [1, "a"]),
        (Pair(1, "a"), [1, "a"]),
        ({"a": [None, {"b": ()}]}, {"a": [None, {"b": []}]}),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({Word.YES: 1}, {"yes": 1}),
        (Point(1, Point(2)), {"x": 1, "tag": {"x": 2, "tag": None}}),
        (
            Person(name="Ada", born=date(1815, 12, 10), friends=[]),
            {"name": "Ada", "born": "1815-12-10", "friends": []},
        ),
        (Numbers([1, 2]), [1, 2]),
        (Written(data=b"\x01\xff"), {"data": "01ff"}),
        (
            [Person(name="Ada", born=date(1815, 12, 10))],
            [{"name": "Ada", "born": "1815-12-10", "friends": []}],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_log_5_each_type_has_one_lossless_form(returned: object, stored: JsonValue) -> None:
    """Stored as JSON, or as the text that says it exactly."""
    assert value_of(returned) == stored


def test_log_5_numbers_keep_their_kind() -> None:
    """True is not 1, and 1.0 not 1."""
    assert [type(one) for one in (value_of(True), value_of(1), value_of(1.0))] == [bool, int, float]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ({1, 2}, "result is a set, whose order is chance, which cannot be stored; return sorted"),
        (frozenset(), "result is a set"),
        (b"abc", "result is bytes, which cannot be stored; return an Attachment(data, media_type)"),
        (bytearray(b"abc"), "result is bytes"),
        (memoryview(b"abc"), "result is bytes"),
        (float("nan"), "result is the number nan"),
        ([float("-inf")], "result[0] is the number -inf"),
        (Decimal("NaN"), "result is Decimal NaN"),
        (Decimal("Infinity"), "result is Decimal Infinity"),
        (10**309, "an integer of more than 308 digits"),
        ("a\ud800c", "result is a lone surrogate at character 1"),
        ({"a": ["b\udfff"]}, "result.a[0] is a lone surrogate at character 1"),
        ({"\ud800": 1}, "a lone surrogate"),
        ({1: "a"}, "result is a key of type int, which cannot be stored; return keys that are"),
        ({"a": {None: 1}}, "result.a is a key of type NoneType"),
        (object(), "result is an object of type object"),
        ({"a": [Point(1, object())]}, "result.a[0].tag is an object of type object"),
        (deque([1]), "an object of type deque"),
        ((one for one in [1]), "an object of type generator"),
        (ValueError("x"), "an object of type ValueError"),
        (Point, "an object of type type"),
        (Hidden(password=SecretStr("canary")), "result.password is an object of type SecretStr"),
        (Breaking(), "a Breaking that cannot be dumped (PydanticSerializationError)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_log_5_what_cannot_be_kept_is_refused(returned: object, words: str) -> None:
    """With the tool, the place, and what to return instead."""
    with pytest.raises(InvalidPayload) as caught:
        to_result("probe", returned)
    assert str(caught.value).startswith("the result of probe: result")
    assert words in str(caught.value)
    assert "; return " in str(caught.value)
    assert "canary" not in str(caught.value)


def nested(depth: int, make: Callable[[object], object]) -> object:
    value: object = "end"
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize("make", [lambda one: [one], lambda one: {"a": one}, lambda one: (one,)])
def test_log_5_depth_is_bounded(make: Callable[[object], object]) -> None:
    """64 levels are stored and read again, the next one is refused, so is a hundred thousand."""
    value_of(nested(64, make))
    for depth in (65, 100_000):
        with pytest.raises(InvalidPayload, match="nested deeper than 64 levels"):
            to_result("probe", nested(depth, make))


def test_log_5_what_contains_itself_is_refused() -> None:
    """Directly, and through a model; twice the same object beside itself is fine."""
    loop: dict[str, object] = {"a": []}
    loop["b"] = [loop]
    with pytest.raises(InvalidPayload, match=r"result\.b\[0\] is an object that contains itself"):
        to_result("probe", loop)
    person = Person(name="Ada", born=date(1815, 12, 10))
    person.friends.append(person)
    with pytest.raises(InvalidPayload, match="a Person that cannot be dumped"):
        to_result("probe", person)
    shared = [1]
    assert value_of([shared, shared]) == [[1], [1]]


def envelope(returned: object) -> int:
    return len(to_result("probe", returned).model_dump_json())


def test_log_5_the_bound_is_exact_in_bytes() -> None:
    """At the bound it is stored; one byte more is refused; what escaping adds counts."""
    room = MAX_RESULT_BYTES - envelope("")
    assert len(to_result("probe", "x" * room).model_dump_json()) == MAX_RESULT_BYTES
    for text in ("x" * (room + 1), "x" * (room - 1) + "é", "x" * (room - 5) + "\x00"):
        with pytest.raises(PayloadTooLarge) as caught:
            to_result("probe", text)
        assert caught.value.size_bytes == MAX_RESULT_BYTES + 1
    room = MAX_RESULT_BYTES - envelope([""])
    to_result("probe", ["x" * room])
    with pytest.raises(PayloadTooLarge):
        to_result("probe", ["x" * (room + 1)])


@pytest.mark.parametrize(
    ("returned", "at_least"),
    [
        ("x" * 20_000_000, 20_000_000),
        (["x" * 20_000_000], 20_000_000),
        (list(range(3_000_000)), MAX_RESULT_BYTES),
        ({str(n): n for n in range(300_000)}, MAX_RESULT_BYTES),
        (nested(60, lambda one: [one, one]), MAX_RESULT_BYTES),
        ([[]] * 1_000_000, MAX_RESULT_BYTES),
    ],
    ids=["text", "long item", "many items", "many keys", "doubling", "many empties"],
)
def test_log_5_huge_results_are_refused_early(returned: object, at_least: int) -> None:
    """The walk ends at the bound: also for a value of 2^60 leaves."""
    with pytest.raises(PayloadTooLarge) as caught:
        to_result("probe", returned)
    assert caught.value.what == "the result of probe"
    assert caught.value.bound_bytes == 262_144
    assert caught.value.size_bytes > at_least


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON.filter(lambda value: not isinstance(value, str)))
def test_log_5_any_json_round_trips(value: JsonValue) -> None:
    """What a tool returned is what is read from the log."""
    assert value_of(value) == value


@given(st.text(st.characters() | st.sampled_from("\ud800\udbff\udc00\udfff")))
def test_log_5_any_text_is_kept_or_refused(text: str) -> None:
    """Lone surrogates are refused, nothing is changed silently."""
    lone = any("\ud800" <= one <= "\udfff" for one in text)
    if lone:
        with pytest.raises(InvalidPayload, match="lone surrogate"):
            to_result("probe", text)
    else:
        stored = ToolResult.model_validate_json(to_result("probe", text).model_dump_json())
        assert stored.parts == (TextPart(text=text),)
