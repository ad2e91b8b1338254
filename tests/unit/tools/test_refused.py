"""What cannot be a tool is refused at registration, with the parameter's name (TOOL-1)."""

import functools
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Iterator,
)
from dataclasses import dataclass
from enum import Enum, Flag, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ImportString, SkipValidation

from psych_runtime.errors import RegistrationError
from psych_runtime.tools.registry import ToolRegistry
from tests.unit.tools.tooling import hinted


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Spot:
    x: int


class Feed(BaseModel):
    rows: Iterable[int]


class Foreign:
    """No JSON says what this is."""


def refusal(function: Callable[..., object]) -> RegistrationError:
    registry = ToolRegistry()
    with pytest.raises(RegistrationError) as caught:
        registry.register(function)
    assert len(registry) == 0
    return caught.value


def no_hint(city: str) -> None:
    """Go.

    Args:
        city: Where.
    """


del no_hint.__annotations__["city"]


def no_description(city: str) -> None:
    """Go.

    Args:
        citi: Where.
    """


def no_docstring(city: Annotated[str, "Where."]) -> None:
    return None


def variadic(*cities: Annotated[str, "Where."]) -> None:
    """Go."""


def keywords(**cities: Annotated[str, "Where."]) -> None:
    """Go."""


def positional(city: Annotated[str, "Where."], /) -> None:
    """Go."""


def unresolved(near: Annotated[str, "Where."], city: str) -> None:
    """Go."""


def nested_unresolved(city: str) -> None:
    """Go."""


hinted(unresolved, city="Nowhere")
hinted(nested_unresolved, city="Annotated[list[Nowhere], 'Where.']")


def foreign(thing: Annotated[Foreign, "What."]) -> None:
    """Go."""


def calls_back(thing: Annotated[Callable[[int], str], "What."]) -> None:
    """Go."""


def wrong_default(days: int | None = None) -> None:
    """Go."""


hinted(wrong_default, days=Annotated[int, "How many."])


def constrained_default(days: Annotated[int, Field(ge=1, description="How many.")] = 0) -> None:
    """Go."""


def field_as_default(days: int = Field(default=1, description="How many.")) -> None:
    """Go."""


def field_with_default(days: Annotated[int, Field(default=1, description="How many.")]) -> None:
    """Go."""


def accented(größe: Annotated[int, "How large."]) -> None:
    """Go."""


@pytest.mark.parametrize(
    ("function", "parameter", "words"),
    [
        (no_hint, "city", "no type hint"),
        (no_description, "city", "no description"),
        (no_description, "city", "did you mean 'citi'?"),
        (no_docstring, None, "no description"),
        (variadic, "cities", "name each parameter"),
        (keywords, "cities", "name each parameter"),
        (positional, "city", "passed by name"),
        (unresolved, "city", "name 'Nowhere' is not defined"),
        (nested_unresolved, "city", "name 'Nowhere' is not defined"),
        (foreign, "thing", "cannot be told to a model"),
        (calls_back, "thing", "cannot be told to a model"),
        (wrong_default, "days", "its default None does not fit its hint; write `| None`"),
        (constrained_default, "days", "its default 0 does not fit"),
        (field_as_default, "days", "write Annotated[type, Field(...)] = default"),
        (field_with_default, "days", "write it as `days: ... = default`"),
        (accented, "größe", "letters, digits and underscores"),
    ],
)
def test_tool_1_what_a_model_cannot_be_told_is_refused(
    function: Callable[..., object], parameter: str | None, words: str
) -> None:
    """With the parameter's name, at registration."""
    error = refusal(function)
    assert error.parameter == parameter
    assert words in str(error)
    assert error.tool == function.__name__


class Shop:
    """A shop."""

    def sell(self, item: Annotated[str, "What."]) -> str:
        """Sell it."""
        return f"sold {item}"


def numbers() -> Iterator[int]:
    """Count."""
    yield 1


async def async_numbers() -> AsyncIterator[int]:
    """Count."""
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: 1, "write it as a def"),
        (numbers, "return a list"),
        (async_numbers, "return a list"),
        (functools.partial(numbers), "return a list"),
        (Shop, "a class is no tool"),
        (Shop.sell, "register it on an instance"),
        (print, "no type hint|name each parameter"),
    ],
)
def test_tool_1_what_is_no_function_is_refused(function: Callable[..., object], words: str) -> None:
    """Each with what to do instead."""
    with pytest.raises(RegistrationError, match=words):
        ToolRegistry().register(function, name="it")


def test_tool_1_what_cannot_be_called_is_refused() -> None:
    """A value instead of a function."""
    three: Any = 3
    with pytest.raises(RegistrationError, match="cannot be called"):
        ToolRegistry().register(three, name="three")


def test_tool_1_a_type_parameter_is_not_blamed_for_another_hint() -> None:
    """The one that cannot be resolved is named."""

    def take[T: int](value: T, other: int) -> T:
        """Take it."""
        return value

    error = refusal(hinted(take, value="Annotated[T, 'What.']", other="Nowhere"))
    assert error.parameter == "other"


def taking(hint: object) -> Callable[..., object]:
    """Return a function whose one parameter has that hint."""

    def go(thing: object) -> None:
        """Go.

        Args:
            thing: What.
        """

    return hinted(go, thing=hint)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Iterable[int], "Iterable is not checked as a whole; use list[...]"),
        (Iterator[int], "use list[...]"),
        (Generator[int, None, None], "use list[...]"),
        (Collection[int], "use list[...]"),
        (AsyncIterator[int], "use list[...]"),
        (dict[str, list[Iterable[int]]] | None, "use list[...]"),
        (Feed, "checked only while they are read; use list[...]"),
        (Callable[[int], str], "cannot be told to a model"),
        (type[int], "a class is no JSON"),
        (Hashable, "use str | int"),
        (ImportString[object], "a model would choose what is imported"),
        (SkipValidation[int], "SkipValidation would let pass"),
        (Right, "use list[...] of an Enum"),
        (set[list[int]], "cannot be in a set; use list[...]"),
        (set[Spot], "cannot be in a set; use list[...]"),
        (dict[bool, int], "use dict[str, ...]"),
        (dict[Level, int], "use dict[str, ...]"),
        (dict[Literal[1], int], "use dict[str, ...]"),
        (Literal["red", Color.RED], "two of its choices are the same in JSON"),
    ],
    ids=str,
)
def test_tool_1_what_json_cannot_say_or_nobody_checks_is_refused(hint: object, words: str) -> None:
    """A schema that validation does not keep would be a lie."""
    error = refusal(taking(hint))
    assert error.parameter == "thing"
    assert words in str(error)


def test_tool_1_a_result_that_is_read_later_is_refused() -> None:
    """Its items could not be checked; a list can."""

    def rows() -> Iterable[int]:
        """List rows."""
        return [1]

    def feed() -> Feed:
        """Feed."""
        return Feed(rows=[1])

    for one in (rows, feed):
        error = refusal(one)
        assert error.parameter == "return"
        assert "use list[...]" in str(error)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (Field(alias="a"), "Field(alias=...) has no effect"),
        (Field(validation_alias="a"), "Field(validation_alias=...) has no effect"),
        (Field(serialization_alias="a"), "Field(serialization_alias=...) has no effect"),
        (Field(default=1), "write it as `thing: ... = default`"),
        (Field(default_factory=int), "write it as `thing: ... = default`"),
        (Field(exclude=True), "Field(exclude=...) has no effect"),
        (Field(frozen=True), "Field(frozen=...) has no effect"),
        (Field(init=False), "Field(init=...) has no effect"),
        (Field(repr=False), "Field(repr=...) has no effect"),
        (Field(validate_default=True), "has no effect"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
@pytest.mark.filterwarnings("error")
def test_tool_1_what_a_field_says_without_effect_is_refused(field: object, words: str) -> None:
    """At the parameter and inside its type; pydantic would ignore it with a warning."""
    for hint in (Annotated[int, field], list[Annotated[int, field]], Annotated[int, field] | None):
        error = refusal(taking(hint))
        assert error.parameter == "thing"
        assert words in str(error)


@pytest.mark.filterwarnings("error")
def test_tool_1_what_a_field_says_with_effect_is_taken() -> None:
    """The neighbours: description, bounds, examples; and aliases within a model."""

    class Order(BaseModel):
        item: str = Field(alias="what", default="pen")

    registry = ToolRegistry()
    field = Field(description="What.", ge=1, examples=[1], title="T", json_schema_extra={"a": 1})
    for name, hint in {"a": Annotated[int, field], "b": Order}.items():
        registry.register(taking(hint), name=name)
    assert len(registry) == 2
