"""What the simulated model says: a script per thread, drawn from the seed; it fails at times."""

import asyncio
import json
from collections.abc import AsyncGenerator
from random import Random
from typing import Literal

from pydantic import JsonValue

from psych_runtime.errors import ModelPermanent, ModelTransient
from psych_schema.common import Usage
from psych_schema.model import (
    AssistantMessage,
    CallDelta,
    Finish,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPart,
    ToolMessage,
    UsageReport,
    UserMessage,
)
from psych_schema.spec import BuiltinName

__all__ = ["BUILTINS", "TOOLS", "Talker"]

TOOLS = ("charge", "look", "put", "slow", "pay", "book", "missing")
BUILTINS: tuple[BuiltinName, ...] = (
    "ask_question",
    "update_tasks",
    "wait_for_event",
    "wait_for_time",
)
_SLOWNESS = (1.0, 1.0, 1.0, 5.0)  # of models: one call takes longer than a lease, or never does
_WEIGHTS = (
    (8, 6, 4, 2, 6, 6, 2, 1, 1, 1, 1),
    (8, 6, 4, 2, 6, 6, 2, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 30, 1, 1, 1, 1, 1),  # books, which takes time, and can be looked up
    (1, 1, 1, 1, 1, 30, 1, 1, 1, 1, 1),
    (1, 20, 1, 1, 1, 1, 1, 0, 0, 0, 0),  # looks around, for which it needs nobody's leave
)


class Talker:
    """A model client for all processes; it knows a thread by its first message.

    `calm` ends its failures.
    """

    def __init__(self, seed: int) -> None:
        self.calm = False
        self.problems: list[str] = []
        self.reported: list[Usage] = []
        self._seed = seed
        self._chance = Random(f"{seed}:model")
        self._slowness = self._chance.choice(_SLOWNESS)
        self._weights = self._chance.choice(_WEIGHTS)

    def models(self) -> frozenset[str] | None:
        """Return that it takes every name."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Say what comes next in the script, or fail."""
        self._check_pairs(request)
        chance = self._chance
        await asyncio.sleep(self._slowness * chance.uniform(0.05, 1.5))
        if not self.calm and chance.random() < 0.1:
            raise ModelTransient("busy", retry_after_seconds=chance.choice((None, 1.0, 7.0)))
        if not self.calm and chance.random() < 0.01:
            raise ModelPermanent("no")
        first = _text_of(request.messages[0])
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
        for piece in (f"turn {turn} ", f"of {first}"):
            yield TextDelta(text=piece)
            await asyncio.sleep(chance.uniform(0.0, 0.3))
        calls = self._calls(first, turn)
        who = first.partition(" ")[0]
        for index, name in enumerate(calls):
            yield CallDelta(
                index=index,
                provider_id=f"c{index}",
                name=name,
                arguments=json.dumps(_arguments(name, who, index + 1)),
            )
        usage = Usage(
            input_tokens=10 + len(request.messages), output_tokens=chance.randrange(1, 50)
        )
        if not self.calm and chance.random() < 0.05:
            yield UsageReport(usage=usage)
            raise ModelTransient("cut off")
        if chance.random() < 0.9:
            self.reported.append(usage)
            yield UsageReport(usage=usage)
        reason: Literal["tool_calls", "stop"] = "tool_calls" if calls else "stop"
        yield Finish(reason=reason)

    def _calls(self, first: str, turn: int) -> list[str]:
        """Return the tools that this turn of a thread asks for; a few turns ask for some."""
        chance = Random(f"{self._seed}:{first}:{turn}")
        if turn and (turn > 6 or chance.random() < 0.45):
            return []
        return chance.choices((*TOOLS, *BUILTINS), self._weights, k=chance.randrange(1, 4))

    def _check_pairs(self, request: ModelRequest) -> None:
        """See that each call has its answer right behind it, as providers demand."""
        waiting: list[str] = []
        for message in request.messages:
            if isinstance(message, ToolMessage):
                if not waiting or waiting.pop(0) != message.call_id:
                    self.problems.append(f"an answer to no call: {message.call_id}")
                continue
            if waiting:
                self.problems.append(f"calls without an answer: {waiting}")
            waiting = (
                [call.call_id for call in message.calls]
                if isinstance(message, AssistantMessage)
                else []
            )
        if waiting or not request.messages:
            self.problems.append(f"a request that ends with open calls: {waiting}")


def _arguments(name: str, who: str, number: int) -> dict[str, JsonValue]:
    match name:
        case "ask_question":
            return {"questions": [{"question": "May I?", "options": ["yes", "no"]}]}
        case "update_tasks":
            return {"tasks": [{"title": f"thing {number}", "state": "doing"}]}
        case "wait_for_event":
            return {"event": "news"}
        case "wait_for_time":
            return {"seconds": number * 2.5}
        case _:
            return {"who": who, "amount": number}


def _text_of(message: UserMessage | AssistantMessage | ToolMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))
