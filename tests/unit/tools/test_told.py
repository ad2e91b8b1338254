"""What a model is told of wrong members, choices and constraints (MOD-2)."""

import json
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Annotated, Literal, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from psych_runtime.tools.arguments import expected
from psych_runtime.tools.registered import RegisteredTool
from tests.unit.tools.tooling import arguments, hinted, problem, registered


@dataclass
class Point:
    x: int


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Row(TypedDict):
    x: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: int


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    inner: Point


class Model(BaseModel):
    inner: Point


def taking(hint: object) -> RegisteredTool:
    """Register a tool whose one parameter `p` has that hint."""

    def take(p: object) -> None:
        """Take it.

        Args:
            p: It.
        """

    return registered(hinted(take, p=hint))


def told(hint: object, value: JsonValue) -> str:
    """Return what the model is told of a value of `p` that does not fit."""
    message = problem(taking(hint), json.dumps({"p": value}))
    return message.removeprefix("Malformed arguments of take: ")


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (Point, {"x": 1, "z": 2}, "p.z is not known here"),
        (Row, {"x": 1, "z": 2}, "p.z is not known here"),
        (Model, {"inner": {"x": 1}, "z": 2}, "p.z is not known here"),
        (Model, {"inner": {"x": 1, "z": 2}}, "p.inner.z is not known here"),
        (list[Model], [{"inner": {"x": 1, "z": 2}}], "p[0].inner.z is not known here"),
        (dict[str, Row | None], {"a": {"x": 1, "z": 2}}, "p.a.z is not known here"),
    ],
)
def test_mod_2_unknown_members_of_nested_objects_are_refused(
    hint: object, value: JsonValue, words: str
) -> None:
    """As unknown arguments are; a model that misspells one learns of it."""
    assert words in told(hint, value)


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (Open, {"x": 1, "z": 2}, Open.model_validate({"x": 1, "z": 2})),
        (Ignoring, {"inner": {"x": 1, "z": 1}, "z": 2}, Ignoring(inner=Point(1))),
        (RootModel[Open | None], {"x": 1, "z": 2}, None),
    ],
)
def test_mod_2_a_class_that_says_what_becomes_of_unknown_members_is_heard(
    hint: object, value: JsonValue, read: object
) -> None:
    """The neighbours: allowed, ignored (also for a dataclass inside), and behind a root."""
    found = arguments(taking(hint), json.dumps({"p": value})).values["p"]
    assert isinstance(found, RootModel) or found == read


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (Literal[1], True, "p should be 1, got a boolean"),
        (Literal[True], 1, "p should be true, got an integer"),
        (Literal[0, "a"], False, "p should be 0 or 'a', got a boolean"),
        (IntEnum("Level", "LOW HIGH"), True, "p should be 1 or 2, got a boolean"),
        (list[Literal[1]], [1, True], "p[1] should be 1, got a boolean"),
        (Literal[Color.RED, Color.BLUE] | None, "green", "p should be 'red' or 'blue', got a str"),
        (Literal[Color.RED], "RED", "p should be 'red', got a string"),
        (set[int], [1, 2, 1], "p should hold nothing twice"),
        (dict[Color, int], {"green": 1}, "the name p.green should be 'red' or 'blue'."),
        (tuple[int, str], [1], "p[1] is required."),
        (tuple[int, str], [], "p[0] is required; p[1] is required."),
        (tuple[int, str], [1, "a", 2], "p should have at most 2 items"),
        (list[tuple[int, str]], [[1]], "p[0][1] is required."),
        (Annotated[int, Field(le=5)], 6, "p should be less than or equal to 5."),
    ],
    ids=str,
)
def test_mod_2_the_place_and_the_choice_are_named(
    hint: object, value: JsonValue, words: str
) -> None:
    """Booleans are no integers, members go by their values, items by their index."""
    assert words in told(hint, value)


@pytest.mark.parametrize(
    ("hint", "summary"),
    [
        (Annotated[int, Field(le=5)], "integer <= 5"),
        (Annotated[int, Field(ge=1, lt=9)], "integer >= 1 and < 9"),
        (Annotated[float, Field(gt=0.5)], "number > 0.5"),
        (Annotated[int, Field(multiple_of=3)], "integer a multiple of 3"),
        (Annotated[str, Field(min_length=1, max_length=3)], "string of 1 to 3 characters"),
        (Annotated[str, Field(max_length=1)], "string of at most 1 character"),
        (Annotated[str, Field(min_length=2, max_length=2)], "string of 2 characters"),
        (Annotated[str, Field(pattern="^a+$")], 'string matching "^a+$"'),
        (Annotated[list[int], Field(min_length=2)], "[integer, ...] of at least 2 items"),
        (
            Annotated[dict[str, int], Field(max_length=2)],
            "{any name: integer} of at most 2 members",
        ),
        (dict[Color, int], '{"red" | "blue": integer}'),
        (dict[str, object], "object"),
        (tuple[int, str], "[integer, string]"),
        (tuple[int, ...], "[integer, ...]"),
        (tuple[()], "[]"),
        (NamedTuple("Pair", [("x", int)]), "[integer]"),
        (list[Annotated[int, Field(ge=0)]] | None, "[integer >= 0, ...] | null"),
    ],
    ids=str,
)
def test_mod_2_expected_states_the_constraints(hint: object, summary: str) -> None:
    """Bounds, lengths, patterns, and what stands in which place."""
    assert expected(taking(hint)) == f'{{"p": {summary}}}'


def test_mod_2_a_long_pattern_is_cut() -> None:
    """It would take the place of everything else."""
    summary = expected(taking(Annotated[str, Field(pattern="a" * 200)]))
    assert summary == '{"p": string matching "' + "a" * 57 + '…"}'
