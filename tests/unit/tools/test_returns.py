"""What a tool returns against its annotation and the bounds (TOOL-7, LOG-5)."""

import functools
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Literal, TypedDict, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from psych_runtime.tools.executed import Executed
from psych_schema.record import Failure
from tests.unit.tools.tooling import both, registered, run


class Hostile(Mapping[str, int]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise OSError("gone")

    def __len__(self) -> int:
        return 1


class Report(BaseModel):
    lines: list[str]


class Renamed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = Field(alias="no")


class Numbers(RootModel[list[int]]):
    pass


class Row(TypedDict):
    id: int


MADE: list[str] = []


@dataclass
class Spot:
    x: int
    y: int = 0
    size: int = field(init=False, default=3)
    unit: InitVar[str] = "m"

    def __post_init__(self, unit: str) -> None:
        MADE.append(unit)


@dataclass
class Wide(Spot):
    z: int = 0


@dataclass(frozen=True, slots=True)
class Slim:
    spot: Spot


class Loud(BaseModel):
    spots: list[Spot]

    def model_post_init(self, context: object) -> None:
        MADE.append("model")


async def returned(value: object, hint: object) -> Executed:
    """Run a tool with that return annotation that returns `value`."""

    def probe() -> object:
        """Probe."""
        return value

    probe.__annotations__["return"] = hint
    return await run(registered(probe), None)


@pytest.mark.parametrize(
    ("value", "hint", "words"),
    [
        ("3", int, "result should be a valid integer, got a string"),
        (True, int, "result should be a valid integer, got a boolean"),
        (None, str, "result should be a valid string, got null"),
        ("text", None, "result should be None, got a string"),
        ({"a": [1, "canary"]}, dict[str, list[int]], "result.a[1] should be a valid integer"),
        ({"lines": [1]}, Report, "result.lines[0] should be a valid string, got an integer"),
        ([1], tuple[int, ...], "result should be a valid tuple, got an array"),
        (Report(lines=[]), str, "result should be a valid string, got Report"),
        (Spot(cast("int", "1")), Spot, "result.x should be a valid integer, got a string"),
        ([Wide(1, cast("int", None))], list[Spot], "result[0].y should be a valid integer"),
        (Slim(Spot(cast("int", "1"))), Slim, "result.spot.x should be a valid integer"),
        (Loud.model_construct(spots=[Spot(cast("int", "1"))]), Loud, "result.spots[0].x should"),
        (Renamed.model_construct(number="canary"), Renamed, "should be a valid integer"),
        (
            Numbers.model_construct([cast("int", "canary")]),
            Numbers,
            "[0] should be a valid integer",
        ),
        (True, Literal[1], "result should be 1, got a boolean"),
        (1, Literal[True, "a"], "result should be true or 'a', got an integer"),
        ([1], tuple[int, str] | None, "result should be a valid tuple"),
        ((1,), tuple[int, str], "result[1] is required"),
        ({}, Row, "result.id is required"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_tool_7_a_result_that_does_not_fit_its_annotation_is_an_error(
    value: object, hint: object, words: str
) -> None:
    """With the place, without the value; the model learns that it ran."""
    executed = await returned(value, hint)
    assert executed.outcome == "error"
    assert executed.failure == Failure(code="result_invalid", transient=False)
    message = str(executed.result.message)
    assert message.startswith("probe returned what its return type does not allow: ")
    assert words in message
    assert message.endswith("It was executed.")
    assert "canary" not in message


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (3, float),
        (None, str | None),
        (Report(lines=["a"]), Report),
        ([Report(lines=["a"])], list[Report]),
        ({"lines": ["a"]}, Report),
        ({"a": 1}, dict[str, int]),
        ("text", Annotated[str, "What was found."]),
        (7, object),
        (Spot(1), Spot),
        (Wide(1), Spot),
        (Slim(Spot(1)), Slim | None),
        (Loud(spots=[Spot(1)]), Loud),
        (Renamed(no=1), Renamed),
        ({"no": 1}, Renamed),
        (Numbers([1]), Numbers),
        (1, Literal[1]),
        (True, Literal[1, True]),
        (True, int | bool),
        ({"id": 1, "more": 2}, Row),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_tool_7_a_result_that_fits_is_kept(value: object, hint: object) -> None:
    """The neighbours of each refusal."""
    assert (await returned(value, hint)).outcome == "ok"


async def test_tool_7_what_an_awaitable_brings_is_checked(pool: ThreadPoolExecutor) -> None:
    """Async functions, and sync ones that return a coroutine."""

    async def count() -> int:
        """Count."""
        return 3

    async def miscount() -> int:
        """Count."""
        return cast("int", "3")

    def later() -> Awaitable[int]:
        """Count later."""
        return count()

    @functools.wraps(miscount)
    def wrapped() -> Awaitable[int]:
        return miscount()

    assert [
        (await run(registered(one), pool)).outcome for one in (count, miscount, later, wrapped)
    ] == ["ok", "error", "ok", "error"]


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ({1}, "result_invalid", "the result of probe: result is a set"),
        (float("nan"), "result_invalid", "result is the number nan"),
        ("a\ud800", "result_invalid", "lone surrogate at character 1"),
        (Hostile(), "result_invalid", "returned what cannot be read: OSError: gone"),
        (
            "x" * 20_000_000,
            "result_too_large",
            "the result of probe is too large: at least 20000002 bytes, the bound is 262144",
        ),
    ],
    ids=["set", "nan", "surrogate", "hostile", "20 MB"],
)
async def test_log_5_a_result_that_cannot_be_stored_is_a_tool_error(
    pool: ThreadPoolExecutor, value: object, code: str, words: str
) -> None:
    """Named tool, place or size, and that it ran; sync and async."""
    for tool in both(lambda: value):
        executed = await run(tool, pool)
        assert executed.outcome == "error"
        assert executed.failure == Failure(code=code, transient=False)
        assert words in str(executed.result.message)
        assert str(executed.result.message).endswith("It was executed.")


async def test_tool_7_checking_an_instance_makes_no_other() -> None:
    """What its author does when one is made is not done again."""
    value = Loud(spots=[Spot(1)])
    del MADE[:]
    executed = await returned(value, Loud)
    assert executed.outcome == "ok"
    assert MADE == []


async def test_tool_7_an_error_that_ends_in_a_question_is_not_ended_twice() -> None:
    """One mark is enough."""

    class Asking(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            raise KeyError(key)

        def __iter__(self) -> Iterator[str]:
            raise OSError("is it there?")

        def __len__(self) -> int:
            return 1

    message = str((await returned(Asking(), object)).result.message)
    assert message.endswith("OSError: is it there? It was executed.")
