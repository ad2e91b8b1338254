"""A Run from its admission to its end, and its log in short."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_schema.model import AssistantMessage, Message, ToolMessage
from psych_schema.record import (
    ModelCompleted,
    ModelFailed,
    Record,
    RunSettled,
    ToolCompleted,
    ToolRefused,
)
from psych_schema.spec import AgentSpec
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    records_of,
    registry,
    run_to_end,
    runtime,
    texts_of,
)

type Tool = Callable[..., object]


class Told(NamedTuple):
    """What became of a Run."""

    run_id: str
    records: list[Record]

    @property
    def end(self) -> tuple[str, str | None]:
        """How it ended, and why."""
        last = self.records[-1]
        assert isinstance(last, RunSettled)
        return last.state, last.reason.code if last.reason else None

    @property
    def answer(self) -> object:
        """What it answered."""
        last = self.records[-1]
        assert isinstance(last, RunSettled)
        return last.output

    def every[R: Record](self, kind: type[R]) -> list[R]:
        """Return the records of one class."""
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def refusals(self) -> list[tuple[str, str]]:
        """Code and message of each call that was refused."""
        return [(one.code, one.message or "") for one in self.every(ToolRefused)]

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Outcome, failure code and words of each call that was started."""
        return [
            (one.outcome, one.failure.code if one.failure else "", said(one))
            for one in self.every(ToolCompleted)
        ]


def said(record: ToolCompleted) -> str:
    """Return what a call's result says, JSON as text."""
    result = record.result
    if result is None:
        return ""
    return result.message or "".join(
        part.text if part.kind == "text" else json.dumps(getattr(part, "value", None))
        for part in result.parts
    )


async def talk(
    store: Store,
    crew: Crew,
    model: ModelClient,
    *functions: Tool,
    spec: AgentSpec | None = None,
    policy: Policy | None = None,
    **options: Any,
) -> Told:
    """Start a worker, admit a Run that may call `functions`, and wait for its end."""
    await crew.start(runtime(store, model, *functions, policy=policy))
    made = agent(*sorted(registry(*functions).names())) if spec is None else spec
    return await told(store, await admit(store, made, **options))


async def knows(worker: Worker, run_id: str, head: int) -> None:
    """Wait until a worker has read a Run's log up to `head`."""

    def read() -> bool:
        attempt = worker.holdings().get(run_id)
        return attempt is not None and attempt.state.position.seq >= head

    await eventually(read)


async def told(store: Store, run_id: str, *, tenant: str = ACME.tenant) -> Told:
    """Wait for a Run's end and return what became of it."""
    await run_to_end(store, run_id, tenant=tenant)
    return Told(run_id, await records_of(store, run_id, tenant=tenant))


def outcomes(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return type and outcome of each record."""
    return [(record.type, _outcome(record)) for record in records]


def _outcome(record: Record) -> str:
    match record:
        case ModelCompleted():
            return record.finish
        case ModelFailed():
            return record.failure.code
        case ToolCompleted():
            return record.outcome
        case ToolRefused():
            return record.code
        case RunSettled():
            return record.state
        case _:
            return ""


def answers(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return the call id and the words of each tool message."""
    texts = texts_of(messages)
    return [
        (message.call_id, text)
        for message, text in zip(messages, texts, strict=True)
        if isinstance(message, ToolMessage)
    ]


def asked_ids(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the calls that the model asked for."""
    return [
        call.call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
    ]
