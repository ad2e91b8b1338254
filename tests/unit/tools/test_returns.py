"""What a tool returns against its annotation and the bounds (TOOL-7, LOG-5)."""

import functools
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, cast

import pytest
from pydantic import BaseModel

from psych_runtime.tools.code import Executed
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
