"""What the tests of tools share: registered tools, a call's context, one execution."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from pydantic import JsonValue

from psych_runtime.tools.arguments import Arguments, Malformed, read_arguments
from psych_runtime.tools.code import CodeExecutor
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope

CALL_ID = "call_01hzy3v9k2m4n6p8q0r2s4t6v8"
CONTEXT = ToolContext(
    scope=Scope(tenant="acme"),
    run_id="run_01hzy3v9k2m4n6p8q0r2s4t6v8",
    call_id=CALL_ID,
    idempotency_key=CALL_ID,
    epoch=3,
)

NOTHING = Arguments({}, "{}", {})


def registered[**P, R](fn: Callable[P, R], *, timeout_seconds: float = 300.0) -> RegisteredTool:
    """Register a function alone and return the tool."""
    registry = ToolRegistry()
    registry.register(fn, timeout_seconds=timeout_seconds)
    (tool,) = registry
    return tool


def hinted[**P, R](function: Callable[P, R], **hints: object) -> Callable[P, R]:
    """Give a function hints that a type checker would not let stand."""
    function.__annotations__.update(hints)
    return function


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


def sync_tool(body: Callable[[], object], timeout_seconds: float = 60.0) -> RegisteredTool:
    """Register a sync tool without parameters that does `body`."""

    def probe() -> object:
        """Probe."""
        return body()

    return registered(probe, timeout_seconds=timeout_seconds)


def async_tool(
    body: Callable[[], Awaitable[object]], timeout_seconds: float = 60.0
) -> RegisteredTool:
    """Register an async tool without parameters that awaits `body`."""

    async def probe() -> object:
        """Probe."""
        return await body()

    return registered(probe, timeout_seconds=timeout_seconds)


def both(body: Callable[[], object]) -> list[RegisteredTool]:
    """Register `body` as a sync and as an async tool."""

    async def awaited() -> object:
        return body()

    return [sync_tool(body), async_tool(awaited)]


async def run(tool: RegisteredTool, pool: Executor | None) -> Executed:
    """Run `tool` once."""
    return ran(await CodeExecutor(pool).execute(tool, NOTHING, CONTEXT))


def ran(executed: Executed | None) -> Executed:
    """Return what an execution brought that was allowed to start."""
    assert executed is not None
    return executed
