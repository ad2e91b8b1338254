"""The published schema and the runtime agree on what fits (TOOL-1, MOD-2)."""

import dataclasses
import json
from enum import Enum
from typing import Annotated, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, JsonValue

from psych_runtime.tools.arguments import Arguments, read_arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Filter(TypedDict):
    field: str
    limit: NotRequired[int]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=0, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


def search(
    text: Annotated[str, Field(min_length=1, max_length=3, description="What.")],
    at: Annotated[Point, "Where."],
    limit: Annotated[int, Field(gt=0, description="How many.")] = 5,
    score: Annotated[float | None, "How good."] = None,
    unit: Annotated[Unit, "In what."] = Unit.CELSIUS,
    mode: Annotated[Literal["fast", 2, None], "How."] = None,
    where: Annotated[list[Filter], "Which."] = [],  # noqa: B006 - never changed
    pair: Annotated[tuple[int, str], "Two."] = (1, "a"),
    tags: Annotated[dict[str, bool], "Marks."] = {},  # noqa: B006 - never changed
    pet: Annotated[Cat | Dog | None, Field(description="Whom.")] = None,
) -> None:
    """Search."""


def make_tool() -> RegisteredTool:
    registry = ToolRegistry()
    registry.register(search)
    (tool,) = registry
    return tool


TOOL = make_tool()
VALIDATOR = Draft202012Validator(json.loads(TOOL.document)["parameters"])

SCALARS: st.SearchStrategy[JsonValue] = st.sampled_from(
    ["", "a", "fast", "c", "cat", "dog", "abcd", 0, 1, 2, -1, 9, 10, 1.0]
)
# A float from 2^53 on is an integer to JSON Schema only: nobody can tell which one was meant.
LOOSE: st.SearchStrategy[JsonValue] = SCALARS | st.sampled_from([1.5, 2**70, True, False, None])
KEYS = st.sampled_from(["x", "y", "kind", "lives", "tricks", "field", "limit", "other"])
ANY: st.SearchStrategy[JsonValue] = st.recursive(
    LOOSE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
FITTING: dict[str, st.SearchStrategy[JsonValue]] = {
    "text": st.sampled_from(["a", "abc"]),
    "at": st.sampled_from([{"x": 1}, {"x": 1.0, "y": 2}]),
    "limit": st.sampled_from([1, 7.0]),
    "score": st.sampled_from([None, 1, 1.5]),
    "unit": st.sampled_from(["c", "f"]),
    "mode": st.sampled_from(["fast", 2, None]),
    "where": st.sampled_from([[], [{"field": "a"}, {"field": "b", "limit": 3}]]),
    "pair": st.sampled_from([[1, "a"]]),
    "tags": st.sampled_from([{}, {"a": True}]),
    "pet": st.sampled_from([None, {"kind": "cat", "lives": 9}, {"kind": "dog"}]),
}


@st.composite
def objects(draw: st.DrawFn) -> dict[str, JsonValue]:
    """Draw an object that fits, then spoil at most one member, or add or drop one."""
    value = {
        name: draw(one)
        for name, one in FITTING.items()
        if draw(st.integers(0, 3)) or name in ("text", "at")
    }
    match draw(st.sampled_from(["nothing", "spoil", "drop", "add"])):
        case "spoil":
            value[draw(st.sampled_from(sorted(FITTING)))] = draw(ANY)
        case "drop":
            value.pop(draw(st.sampled_from(["text", "at"])))
        case "add":
            value["other"] = draw(ANY)
    return value


@given(objects() | st.dictionaries(st.sampled_from(sorted(FITTING)), ANY, max_size=4))
def test_tool_1_the_schema_and_the_reader_agree(value: dict[str, JsonValue]) -> None:
    """What jsonschema accepts is read, what it refuses is malformed."""
    read = read_arguments(TOOL, json.dumps(value))
    assert isinstance(read, Arguments) == VALIDATOR.is_valid(value)


@pytest.mark.parametrize(("value", "fits"), [({"text": "a", "at": {"x": 1}}, True), ({}, False)])
def test_tool_1_the_schema_is_valid_and_decides(value: JsonValue, fits: bool) -> None:
    """A schema that accepted all or nothing would agree with nobody."""
    Draft202012Validator.check_schema(VALIDATOR.schema)
    assert VALIDATOR.is_valid(value) == fits
