"""What tests of large results share: models that read what they were shown, tools, Specs."""

import re
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.egress import EgressRules, Permit
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.model import ModelClient, Takes
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing import FakeModel
from psych_runtime.testing.fake_model import EVERYTHING, ScriptedCall
from psych_runtime.tools.policy import AllowAll
from psych_schema.model import AssistantMessage, BlobPart, ModelEvent, ModelRequest, ToolMessage
from psych_schema.spec import AgentSpec, CodeTool, HttpTool, Limits, ModelRef, ResultRules
from tests.functional.engine.behaviour.talk import Tool
from tests.functional.engine.harness import registry, texts_of

__all__ = [
    "CAT",
    "Reader",
    "Turn",
    "attached",
    "content_of",
    "desk",
    "http_get",
    "last_answers",
    "made",
    "names_in",
    "read",
    "reading",
    "search",
    "searching",
]

CAT: Final = b"\x89PNG\r\n\x1a\n\x00\xff" * 100
"""Bytes that are no text."""

type Turn = Callable[[ModelRequest], str | Sequence[ScriptedCall]]
"""What a model says to a request: a text, or calls."""

_NAME: Final = re.compile(r'result="([^"]+)"')


class Reader:
    """A ModelClient whose calls are made of what it was shown; turns as a FakeModel has them."""

    def __init__(self, *turns: Turn | str | Sequence[ScriptedCall]) -> None:
        self.requests: list[ModelRequest] = []
        self.stalls_at: int | None = None  # from this turn on it never answers
        self._turns = turns

    def models(self) -> frozenset[str] | None:
        """Return that every name will do."""
        return None

    def takes(self) -> Takes:
        """Return everything."""
        return EVERYTHING

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Say what the turn makes of the request."""
        self.requests.append(request)
        place = sum(isinstance(one, AssistantMessage) for one in request.messages)
        turn = self._turns[place]
        said = turn(request) if callable(turn) else turn
        model = FakeModel()
        for _ in range(place):
            model.turn(text="said before")
        delay = 60.0 if self.stalls_at is not None and place >= self.stalls_at else 0.0
        if isinstance(said, str):
            model.turn(text=said, chunk_delay_seconds=delay)
        else:
            model.turn(tool_calls=said, chunk_delay_seconds=delay)
        return model.stream(request)


def names_in(request: ModelRequest) -> list[str]:
    """Return the names of what is left out of a conversation, each once, in order."""
    found = [name for text in texts_of(request.messages) for name in _NAME.findall(text)]
    return [*dict.fromkeys(found)]


type _Call = tuple[str, Mapping[str, JsonValue]]


def reading(result: str, start: int = 0, size: int | None = None) -> _Call:
    """Return a call that reads a range."""
    if size is None:
        return "read_result", {"result": result, "start": start}
    return "read_result", {"result": result, "start": start, "size": size}


def searching(result: str, pattern: str, start: int = 0) -> _Call:
    """Return a call that looks for a pattern."""
    return "search_result", {"result": result, "pattern": pattern, "start": start}


def read(start: int = 0, size: int | None = None, *, place: int = -1) -> Turn:
    """Return a turn that reads a range of one of the results."""
    return lambda request: [reading(names_in(request)[place], start, size)]


def search(pattern: str, start: int = 0, *, place: int = -1) -> Turn:
    """Return a turn that looks for a pattern in one of the results."""
    return lambda request: [searching(names_in(request)[place], pattern, start)]


def last_answers(request: ModelRequest) -> list[str]:
    """Return the texts of the tool messages that a request ends with."""
    found: list[str] = []
    for message in reversed(request.messages):
        if not isinstance(message, ToolMessage):
            break
        found += texts_of((message,))
    return found[::-1]


def attached(request: ModelRequest) -> list[bytes]:
    """Return the bytes of the blobs in the last tool message, in their order."""
    parts = request.messages[-1].parts
    refs = [one.blob for one in parts if isinstance(one, BlobPart)]
    return [b64decode(request.attachments[one.hash]) for one in refs]


def desk(*tools: str | HttpTool, shown_bytes: int | None = 2048, **limits: JsonValue) -> AgentSpec:
    """Return an agent that is shown so much of each result."""
    return AgentSpec(
        name="desk",
        instructions="Read.",
        model=ModelRef(model="fake"),
        tools=tuple(CodeTool(name=one) if isinstance(one, str) else one for one in tools),
        results=ResultRules(shown_bytes=shown_bytes),
        limits=Limits.model_validate({"max_tool_calls_per_turn": 64, **limits}),
    )


def made(
    store: Store,
    model: ModelClient,
    *functions: Tool,
    blob: BlobStore | None,
    offload_bytes: int = 256 * 1024,
    policy: Policy | None = None,
) -> Runtime:
    """Return a Runtime that may call services on loopback."""
    return Runtime(
        store=store,
        model=model,
        registry=registry(*functions),
        policy=AllowAll() if policy is None else policy,
        blob=blob,
        offload_bytes=offload_bytes,
        egress=EgressRules(Permit(hosts=["127.0.0.1"])),
    )


def http_get(name: str, url: str) -> HttpTool:
    """Return a tool that gets something, of up to 4 MiB."""
    return HttpTool(
        name=name,
        description="Get something.",
        method="GET",
        url=url,
        input_schema={"type": "object", "properties": {}},
        max_response_bytes=4 * 1024 * 1024,
    )


def content_of(answer: str) -> str:
    """Return what read_result gave, without the line that says what it is."""
    said, _, text = answer.partition("\n")
    assert said.startswith("[Bytes ")
    return text
