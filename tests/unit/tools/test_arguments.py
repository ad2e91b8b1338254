"""Arguments as a model writes them: what fits, and what it is told when they do not (MOD-2)."""

import dataclasses
import json
import sys
from decimal import Decimal
from enum import Enum
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, JsonValue

from psych_runtime.tools.arguments import (
    MAX_ARGUMENTS_BYTES,
    Arguments,
    Malformed,
    check_arguments,
    expected,
    read_arguments,
)
from tests.unit.tools.tooling import arguments, problem, registered


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


type Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


def fail(value: str) -> str:
    raise KeyError(value)


def leave(value: str) -> str:
    sys.exit(value)


def unlucky(value: int) -> int:
    if value == 13:
        raise ValueError("thirteen brings bad luck")
    return value


def nothing() -> str:
    """Take nothing."""
    return "done"


def optional(days: Annotated[int, "How many."] = 3) -> int:
    """Take days."""
    return days


def forecast(
    city: Annotated[str, "Where."],
    days: Annotated[int, Field(ge=1, le=10, description="How many.")] = 3,
    unit: Annotated[Unit, "In what."] = Unit.CELSIUS,
    near: Annotated[list[Point], "Also."] = [],  # noqa: B006 - never changed
    pet: Annotated[Pet | None, "With whom."] = None,
    either: Annotated[int | str, "One or the other."] = 0,
) -> str:
    """Tell the weather."""
    return city


def anything(value: Annotated[JsonValue, "What."]) -> JsonValue:
    """Take it."""
    return value


def exact(
    whole: Annotated[int, "Whole."] = 0,
    real: Annotated[float, "Real."] = 0.0,
    price: Annotated[Decimal, "Price."] = Decimal(0),
) -> None:
    """Take numbers."""


def checked(
    value: Annotated[int, AfterValidator(unlucky), "Checked."],
    broken: Annotated[str, AfterValidator(fail), "Raises."],
    leaving: Annotated[str, AfterValidator(leave), "Exits."],
) -> None:
    """Take what validators let pass."""


FORECAST = registered(forecast)
EXACT = registered(exact)
ANYTHING = registered(anything)


def test_mod_2_what_fits_is_read_and_converted() -> None:
    """Effective arguments are what the model wrote, and the defaults of the rest (APP-1)."""
    found = arguments(FORECAST, ' {"near": [{"x": 1}], "city": "Bern", "unit": "f"} ')
    given = {"near": [{"x": 1}], "city": "Bern", "unit": "f"}
    assert found.effective == {**given, "days": 3, "either": 0, "pet": None}
    assert found.values == {"near": [Point(1, 0.0)], "city": "Bern", "unit": Unit.FAHRENHEIT}
    assert found.digest_text == '{"city":"Bern","near":[{"x":1}],"unit":"f"}'


def test_mod_2_the_digest_does_not_see_order_or_spelling() -> None:
    """Key order, white space, escapes and 1.0 for 1 are the same arguments."""
    one = arguments(EXACT, '{"whole": 1, "real": 2.50}')
    two = arguments(EXACT, '{"\\u0072eal":2.5,\n"whole":1.0}')
    assert one.digest_text == two.digest_text == '{"real":2.5,"whole":1}'
    assert one.digest_text != arguments(EXACT, '{"whole": 1, "real": 2.51}').digest_text


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_mod_2_empty_text_equals_no_arguments_only_without_parameters(text: str) -> None:
    """A tool whose parameters are all optional has parameters."""
    assert read_arguments(registered(nothing), text) == Arguments({}, "{}", {})
    assert arguments(registered(optional), "{}").values == {}
    assert problem(registered(optional), text) == (
        "Malformed arguments of optional: nothing instead of an object. "
        'The tool was not executed. Expected: {"days"?: integer}'
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("null", "null"),
        ("[1]", "an array"),
        ('"text"', "a string"),
        ("7", "an integer"),
        ("7.5", "a number"),
        ("true", "a boolean"),
    ],
)
def test_mod_2_json_that_is_no_object_is_malformed(text: str, kind: str) -> None:
    """Also for a tool without parameters."""
    for tool in (registered(nothing), FORECAST):
        assert f"{kind} instead of an object" in problem(tool, text)


def test_mod_2_broken_json_says_where_and_what_was_expected() -> None:
    """Position, a little of the text, and the schema in a line."""
    message = problem(registered(optional), '{"days": 1')
    assert message.startswith("Malformed arguments of optional: not readable as JSON: expected ")
    assert message.endswith(
        '(line 1, column 11, near "{\\"days\\": 1"). '
        'The tool was not executed. Expected: {"days"?: integer}'
    )
    for line_end in ("\n", "\r\n", "\r"):
        text = f'{{"a": 1,{line_end}  "b": tru'
        assert '(line 2, column 8, near "  \\"b\\": tru")' in problem(FORECAST, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"city": "a", "city": "b"}', "this key is there already"),
        ('{"real": NaN}', "NaN and Infinity are no JSON"),
        ('{"real": -Infinity}', "not readable as JSON"),
        ('{"real": 1e400}', "cannot be kept"),
        ('{"city": "\\ud800"}', "half of a surrogate pair"),
        ('{"city": "\ud800"}', "half of a surrogate pair"),
        ('{"city": "a\nb"}', "control character"),
        ('{"city": "a"} and more', "something follows"),
        ("{'city': 'a'}", "double quotes"),
        ('{"near": ' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64"),
        ("[" * 60_000, "nested deeper than 64"),
        ("not json", "not readable as JSON"),
    ],
)
def test_mod_2_what_readers_of_json_read_differently_is_malformed(text: str, words: str) -> None:
    """Doubled keys, numbers beyond a double, half characters, too deep."""
    assert words in problem(FORECAST, text)


def test_mod_2_depth_64_is_read() -> None:
    """The neighbour of too deep: the object is the first level."""
    text = '{"value": ' + "[" * 63 + "]" * 63 + "}"
    assert arguments(registered(anything), text).digest_text == text.replace(" ", "")


def test_mod_2_garbage_of_2_mb_is_refused_unread() -> None:
    """The message is about its size; it does not repeat it."""
    assert problem(registered(optional), "x" * 2_000_000) == (
        "Malformed arguments of optional: too large: 2000000 bytes, the bound is 65536. "
        'The tool was not executed. Expected: {"days"?: integer}'
    )


def test_r_30_arguments_are_bounded_in_bytes() -> None:
    """Exactly at the bound they are read; one byte more, also inside a character, is too much."""
    tool = registered(anything)
    room = MAX_ARGUMENTS_BYTES - len('{"value":""}')
    assert arguments(tool, '{"value":"' + "x" * room + '"}').effective == {"value": "x" * room}
    assert "65537 bytes" in problem(tool, '{"value":"' + "x" * (room + 1) + '"}')
    assert "65537 bytes" in problem(tool, '{"value":"' + "x" * (room - 1) + 'é"}')


def test_mod_2_each_wrong_place_is_named_with_what_is_expected() -> None:
    """Missing, unknown, wrong type, out of range, not one of the choices; values are not echoed."""
    message = problem(
        FORECAST,
        '{"dayz": 1, "days": 11, "unit": "k-canary", "near": [{"x": 1}, {"x": "canary"}, {}], '
        '"either": []}',
    )
    for words in (
        "city is required",
        "\"dayz\" is no argument of this tool; did you mean 'days'?",
        "days should be less than or equal to 10",
        "unit should be 'c' or 'f', got a string",
        "near[1].x should be a valid integer, got a string",
        "near[2].x is required",
    ):
        assert words in message
    assert "canary" not in message


def test_mod_2_a_union_is_one_place_with_its_choices() -> None:
    """Branch names and tags are no part of the path."""
    assert "either should be a valid integer, got an array or should be a valid string" in problem(
        FORECAST, '{"city": "Bern", "either": []}'
    )
    assert "pet.lives is required" in problem(FORECAST, '{"city": "Bern", "pet": {"kind": "cat"}}')
    assert "pet.tricks[0] should be a valid string, got an integer" in problem(
        FORECAST, '{"city": "Bern", "pet": {"kind": "dog", "tricks": [1]}}'
    )
    fish = problem(FORECAST, '{"city": "Bern", "pet": {"kind": "fish"}}')
    assert "pet should have 'kind' one of 'cat', 'dog'" in fish
    assert "fish" not in fish


@pytest.mark.parametrize(
    "text",
    [
        '{"days": "3", "city": "Bern"}',
        '{"days": true, "city": "Bern"}',
        '{"days": 3.5, "city": "Bern"}',
        '{"days": null, "city": "Bern"}',
        '{"city": 3}',
        '{"city": "Bern", "near": {"x": 1}}',
        '{"city": "Bern", "unit": "CELSIUS"}',
    ],
)
def test_mod_2_types_are_not_guessed(text: str) -> None:
    """A numeric string is no number, a boolean no integer, null no absence."""
    assert isinstance(read_arguments(FORECAST, text), Malformed)


def test_mod_2_an_integer_is_a_number() -> None:
    """As JSON Schema has it: 3 for 3.0, and 3.0 for 3."""
    found = arguments(EXACT, '{"real": 3, "whole": 3.0, "price": 19.99}')
    assert found.effective == {"real": 3, "whole": 3, "price": 19.99}
    assert found.values == {"real": 3.0, "whole": 3, "price": Decimal("19.99")}
    assert [type(one) for one in found.values.values()] == [int, float, Decimal]


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63), 2**64 + 1, 10**300 + 7])
def test_mod_2_large_integers_are_kept_exactly(number: int) -> None:
    """Beyond what a double holds; the digest tells neighbours apart."""
    found = arguments(EXACT, f'{{"whole": {number}}}')
    assert (found.effective["whole"], found.values) == (number, {"whole": number})
    assert found.digest_text == f'{{"whole":{number}}}'


@pytest.mark.parametrize("digits", [400, 2_000, 5_000])
def test_mod_2_integers_beyond_a_double_are_malformed(digits: int) -> None:
    """A reader that knows only doubles would see infinity."""
    assert "not readable as JSON" in problem(EXACT, f'{{"whole": {"9" * digits}}}')


def test_mod_2_a_validator_of_the_tool_is_foreign_code() -> None:
    """What it says is passed on, what it raises otherwise is data."""
    tool = registered(checked)
    message = problem(tool, '{"value": 13, "broken": "canary", "leaving": "canary"}')
    assert "value is refused: thirteen brings bad luck" in message
    assert "broken is refused: KeyError" in message
    assert "leaving is refused: SystemExit" in message
    assert "canary" not in message


@given(st.text(max_size=400))
def test_mod_2_any_text_gets_an_answer_of_at_most_1_kb(text: str) -> None:
    """Whatever a model writes, nothing is raised."""
    found = read_arguments(FORECAST, text)
    assert isinstance(found, Malformed)
    assert len(found.message.encode()) <= 1024


@given(
    st.dictionaries(st.text(max_size=300), st.text(max_size=300) | st.none(), max_size=20)
    | st.fixed_dictionaries({"near": st.lists(st.text(), min_size=1, max_size=50)})
)
def test_mod_2_wrong_objects_get_an_answer_of_at_most_1_kb(value: dict[str, JsonValue]) -> None:
    """Long unknown names and many wrong places are cut."""
    found = read_arguments(FORECAST, json.dumps({**value, "days": "x"}))
    assert isinstance(found, Malformed)
    assert len(found.message.encode()) <= 1024
    assert "Expected: {" in found.message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_mod_2_any_json_round_trips(value: JsonValue) -> None:
    """What was written is what the tool gets, and stored arguments read the same again."""
    tool = ANYTHING
    found = arguments(tool, json.dumps({"value": value}))
    assert found.effective == {"value": value}
    assert found.values == {"value": value}
    stored = json.loads(json.dumps(found.effective))
    assert check_arguments(tool, stored) == found


def test_mod_2_stored_arguments_are_checked_like_written_ones() -> None:
    """A person's edit, or a recovered call; also what JSON text could not have said."""
    assert check_arguments(EXACT, {"whole": 1.0}) == arguments(EXACT, '{"whole": 1}')
    assert isinstance(check_arguments(EXACT, {"whole": "1"}), Malformed)
    assert isinstance(check_arguments(EXACT, [1]), Malformed)
    assert isinstance(check_arguments(EXACT, {"real": float("nan")}), Malformed)
    assert isinstance(check_arguments(registered(anything), {"value": "\ud800"}), Malformed)
    deep: JsonValue = []
    for _ in range(5_000):
        deep = [deep]
    assert isinstance(check_arguments(registered(anything), {"value": deep}), Malformed)


def test_mod_2_expected_summarises_the_schema() -> None:
    """Required first; choices, unions and nested objects in a few characters."""
    assert expected(FORECAST) == (
        '{"city": string, "days"?: integer >= 1 and <= 10, "either"?: integer | string, '
        '"near"?: [{"x": integer, "y"?: number}, ...], '
        '"pet"?: {"kind": "cat", "lives": integer} | {"kind": "dog", "tricks": [string, ...]} '
        '| null, "unit"?: "c" | "f"}'
    )
    assert expected(registered(nothing)) == "an empty object: {}"


class Tree(BaseModel):
    children: "list[Tree]"
    others: "dict[str, Tree] | None" = None


def grow(tree: Annotated[Tree, "It."], many: Annotated[int, "x" * 900]) -> None:
    """Grow."""


def test_mod_2_expected_is_bounded_for_recursive_schemas() -> None:
    """A tree of trees ends somewhere."""
    summary = expected(registered(grow))
    assert len(summary.encode()) <= 360
    assert summary.startswith('{"many": integer, "tree": {"children": [')


def test_mod_2_a_question_is_not_ended_twice() -> None:
    """Also where a suggestion comes last."""
    message = problem(registered(optional), '{"dayz": 1}')
    assert "did you mean 'days'? The tool was not executed." in message


@pytest.mark.parametrize("digits", [309, 310, 400])
def test_sec_3_an_integer_beyond_a_double_has_a_place(digits: int) -> None:
    """It is refused like 1e400, not raised."""
    message = problem(EXACT, f'{{"whole": {"9" * digits}}}')
    assert "cannot be kept" in message
    assert "line 1, column 11" in message
