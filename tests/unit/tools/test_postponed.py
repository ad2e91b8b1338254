"""The same under `from __future__ import annotations`, where hints are text (TOOL-1)."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import pytest

from psych_runtime.errors import RegistrationError
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import ToolRegistry
from tests.unit.tools.tooling import CONTEXT, arguments, registered


@dataclasses.dataclass
class Point:
    x: int


def move(
    to: Annotated[Point, "Where to."], context: ToolContext, back: ToolContext | None = None
) -> str:
    """Move."""
    assert back is context
    return f"{context.call_id} to {to.x}"


def test_tool_1_postponed_hints_are_resolved() -> None:
    """Also that of the context, plain and optional."""
    tool = registered(move)
    found = arguments(tool, '{"to": {"x": 3}}')
    assert found.values == {"to": Point(3)}
    assert tool.call(found.values, CONTEXT) == f"{CONTEXT.call_id} to 3"


def test_tool_1_postponed_hints_of_local_types_are_refused() -> None:
    """Nobody can find them from outside; the message says where to define them."""

    @dataclasses.dataclass
    class Local:
        x: int

    def go(near: Annotated[int, "How near."], to: Annotated[Local, "Where to."]) -> None:
        """Go."""

    with pytest.raises(RegistrationError, match="define the type at module level") as caught:
        ToolRegistry().register(go)
    assert caught.value.parameter == "to"
