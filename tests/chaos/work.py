"""What the Runs do, and what must come of it: a model that decides by the conversation alone.

Every turn asks for three calls at once: `put`, which is safe to retry, `charge`, which is not,
and `look`, which only reads. The last word repeats what the tools returned, so that a Run's
output tells whether each result reached the model once, in order.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final, NamedTuple

from psych_runtime.errors import ModelPermanent
from psych_runtime.testing._pairing import unpaired
from psych_schema.model import (
    AssistantMessage,
    CallDelta,
    Finish,
    Message,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPart,
    ToolMessage,
    UserMessage,
)
from psych_schema.spec import AgentSpec, CodeTool, Limits, ModelRef

__all__ = ["TOOLS", "UNKNOWN", "Order", "OrderModel", "answer_of", "last_word", "shop"]

TOOLS: Final = ("put", "charge", "look")
UNKNOWN: Final = "?"
"""What the last word says of a call whose outcome nobody knows."""

_ORDER: Final = re.compile(r"order (\d+): (\d+) turns( held)?")
_PIECE_SECONDS: Final = 0.01


class Order(NamedTuple):
    """What one Run is asked to do; the tools of a `held` one wait for a file to go."""

    number: int
    turns: int
    held: bool = False

    @property
    def text(self) -> str:
        """The message that the Run begins with."""
        return f"order {self.number}: {self.turns} turns{' held' if self.held else ''}"

    @classmethod
    def read(cls, text: str) -> "Order":
        """Return the order that a message gives."""
        found = _ORDER.fullmatch(text)
        if found is None:
            raise ModelPermanent(f"no order: {text!r}")
        return cls(int(found[1]), int(found[2]), found[3] is not None)


def shop() -> AgentSpec:
    """Return the agent; its Runs have an hour, so that none ends for want of time."""
    return AgentSpec(
        name="shop",
        instructions="Do what the order says.",
        model=ModelRef(model="orders"),
        tools=tuple(CodeTool(name=name) for name in TOOLS),
        limits=Limits(deadline_seconds=3600.0),
    )


def answer_of(tool: str, turn: int, run_id: str) -> str:
    """Return what a tool returns: the same in whatever process."""
    return f"{tool} {turn} of {run_id}"


def last_word(answers: Iterable[str]) -> str:
    """Return what the model says at the end, from what each call brought."""
    return "; ".join(answers)


class OrderModel:
    """A model without memory: the n-th answer follows from n - 1 answers in the conversation."""

    def models(self) -> frozenset[str]:
        """Return its only name."""
        return frozenset({"orders"})

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Ask for the calls of the next turn, or say the last word. ModelPermanent: no order."""
        problem = unpaired(request.messages)
        if problem is not None:
            raise ModelPermanent(f"unpaired history: {problem}")
        order = Order.read(_first_text(request.messages))
        turn = 1 + sum(isinstance(one, AssistantMessage) for one in request.messages)
        calls = TOOLS if turn <= order.turns else ()
        for piece in _words(f"Turn {turn}." if calls else last_word(_answers(request.messages))):
            await asyncio.sleep(_PIECE_SECONDS)
            yield TextDelta(text=piece)
        for index, name in enumerate(calls):
            arguments = json.dumps({"turn": turn, "held": order.held})
            yield CallDelta(index=index, provider_id=f"call_{turn}_{index}", name=name)
            yield CallDelta(index=index, arguments=arguments)
        yield Finish(reason="tool_calls" if calls else "stop")


def _first_text(messages: Sequence[Message]) -> str:
    first = messages[0] if messages else None
    return _text(first) if isinstance(first, UserMessage) else ""


def _answers(messages: Sequence[Message]) -> list[str]:
    answers = [one for one in messages if isinstance(one, ToolMessage)]
    return [UNKNOWN if one.failed else _text(one) for one in answers]


def _text(message: UserMessage | ToolMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)
