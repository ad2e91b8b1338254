"""For each kind of hint the published schema and the reader agree (TOOL-1, MOD-2)."""

import collections
import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import PurePath
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import (
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    model_validator,
)

from psych_runtime.tools.arguments import Arguments, read_arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry
from tests.functional.tools.fitting import anything, fitting


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    A = "a"
    B = "b"


class Mixed(Enum):
    ONE = 1
    WORD = "a"
    NO = False
    PAIR = (1, 2)
    DAY = date(2026, 1, 31)


@dataclasses.dataclass
class Point:
    x: int
    y: "Point | None" = None


class Row(TypedDict):
    x: Level
    y: NotRequired[set[int]]


class Pair(NamedTuple):
    x: int
    y: Literal[True] = True


class Closed(BaseModel):
    x: Literal[Color.RED]
    points: list[Point] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: Point


class Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=False)
    x: int


class Renamed(BaseModel):
    inner: int = Field(alias="x")


class Checked(BaseModel):
    x: set[int]
    y: tuple[Point, int] | None = None

    @model_validator(mode="before")
    @classmethod
    def look(cls, value: object) -> object:
        return value


class Rows(RootModel[list[Row]]):
    pass


class Red(BaseModel):
    kind: Literal[Color.RED]


class Blue(BaseModel):
    kind: Literal[Color.BLUE]
    x: bool


def same(value: object) -> object:
    return value


# The whole agreement: what jsonschema accepts is read, and nothing else.
EXACT: dict[str, object] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "none": None,
    "object": object,
    "json": JsonValue,
    "int or bool": int | bool,
    "bool or str": bool | str,
    "float or null": float | None,
    "literal 1": Literal[1],
    "literal 0": Literal[0],
    "literal true": Literal[True],
    "literal false": Literal[False],
    "literal mixed": Literal[1, "a", False, None],
    "literal member": Literal[Color.RED],
    "literal members": Literal[Color.RED, Color.BLUE] | None,
    "literal int member": Literal[Level.LOW],
    "literal str member": Literal[Word.A, 1],
    "literal or bool": Literal[1] | bool,
    "list of literals": list[Literal[1, "red"]],
    "enum": Color,
    "int enum": Level,
    "str enum": Word,
    "mixed enum": Mixed,
    "enum or bool": Level | bool,
    "list": list,
    "list of ints": list[int],
    "sequence": Sequence[str],
    "deque": collections.deque[int],
    "set of ints": set[int],
    "set of enums": frozenset[Color],
    "set of tuples": set[tuple[int, str]],
    "tuple": tuple[int, str],
    "tuple of any length": tuple[bool, ...],
    "empty tuple": tuple[()],
    "named tuple": Pair,
    "dict": dict[str, int],
    "dict by enum": dict[Color, bool],
    "dict by literal": dict[Literal["x", "y"], int],
    "mapping": Mapping[str, list[int]],
    "counter": collections.Counter[str],
    "default dict": collections.defaultdict[str, int],
    "dataclass": Point,
    "typed dict": Row,
    "model": Closed,
    "open model": Open,
    "loose model": Loose,
    "aliased model": Renamed,
    "checked model": Checked,
    "root model": Rows,
    "tagged union": Annotated[Red | Blue, Field(discriminator="kind")],
    "untagged union": Red | Blue,
    "bounds": Annotated[int, Field(ge=1, le=5)],
    "length": Annotated[str, Field(min_length=1, max_length=3)],
    "size": Annotated[list[int], Field(min_length=1, max_length=2)],
    "before list": Annotated[list[int], BeforeValidator(same)],
    "before set": Annotated[set[int], BeforeValidator(same)],
    "before tuple": Annotated[tuple[int, Color], BeforeValidator(same)],
    "before named tuple": Annotated[Pair, BeforeValidator(same)],
    "before dataclass": Annotated[Point, BeforeValidator(same)],
    "before dict": Annotated[collections.OrderedDict[str, int], BeforeValidator(same)],
    "before counter": Annotated[collections.Counter[str], BeforeValidator(same)],
}
# Here jsonschema looks at less than the reader: formats and forms of text say more.
WRITTEN: dict[str, object] = {
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "uuid": UUID,
    "path": PurePath,
    "bytes": bytes,
    "address": IPv4Address,
    "url": AnyUrl,
    "dates": set[date],
    "date or datetime": date | datetime,
    "pattern": Annotated[str, Field(pattern="^a[0-9]$")],
    "dict by int": dict[int, str],
    "dict by date": dict[date, int],
    **{
        f"before {one.__name__}": Annotated[one, BeforeValidator(same)]
        for one in (date, datetime, time, timedelta, UUID, PurePath, bytes, IPv4Address)
    },
}


def tool_of(hint: object) -> tuple[RegisteredTool, Draft202012Validator]:
    """Register a tool whose one parameter has that hint."""

    def take(value: object) -> None:
        """Take it."""

    take.__annotations__["value"] = Annotated[hint, "What."]
    registry = ToolRegistry()
    registry.register(take)
    tool = registry.get("take")
    assert tool is not None
    return tool, Draft202012Validator(json.loads(tool.document)["parameters"])


@functools.cache
def named(name: str) -> tuple[RegisteredTool, Draft202012Validator]:
    return tool_of((EXACT | WRITTEN)[name])


def is_read(tool: RegisteredTool, value: JsonValue) -> bool:
    return isinstance(read_arguments(tool, json.dumps({"value": value})), Arguments)


def published(tool: RegisteredTool) -> st.SearchStrategy[JsonValue]:
    """Return values that fit what is published of the parameter."""
    properties = tool.definition.parameters["properties"]
    definitions = tool.definition.parameters.get("$defs", {})
    assert isinstance(properties, dict)
    assert isinstance(definitions, dict)
    return fitting(properties["value"], definitions)


@pytest.mark.parametrize("name", sorted(EXACT | WRITTEN))
@given(data=st.data())
@settings(max_examples=15)
def test_tool_1_what_the_schema_says_is_read(name: str, data: st.DataObject) -> None:
    """Whatever a model makes from the schema reaches the function."""
    tool, validator = named(name)
    value = data.draw(published(tool))
    assert validator.is_valid({"value": value})
    assert is_read(tool, value)


@pytest.mark.parametrize("name", sorted(EXACT))
@given(data=st.data())
@settings(max_examples=30)
def test_tool_1_what_is_read_is_what_the_schema_says(name: str, data: st.DataObject) -> None:
    """Also for values beside it, and for those with a strange member or one item more."""
    tool, validator = named(name)
    value = data.draw(anything() | published(tool))
    match value:
        case dict() if data.draw(st.booleans()):
            value = {**value, "strange": 1}
        case list() if data.draw(st.booleans()):
            value = [*value, *value[:1], True]
        case bool() | int() if data.draw(st.booleans()):
            value = int(value) if isinstance(value, bool) else bool(value)
    assert is_read(tool, value) == validator.is_valid({"value": value})


@pytest.mark.parametrize("name", sorted(WRITTEN))
@given(value=anything())
@settings(max_examples=15)
def test_tool_1_nothing_is_read_that_the_schema_refuses(name: str, value: JsonValue) -> None:
    """A number is no date, an array no path."""
    tool, validator = named(name)
    assert validator.is_valid({"value": value}) or not is_read(tool, value)


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (Decimal, "1.50", Decimal("1.50")),
        (Annotated[Decimal, BeforeValidator(same)], 1.5, Decimal("1.5")),
        (set[Fraction], ["1/2"], {Fraction(1, 2)}),
        (Annotated[complex, BeforeValidator(same)], "1j", 1j),
        (Literal[Color.RED], "red", Color.RED),
        (Literal[Level.LOW] | None, 1, Level.LOW),
        (Literal[Mixed.PAIR], [1, 2], Mixed.PAIR),
        (Literal[1] | bool, True, True),
        (int | bool, 1, 1),
        (dict[int, str], {"7": "a"}, {7: "a"}),
        (date | datetime, "2026-01-31T00:00:00", datetime(2026, 1, 31)),  # noqa: DTZ001 - no zone
        (str | date, "2026-01-31", "2026-01-31"),
        (Checked, {"x": [1], "y": [{"x": 1}, 2]}, Checked(x={1}, y=(Point(1), 2))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_tool_1_json_arrives_as_the_type(hint: object, value: JsonValue, read: object) -> None:
    """Also below a validator that hands on what it got."""
    found = read_arguments(tool_of(hint)[0], json.dumps({"value": value}))
    assert isinstance(found, Arguments)
    assert found.values["value"] == read
    assert type(found.values["value"]) is type(read)
