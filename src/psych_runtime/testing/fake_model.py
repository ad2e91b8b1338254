"""A model that says what a script tells it: the same for every Run, worker and process."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Self

from pydantic import JsonValue

from psych_runtime.core.model_fields import FIELDS
from psych_runtime.errors import ContextOverflow, ModelPermanent, ModelTransient
from psych_runtime.ports.model import Takes
from psych_runtime.testing._pairing import unpaired
from psych_runtime.testing._script import Script, Step, split_text
from psych_schema.common import Cost, Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)

__all__ = ["EVERYTHING", "FakeModel", "FakeRouter", "ScriptedCall"]

type ScriptedCall = (
    tuple[str, Mapping[str, JsonValue]] | tuple[str, Mapping[str, JsonValue], str | None]
)
"Name and arguments of a tool call; a third item is the provider's id, `call_0` ... by default."


EVERYTHING: Final = Takes(frozenset(FIELDS))
"""What a FakeModel takes unless it is told otherwise."""


class FakeModel:
    """A ModelClient that plays a script; each method adds one model call and returns self.

    What a request gets is told by its own conversation: with n assistant messages it gets
    turn n + 1, so one FakeModel serves any number of Runs, and a Run that another process takes
    over goes on where it was. Steps that fail (`raises_transient`, `raises_permanent`,
    `overflows`, `stalls`, `aborts_mid_token`) come before the turn that follows them, each once
    per conversation; that is remembered in this object only, so a new process meets each of them
    once more.
    Conversations that begin with equal messages count as one until their first tool call.

    Args:
        models: the names it knows; None is every name. Another name is ModelPermanent.
        strict: refuse a history in which a call has not exactly one answer, in order.
        takes: what it says that it sends on; None is every field.
    """

    def __init__(
        self,
        *,
        models: Iterable[str] | None = None,
        strict: bool = True,
        takes: Takes | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self._models = None if models is None else frozenset(models)
        self._strict = strict
        self._takes = EVERYTHING if takes is None else takes
        self._script = Script()

    def turn(
        self,
        text: str = "",
        tool_calls: Sequence[ScriptedCall] = (),
        *,
        usage: Usage | None = None,
        cost: Cost | None = None,
        reasoning: str = "",
        signature: str | None = None,
        finish: FinishReason | None = None,
        chunk_delay_seconds: float = 0.0,
    ) -> Self:
        """Say `text` in pieces split at spaces, and ask for `tool_calls`.

        Args:
            usage: what the provider reports; None is nothing.
            cost: what the provider says it cost; None is nothing.
            signature: closes the reasoning, as a provider does that wants it back.
            finish: None is `tool_calls` with calls, else `stop`.
            chunk_delay_seconds: time before each piece.
        """
        events = [*_reasoning(reasoning, signature), *_text(text)]
        for index, call in enumerate(tool_calls):
            provider_id = call[2] if len(call) == 3 else f"call_{index}"
            arguments = json.dumps(call[1], ensure_ascii=False, separators=(",", ":"))
            events += _call(index, provider_id, call[0], arguments)
        if usage is not None or cost is not None:
            events.append(UsageReport(usage=usage or Usage(), cost=cost))
        reason = finish or ("tool_calls" if tool_calls else "stop")
        return self._add(Step(tuple(events), delay_seconds=chunk_delay_seconds, finish=reason))

    def raw_call(
        self,
        name: str,
        text: str,
        *,
        provider_id: str | None = "call_0",
        usage: Usage | None = None,
    ) -> Self:
        """Ask for one call of `name` with `text` as its arguments, well-formed or not."""
        events = _call(0, provider_id, name, text)
        if usage is not None:
            events.append(UsageReport(usage=usage))
        return self._add(Step(tuple(events), finish="tool_calls"))

    def stalls(self, seconds: float | None = None, *, text: str = "") -> Self:
        """Say `text`, then nothing for `seconds`, then fail as a client does that gave up.

        It never waits longer than the request's `stream_idle_seconds`; None waits so long.
        """
        failure = partial(ModelTransient, "the model sent nothing more (scripted stall)")
        return self._add(
            Step(tuple(_text(text)), silent=True, silence_seconds=seconds, failure=failure)
        )

    def aborts_mid_token(self, text: str, *, usage: Usage | None = None) -> Self:
        """Say `text`, then break off without a finish: ModelTransient."""
        events = _text(text)
        if usage is not None:
            events.append(UsageReport(usage=usage))
        failure = partial(ModelTransient, "the stream ended before its finish (scripted)")
        return self._add(Step(tuple(events), failure=failure))

    def raises_transient(
        self, status: int = 503, *, retry_after_seconds: float | None = None, times: int = 1
    ) -> Self:
        """Fail `times` calls with ModelTransient before the first event."""
        failure = partial(
            ModelTransient,
            f"the model answered {status} (scripted)",
            status=status,
            retry_after_seconds=retry_after_seconds,
        )
        for _ in range(times):
            self._add(Step(failure=failure))
        return self

    def raises_permanent(self, status: int = 400) -> Self:
        """Fail one call with ModelPermanent before the first event."""
        message = f"the model answered {status} (scripted)"
        return self._add(Step(failure=partial(ModelPermanent, message, status=status)))

    def overflows(self) -> Self:
        """Fail one call with ContextOverflow before the first event."""
        message = "the conversation is too long (scripted)"
        return self._add(Step(failure=partial(ContextOverflow, message, status=400)))

    @staticmethod
    def route(clients: "Mapping[str, FakeModel]") -> "FakeRouter":
        """Return a client that gives each request to the FakeModel named by its `model`."""
        return FakeRouter(clients)

    def models(self) -> frozenset[str] | None:
        """Return the names given at construction, None when every name will do."""
        return self._models

    def takes(self) -> Takes:
        """Return what was given at construction, else everything."""
        return self._takes

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Play the step that belongs to the conversation of `request`.

        `requests` gets the request, `closed` counts streams that were closed or cancelled before
        their end. Raises what the step says; ModelPermanent when the script is over, for an
        unknown model, and in strict mode for an unpaired history.
        """
        self.requests.append(request)
        return self._play(request)

    async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        step = self._choose(request)
        try:
            for event in step.events:
                await asyncio.sleep(step.delay_seconds)
                yield event
            if step.silent:
                idle = request.stream_idle_seconds
                silence = step.silence_seconds
                await asyncio.sleep(idle if silence is None else min(silence, idle))
        except (GeneratorExit, asyncio.CancelledError):
            self.closed += 1
            raise
        if step.failure is not None:
            raise step.failure()
        yield Finish(reason=step.finish, served_by=request.model)

    def _choose(self, request: ModelRequest) -> Step:
        if self._models is not None and request.model not in self._models:
            known = ", ".join(sorted(self._models))
            raise ModelPermanent(f"no model {request.model!r}; known: {known}", status=404)
        problem = unpaired(request.messages) if self._strict else None
        if problem is not None:
            raise ModelPermanent(f"unpaired history: {problem}", status=400)
        step = self._script.step(request)
        if step is None:
            turns = self._script.turns
            raise ModelPermanent(f"the script is over: {turns} turns were scripted; add .turn(...)")
        return step

    def _add(self, step: Step) -> Self:
        self._script.add(step)
        return self


class FakeRouter:
    """A ModelClient over several FakeModels, chosen by the request's `model`."""

    def __init__(self, clients: Mapping[str, FakeModel]) -> None:
        self._clients = dict(clients)
        self._nobody = FakeModel(models=self._clients)

    @property
    def requests(self) -> list[ModelRequest]:
        """The requests that all of them have seen, grouped by client."""
        return [request for client in self._clients.values() for request in client.requests]

    @property
    def closed(self) -> int:
        """How many streams were closed before their end."""
        return sum(client.closed for client in self._clients.values())

    def models(self) -> frozenset[str]:
        """Return the names that have a FakeModel."""
        return frozenset(self._clients)

    def takes(self) -> Takes:
        """Return everything: a router sends on whatever comes."""
        return EVERYTHING

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Let the FakeModel of `request.model` answer. ModelPermanent: there is none."""
        return self._clients.get(request.model, self._nobody).stream(request)


def _text(text: str) -> list[ModelEvent]:
    return [TextDelta(text=piece) for piece in split_text(text)]


def _reasoning(text: str, signature: str | None) -> list[ModelEvent]:
    said: list[ModelEvent] = [ReasoningDelta(text=piece) for piece in split_text(text)]
    closed: list[ModelEvent] = [ReasoningDelta(text="", signature=signature)] if signature else []
    return said + closed


def _call(index: int, provider_id: str | None, name: str, arguments: str) -> list[ModelEvent]:
    half = len(arguments) // 2
    return [
        CallDelta(index=index, provider_id=provider_id, name=name, arguments=arguments[:half]),
        CallDelta(index=index, arguments=arguments[half:]),
    ]
