"""What the tests of tools share: one registered tool, and a call's context."""

from collections.abc import Callable

from pydantic import JsonValue

from psych_runtime.tools.arguments import Arguments, Malformed, read_arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import RegisteredTool, ToolRegistry
from psych_schema.common import Scope

CALL_ID = "call_01hzy3v9k2m4n6p8q0r2s4t6v8"
CONTEXT = ToolContext(
    scope=Scope(tenant="acme"),
    run_id="run_01hzy3v9k2m4n6p8q0r2s4t6v8",
    call_id=CALL_ID,
    idempotency_key=CALL_ID,
    epoch=3,
)


def registered[**P, R](fn: Callable[P, R], *, timeout_seconds: float = 300.0) -> RegisteredTool:
    """Register a function alone and return the tool."""
    registry = ToolRegistry()
    registry.register(fn, timeout_seconds=timeout_seconds)
    (tool,) = registry
    return tool


def properties(tool: RegisteredTool) -> dict[str, JsonValue]:
    """Return the schemas of the tool's parameters."""
    found = tool.definition.parameters["properties"]
    assert isinstance(found, dict)
    return found


def arguments(tool: RegisteredTool, text: str) -> Arguments:
    """Read arguments that must fit."""
    found = read_arguments(tool, text)
    assert isinstance(found, Arguments), found
    return found


def problem(tool: RegisteredTool, text: str) -> str:
    """Read arguments that must not fit; return what the model is told."""
    found = read_arguments(tool, text)
    assert isinstance(found, Malformed), found
    return found.message
