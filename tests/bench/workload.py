"""The same work for the runtime and for whoever does without: an agent, a tool, a model."""

from collections.abc import AsyncGenerator
from typing import Annotated, Final

from psych_runtime import (
    AgentSpec,
    CallDelta,
    CodeTool,
    Finish,
    Limits,
    ModelEvent,
    ModelRef,
    ModelRequest,
    TextDelta,
    ToolRegistry,
    Usage,
    UsageReport,
)

__all__ = ["SYSTEM", "Model", "agent", "look_up", "registry"]

SYSTEM: Final = (
    "You answer questions about orders. Look an order up before you say anything about it, and "
    "name its number in the answer."
)
_USAGE: Final = Usage(input_tokens=420, cache_read_tokens=128, output_tokens=37)
_ANSWER: Final = (
    "Order 4711 left the warehouse this morning and is expected on Thursday. The invoice was "
    "sent to the address on file; nothing else is open."
)


async def look_up(order: Annotated[int, "the order's number"]) -> str:
    """Say where an order is."""
    return f"order {order}: packed, handed over to the carrier, expected in two days"


class Model:
    """Asks for one call in each turn but the last, and answers at once.

    The turn is told by the length of the conversation: the same little work in each turn.
    """

    def __init__(self, turns: int = 2) -> None:
        self.turns = turns

    def models(self) -> None:
        """Every name will do."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Say the next thing."""
        turn = len(request.messages) // 2 + 1
        if turn < self.turns:
            yield TextDelta(text=f"I look up order {turn}.")
            arguments = f'{{"order":{turn}}}'
            yield CallDelta(index=0, provider_id="call_0", name="look_up", arguments=arguments)
            yield UsageReport(usage=_USAGE)
            yield Finish(reason="tool_calls")
        else:
            yield TextDelta(text=_ANSWER)
            yield UsageReport(usage=_USAGE)
            yield Finish(reason="stop")


def registry() -> ToolRegistry:
    """Return a registry with the tool, which changes nothing."""
    tools = ToolRegistry()
    tools.register(look_up, annotations={"read-only"})
    return tools


def agent(turns: int = 2) -> AgentSpec:
    """Return the agent's Spec, with room for so many turns and a day's time."""
    return AgentSpec(
        name="orders",
        instructions=SYSTEM,
        model=ModelRef(model="any"),
        tools=[CodeTool(name="look_up")],
        limits=Limits(max_turns=turns, deadline_seconds=86_400.0, stream_idle_seconds=3600.0),
    )
