"""A service on loopback whose answers a test writes byte by byte, and calls of a tool to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

import psych_runtime
from psych_runtime import AllowAll, MappingSecrets
from psych_runtime.egress import EgressRules, Permit
from psych_runtime.testing import FakeModel
from psych_schema.model import JsonPart, TextPart
from psych_schema.record import Record, ToolCompleted, ToolRefused, ToolStarted

__all__ = [
    "Answer",
    "Asked",
    "Called",
    "Service",
    "agent",
    "answer",
    "call",
    "json_answer",
    "service",
    "serving",
]


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


type Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Service:
    """What was asked, and what is still to be answered; past the last, it is repeated."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close."""
        try:
            self.asked.append(await _read(reader))
            made = self.answer_to(self.asked[-1])
            if isinstance(made, bytes):
                writer.write(made)
                await writer.drain()
            else:
                await made(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def answer_to(self, _: Asked) -> Answer:
        """Return the answer to a request."""
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    method, target, _ = first.split(" ")
    return Asked(
        method, target, headers, await reader.readexactly(int(headers.get("content-length", "0")))
    )


@asynccontextmanager
async def service(*answers: Answer) -> AsyncIterator[Service]:
    """Serve on a free port of loopback."""
    async with serving(Service(answers=list(answers))) as made:
        yield made


@asynccontextmanager
async def serving[S: Service](made: S) -> AsyncIterator[S]:
    """Let a service answer in its own way, on a free port of loopback."""
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=1 << 22)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """Return an answer; `content_type` is the header of that name."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Words of its own", *(f"{k}: {v}" for k, v in fields.items())]
    lines += [f"content-length: {len(body)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + body


def json_answer(value: JsonValue, status: int = 200, **headers: str) -> bytes:
    """Return an answer in JSON."""
    return answer(status, json.dumps(value).encode(), content_type="application/json", **headers)


class Called(NamedTuple):
    """What a Run's log says of its one call."""

    records: list[Record]
    ended: ToolCompleted | ToolRefused

    @property
    def completed(self) -> ToolCompleted:
        """Its end, when it was started."""
        assert isinstance(self.ended, ToolCompleted)
        return self.ended

    @property
    def value(self) -> JsonValue:
        """What it brought."""
        assert self.completed.outcome == "ok", self.message
        assert self.completed.result is not None
        (part,) = self.completed.result.parts
        assert isinstance(part, JsonPart | TextPart)
        return part.value if isinstance(part, JsonPart) else part.text

    @property
    def code(self) -> str:
        """Why it failed."""
        if isinstance(self.ended, ToolRefused):
            return self.ended.code
        assert self.ended.failure is not None
        return self.ended.failure.code

    @property
    def message(self) -> str:
        """What the model is told."""
        if isinstance(self.ended, ToolRefused):
            return self.ended.message or ""
        return (self.ended.result and self.ended.result.message) or ""

    @property
    def call_id(self) -> str:
        """The call's id, as its start has it."""
        (started,) = (one for one in self.records if isinstance(one, ToolStarted))
        return started.call_id


def agent(service_url: str, **fields: JsonValue) -> dict[str, object]:
    """Return a Spec with one tool, `ask`, of a service."""
    tool: dict[str, object] = {
        "kind": "http",
        "name": "ask",
        "description": "Ask the service.",
        "method": "GET",
        "url": f"{service_url}/things",
        "input_schema": {"type": "object", "additionalProperties": True},
    }
    return {
        "kind": "agent",
        "name": "helper",
        "instructions": "Help.",
        "model": {"model": "fake"},
        "tools": [tool | fields],
    }


async def call(
    there: Service,
    arguments: Mapping[str, JsonValue] | None = None,
    *,
    secrets: Mapping[str, str] | None = None,
    permit: bool = True,
    store: str = "memory://",
    **fields: JsonValue,
) -> Called:
    """Call the tool once, in a Run of its own, and return what its log says."""
    if "path" in fields:
        fields["url"] = f"{there.url}{fields.pop('path')}"
    model = FakeModel().turn(tool_calls=[("ask", dict(arguments or {}))]).turn(text="Done.")
    rules = EgressRules(Permit(hosts=["127.0.0.1"])) if permit else EgressRules()
    async with psych_runtime.session(
        model, store=store, policy=AllowAll(), secrets=MappingSecrets(secrets or {}), egress=rules
    ) as session:
        version = await session.publish(agent(there.url, **fields))
        run = await session.start(version, "Go.")
        records = [record async for record in session.stream(run.run_id)]
    (ended,) = (one for one in records if isinstance(one, ToolCompleted | ToolRefused))
    return Called(records, ended)
