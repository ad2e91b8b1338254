"""Schemas from hints and docstrings, and what cannot be a tool (TOOL-1)."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, JsonValue
from typing_extensions import Doc

from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import ToolRegistry
from tests.unit.tools.tooling import CONTEXT, arguments, hinted, properties, registered


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Filter(TypedDict):
    field: str
    limit: NotRequired[int]


class Order(BaseModel):
    """What is bought."""

    item: str
    at: Point
    parts: "list[Order]" = []


type City = Annotated[str, "A city."]


def schema_of(hint: object) -> JsonValue:
    """Return the schema of a parameter of that type, without its description."""

    def take(value: object) -> None:
        """Take it.

        Args:
            value: What.
        """

    schema = properties(registered(hinted(take, value=hint)))["value"]
    assert isinstance(schema, dict)
    assert schema.pop("description") == "What."
    return schema


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (object, {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (
            Annotated[int, Field(ge=1, lt=9)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
        ),
        (Annotated[str, Field(pattern="^a")], {"type": "string", "pattern": "^a"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "path"}),
        (Unit, {"$ref": "#/$defs/Unit"}),
        (list[Order], {"type": "array", "items": {"$ref": "#/$defs/Order"}}),
    ],
)
def test_tool_1_a_hint_becomes_its_schema(hint: object, schema: JsonValue) -> None:
    """No made-up titles; named types are local definitions."""
    assert schema_of(hint) == schema


def everything(
    city: City,
    order: Order,
    where: Filter,
    near: Annotated[Point, Field(description="Where.")],
    level: Annotated[Level, Doc("How much.")],
    context: ToolContext,
    unit: Unit = Unit.CELSIUS,
    days: Annotated[int | None, "How many."] = None,
    tags: frozenset[str] = frozenset({"b", "a", "c"}),
    price: Decimal = Decimal("1.50"),
    limit: float = float("inf"),
    spot: Point = Point(1, 2),
) -> str:
    """Take everything.

    Really.

    Args:
        order: What.
        where: Which.
        unit: In what.
        tags: How called.
        price: For how much.
        limit: Up to.
        spot: From where.
        days: Overruled by the hint.
    """
    return context.run_id


def test_tool_1_the_whole_schema_is_self_contained() -> None:
    """Definitions are local, unknown arguments refused, sets sorted; infinity is no JSON."""
    tool = registered(everything)
    assert tool.definition.description == "Take everything.\n\nReally."
    assert tool.definition.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city", "order", "where", "near", "level"],
        "properties": {
            "city": {"$ref": "#/$defs/City", "description": "A city."},
            "order": {"$ref": "#/$defs/Order", "description": "What."},
            "where": {"$ref": "#/$defs/Filter", "description": "Which."},
            "near": {"$ref": "#/$defs/Point", "description": "Where."},
            "level": {"$ref": "#/$defs/Level", "description": "How much."},
            "unit": {"$ref": "#/$defs/Unit", "description": "In what.", "default": "c"},
            "days": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "description": "How many.",
                "default": None,
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "uniqueItems": True,
                "description": "How called.",
                "default": ["a", "b", "c"],
            },
            "price": {
                "anyOf": [{"type": "number"}, {"type": "string"}],
                "description": "For how much.",
                "default": "1.50",
            },
            "limit": {"type": "number", "description": "Up to."},
            "spot": {
                "$ref": "#/$defs/Point",
                "description": "From where.",
                "default": {"x": 1, "y": 2},
            },
        },
        "$defs": {
            "City": {"type": "string"},
            "Unit": {"enum": ["c", "f"], "type": "string"},
            "Level": {"enum": [1, 2], "type": "integer"},
            "Point": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            },
            "Filter": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"field": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["field"],
            },
            "Order": {
                "type": "object",
                "additionalProperties": False,
                "description": "What is bought.",
                "properties": {
                    "item": {"type": "string"},
                    "at": {"$ref": "#/$defs/Point"},
                    "parts": {
                        "type": "array",
                        "items": {"$ref": "#/$defs/Order"},
                        "default": [],
                    },
                },
                "required": ["item", "at"],
            },
        },
    }


def test_tool_1_a_parameter_arrives_as_its_type() -> None:
    """Models, dataclasses, Enums and sets, not what JSON has for them."""
    tool = registered(everything)
    values = arguments(
        tool,
        '{"city": "Bern", "order": {"item": "pen", "at": {"x": 1}, "parts": []}, '
        '"where": {"field": "name"}, "near": {"x": 3, "y": 4}, "level": 2, "tags": ["z"]}',
    ).values
    assert values == {
        "city": "Bern",
        "order": Order(item="pen", at=Point(1, 0)),
        "where": {"field": "name"},
        "near": Point(3, 4),
        "level": Level.HIGH,
        "tags": frozenset({"z"}),
    }
    assert isinstance(values["level"], Level)
    assert tool.call(values, CONTEXT) == CONTEXT.run_id


def test_tool_1_two_classes_of_one_name_stay_apart() -> None:
    """Each keeps its own definition."""

    def first() -> type[object]:
        @dataclasses.dataclass
        class Pair:
            a: int

        return Pair

    def second() -> type[object]:
        @dataclasses.dataclass
        class Pair:
            b: str

        return Pair

    def take(one: object, two: object) -> None:
        """Take both.

        Args:
            one: First.
            two: Second.
        """

    tool = registered(hinted(take, one=first(), two=second()))
    definitions = tool.definition.parameters["$defs"]
    assert isinstance(definitions, dict)
    assert len(definitions) == 2
    assert {name.rpartition("__")[2] for name in definitions} == {"Pair"}


class Shop:
    """A shop."""

    def sell(self, item: Annotated[str, "What."]) -> str:
        """Sell it."""
        return f"sold {item}"

    @staticmethod
    def greet(name: Annotated[str, "Whom."]) -> str:
        """Greet."""
        return f"hello {name}"

    @classmethod
    def found(cls, name: Annotated[str, "How called."]) -> str:
        """Found one."""
        return f"{cls.__name__} {name}"


class Waiter:
    """A waiter."""

    async def __call__(self, dish: Annotated[str, "What."]) -> str:
        """Bring a dish."""
        return f"here is {dish}"


def test_tool_1_methods_partials_and_callables_are_tools() -> None:
    """Bound arguments are no longer the model's to give."""
    shop = Shop()
    assert registered(shop.sell).call({"item": "pen"}, CONTEXT) == "sold pen"
    assert registered(Shop.greet).call({"name": "Ada"}, CONTEXT) == "hello Ada"
    assert registered(Shop.found).call({"name": "Ada"}, CONTEXT) == "Shop Ada"
    fixed = registered(functools.partial(shop.sell, item="hat"))
    assert (fixed.name, properties(fixed)) == ("sell", {})
    assert fixed.call({}, CONTEXT) == "sold hat"
    half = registered(functools.partial(Shop.sell, shop))
    assert list(properties(half)) == ["item"]
    registry = ToolRegistry()
    registry.register(Waiter(), name="wait")
    (waiter,) = registry
    assert (waiter.is_async, list(properties(waiter))) == (True, ["dish"])
    assert waiter.definition.description == "Bring a dish."


def test_tool_1_a_wrapper_has_the_schema_of_what_it_wraps() -> None:
    """functools.wraps is how most decorators are written."""

    def logged[**P, R](function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(*args, **kwargs)

        return wrapper

    tool = registered(logged(Shop().sell))
    assert list(properties(tool)) == ["item"]
    assert tool.call({"item": "pen"}, CONTEXT) == "sold pen"


def test_tool_1_the_context_stays_out_of_the_schema() -> None:
    """Plain, optional and annotated; more than one is served, too."""

    def take(
        a: ToolContext,
        b: ToolContext | None = None,
        c: Annotated[ToolContext, "Ours."] = CONTEXT,
    ) -> str:
        """Take contexts."""
        assert b is not None
        return a.call_id + b.call_id + c.call_id

    tool = registered(take)
    assert tool.definition.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert tool.call({}, CONTEXT) == CONTEXT.call_id * 3


def test_tool_1_a_generic_function_is_described_by_its_bound() -> None:
    """A type parameter is no unresolved name."""

    def take[T: int](value: Annotated[T, "What."]) -> T:
        """Take it."""
        return value

    described = {"value": {"type": "integer", "description": "What."}}
    assert properties(registered(take)) == described
    hinted(take, value="Annotated[T, 'What.']")
    assert properties(registered(take)) == described
