"""The same Runs by hand: an asyncio loop that calls the model and the tool and keeps records.

What a program does that wants none of the promises: no checks, no claims, no recovery.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from typing import Final
from uuid import uuid4

from psych_runtime import CallDelta, Finish, ModelRequest, TextDelta, UsageReport
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    Message,
    TextPart,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from tests.bench.workload import SYSTEM, Model, look_up, registry

__all__ = ["ByHand", "Texts", "in_memory"]

type Texts = Sequence[str]
type Keep = Callable[[str, Texts], Awaitable[None]]
"""Keeps records of a Run, given its id; returns once they are kept."""

_TOOL: Final = registry().get("look_up")


def in_memory(logs: dict[str, list[str]]) -> Keep:
    """Return what appends records to lists."""

    async def keep(run_id: str, texts: Texts) -> None:
        logs.setdefault(run_id, []).extend(texts)

    return keep


class ByHand:
    """Executes Runs one after another or side by side.

    Steps are kept as the runtime's are: what belongs together at once, six times for each Run.
    `apart`: eleven times, every record for itself, as a program does that takes no trouble; what
    is offered is not kept.
    """

    def __init__(self, model: Model, keep: Keep, *, apart: bool = False) -> None:
        if _TOOL is None:
            raise LookupError("look_up")
        self._model = model
        self._keep_at_once = keep
        self._apart = apart
        self._tools: tuple[ToolDefinition, ...] = (_TOOL.definition,)

    async def many(self, runs: int, *, at_once: int) -> None:
        """Execute so many Runs, `at_once` of them at any moment."""
        todo = islice(count(), runs)

        async def caller() -> None:
            for _ in todo:
                await self.one()

        async with asyncio.TaskGroup() as callers:
            for _ in range(min(runs, at_once)):
                callers.create_task(caller())

    async def one(self) -> None:
        """Execute one Run: admitted, begun, then four steps of a turn with a call and one more."""
        run_id = f"run_{uuid4().hex}"
        messages: list[Message] = [UserMessage(parts=(TextPart(text="Where is my order?"),))]
        await self._keep(run_id, [_record("run.admitted", input="Where is my order?")])
        await self._keep(run_id, [_record("attempt.started", worker="by hand")])
        begun = [_record("turn.started", turn=1)]
        if not self._apart:
            begun.append(_record("tools.offered", tools=["look_up"]))
        await self._keep(run_id, [*begun, _record("model.started", turn=1)])
        said = await self._ask(messages)
        while said.calls:
            [call] = said.calls
            started = _record("tool.started", call=call.call_id, name=call.name)
            await self._keep(run_id, [_completed(said), started])
            result = await look_up(**json.loads(call.arguments))
            parts = (TextPart(text=result),)
            messages += [said, ToolMessage(call_id=call.call_id, parts=parts)]
            turn = len(messages) // 2 + 1
            ended = _record("tool.completed", call=call.call_id, result=result)
            follows = [_record("turn.started", turn=turn), _record("model.started", turn=turn)]
            await self._keep(run_id, [ended, *follows])
            said = await self._ask(messages)
        text = "".join(part.text for part in said.parts if isinstance(part, TextPart))
        await self._keep(run_id, [_completed(said), _record("run.settled", output=text)])

    async def _keep(self, run_id: str, texts: Texts) -> None:
        if not self._apart:
            await self._keep_at_once(run_id, texts)
            return
        for text in texts:
            await self._keep_at_once(run_id, [text])

    async def _ask(self, messages: list[Message]) -> AssistantMessage:
        request = ModelRequest(
            model="any", system=SYSTEM, messages=tuple(messages), tools=self._tools
        )
        texts: list[str] = []
        calls: list[AskedCall] = []
        async for event in self._model.stream(request):
            match event:
                case TextDelta():
                    texts.append(event.text)
                case CallDelta():
                    call_id = f"call_{uuid4().hex[:26]}"
                    name, arguments = event.name or "", event.arguments
                    calls.append(AskedCall(call_id=call_id, name=name, arguments=arguments))
                case UsageReport() | Finish():
                    pass
                case _:
                    raise ValueError(event)
        return AssistantMessage(parts=(TextPart(text="".join(texts)),), calls=tuple(calls))


def _completed(said: AssistantMessage) -> str:
    text = "".join(part.text for part in said.parts if isinstance(part, TextPart))
    calls = [(call.call_id, call.name, call.arguments) for call in said.calls]
    return _record("model.completed", text=text, calls=calls)


def _record(kind: str, **fields: object) -> str:
    """Return a record as JSON: an id, a time, and what happened."""
    at = datetime.now(UTC).isoformat()
    return json.dumps({"id": uuid4().hex, "at": at, "type": kind, **fields})
