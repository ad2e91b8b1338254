"""Whatever a tool returns is kept as it is, or refused in words; never half (LOG-5, TOOL-7)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, JsonValue

from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import JsonPart, TextPart
from psych_schema.record import ToolCompleted
from psych_schema.spec import ResultRules
from tests.functional.engine.behaviour.talk import Told, answers, talk
from tests.functional.engine.harness import ACME, Crew, agent
from tests.stores.kinds import EVERY_STORE


@pytest.fixture(params=EVERY_STORE)
def kind(request: pytest.FixtureRequest) -> str:
    """Every store keeps and gives the same."""
    name: str = request.param
    return name


class Colour(Enum):
    """A colour."""

    RED = "red"


@dataclass
class Point:
    """A point."""

    x: int
    y: float


class Order(BaseModel):
    """An order."""

    number: int
    at: date


_LOOP: list[object] = []
_LOOP.append(_LOOP)


def _deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


WHOLE = agent("act").model_copy(update={"results": ResultRules(shown_bytes=None)})
"""An agent that is shown each result whole."""


async def _told(store: Store, crew: Crew, value: object) -> tuple[Told, FakeModel]:
    async def act() -> object:
        """Act."""
        return value

    model = FakeModel().turn(tool_calls=[("act", {})]).turn(text="Done.")
    found = await talk(store, crew, model, act, spec=WHOLE)
    assert found.end == ("completed", None)
    return found, model


@pytest.mark.parametrize(
    "text",
    ["", "plain", "a\x00b", "\x00", "😀 é \u2028 \ufeff", "\x1b[31m", "\\u0000", "a\r\nb", '"}{"'],
)
async def test_log_5_text_is_kept_losslessly(store: Store, crew: Crew, text: str) -> None:
    """NUL, emoji and control characters come back as they went in, to log and model (V9)."""
    found, model = await _told(store, crew, text)
    [done] = found.every(ToolCompleted)
    assert done.outcome == "ok"
    assert done.result is not None
    assert done.result.parts == (TextPart(text=text),)
    assert answers(model.requests[1].messages)[0][1] == text


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (-0.0, -0.0),
        (2**53 + 1, 2**53 + 1),
        (2**63, 2**63),
        (-(2**63) - 1, -(2**63) - 1),
        (10**307, 10**307),
        (1e308, 1e308),
        (5e-324, 5e-324),
        (0.1, 0.1),
        (Decimal("0.10"), "0.10"),
        (Decimal("1E+400"), "1E+400"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(days=1, seconds=2), "P1DT2S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Point(1, 2.5), {"x": 1, "y": 2.5}),
        (Order(number=1, at=date(2026, 1, 2)), {"number": 1, "at": "2026-01-02"}),
        ((1, "a"), [1, "a"]),
        ({"a\x00": ["😀", None], "": {}}, {"a\x00": ["😀", None], "": {}}),
        ([], []),
    ],
)
async def test_log_5_values_are_kept_losslessly(
    store: Store, crew: Crew, value: object, kept: JsonValue
) -> None:
    """Numbers exactly, other types as text that says them exactly."""
    found, _ = await _told(store, crew, value)
    [done] = found.every(ToolCompleted)
    assert done.outcome == "ok"
    assert done.result is not None
    [part] = done.result.parts
    assert isinstance(part, JsonPart)
    assert part.value == kept
    assert type(part.value) is type(kept)
    if isinstance(kept, float):
        assert math.copysign(1, kept) == math.copysign(1, part.value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "a set"),
        (frozenset(), "a set"),
        (b"\x00\xff", "bytes"),
        (bytearray(b"a"), "bytes"),
        (math.nan, "nan"),
        ([math.inf], "inf"),
        (Decimal("NaN"), "Decimal NaN"),
        (Decimal("-Infinity"), "Decimal -Infinity"),
        ("a\ud800b", "a lone surrogate at character 1"),
        ({"k\udfff": 1}, "a lone surrogate at character 1"),
        (["ok", "\ud800"], "result[1]"),
        ({1: "a"}, "a key of type int"),
        (10**400, "more than 308 digits"),
        (_LOOP, "contains itself"),
        (_deep(100), "deeper than"),
        (object(), "an object of type object"),
        (len, "an object of type builtin_function_or_method"),
    ],
)
async def test_log_5_what_cannot_be_kept_is_refused_in_words(
    store: Store, crew: Crew, value: object, words: str
) -> None:
    """A typed tool error that names the tool; the model reads it and the Run goes on."""
    found, model = await _told(store, crew, value)
    [(outcome, code, text)] = found.calls
    assert (outcome, code) == ("error", "result_invalid")
    assert words in text
    assert "act" in text
    assert "It was executed." in text
    assert len(text.encode()) <= 2048
    assert answers(model.requests[1].messages)[0][1] == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: "x" * 20_000_000,
        lambda: "é" * 200_000,
        lambda: ["x" * 1_000] * 20_000,
        lambda: {str(n): n for n in range(100_000)},
        lambda: "x" * (256 * 1024),
        lambda: "\x00" * 50_000,
    ],
)
async def test_log_5_too_large_a_result_names_tool_size_and_bound(
    store: Store, crew: Crew, make: Callable[[], Any]
) -> None:
    """Nothing of it is stored; the call was executed and is not repeated (S5)."""
    found, _ = await _told(store, crew, make())
    [(outcome, code, text)] = found.calls
    assert (outcome, code) == ("error", "result_too_large")
    assert "the result of act" in text
    assert "the bound is 262144" in text
    assert "bytes" in text
    rows = await store.read(ACME.tenant, found.run_id)
    assert max(len(row.content or "") for row in rows) < 2_048


async def test_log_5_just_below_the_bound_is_kept(store: Store, crew: Crew) -> None:
    """The neighbour of too large."""
    found, model = await _told(store, crew, "x" * 262_000)
    assert [outcome for outcome, _, _ in found.calls] == ["ok"]
    assert answers(model.requests[1].messages)[0][1] == "x" * 262_000


async def test_tool_7_a_result_that_does_not_fit_its_type_is_an_error(
    store: Store, crew: Crew
) -> None:
    """The return annotation is a promise to the model."""

    async def count() -> int:
        """Count."""
        return "three"  # type: ignore[return-value]

    async def prices() -> dict[str, float]:
        """List prices."""
        return {"tea": 2.5, "cake": "much"}  # type: ignore[dict-item]

    model = FakeModel().turn(tool_calls=[("count", {}), ("prices", {})]).turn(text="Done.")
    found = await talk(store, crew, model, count, prices)
    assert [(outcome, code) for outcome, code, _ in found.calls] == [
        ("error", "result_invalid"),
        ("error", "result_invalid"),
    ]
    assert all("return type does not allow" in text for _, _, text in found.calls)
    assert found.end == ("completed", None)


async def test_tool_7_a_result_that_fits_is_kept(store: Store, crew: Crew) -> None:
    """The neighbour."""

    async def point() -> Point:
        """Point."""
        return Point(1, 2.0)

    model = FakeModel().turn(tool_calls=[("point", {})]).turn(text="Done.")
    found = await talk(store, crew, model, point)
    assert found.calls == [("ok", "", '{"x": 1, "y": 2.0}')]


async def test_v9_a_model_that_says_nul_and_surrogates(store: Store, crew: Crew) -> None:
    """NUL is kept; a lone surrogate becomes the replacement character, once, for all readers."""
    model = FakeModel().turn(text="a\x00b\ud800c \ud83d\ude00", reasoning="\udfff")
    found = await talk(store, crew, model)
    assert found.end == ("completed", None)
    assert found.answer == "a\x00b\ufffdc 😀"


async def test_v9_a_tools_error_text_with_a_surrogate(store: Store, crew: Crew) -> None:
    """It reaches the log escaped."""

    async def act() -> str:
        """Act."""
        raise ValueError("a\x00b\ud800c")

    model = FakeModel().turn(tool_calls=[("act", {})]).turn(text="Done.")
    found = await talk(store, crew, model, act)
    assert found.calls == [("error", "tool_error", "act raised ValueError: a\x00b\\ud800c")]
    assert found.end == ("completed", None)


async def test_log_5_sixteen_large_results_at_once(store: Store, crew: Crew) -> None:
    """4 MB in one turn are more than one unit takes: they come in several, and none is lost."""

    async def act(n: int) -> str:
        """Act.

        Args:
            n: Which.
        """
        return f"{n:02d}" + "x" * 250_000

    model = FakeModel()
    model.turn(tool_calls=[("act", {"n": n}) for n in range(16)]).turn(text="Done.")
    found = await talk(store, crew, model, act, spec=WHOLE)
    assert found.end == ("completed", None)
    texts = [text for _, text in answers(model.requests[1].messages)]
    assert [(text[:2], len(text)) for text in texts] == [(f"{n:02d}", 250_002) for n in range(16)]


async def test_r_30_a_large_answer_below_the_bound_is_kept(store: Store, crew: Crew) -> None:
    """The neighbour of output_too_large."""
    text = "word " * 50_000
    found = await talk(store, crew, FakeModel().turn(text=text), deltas=True)
    assert found.end == ("completed", None)
    assert found.answer == text
