"""What a request asks for is sent, or refused before anything is (MOD-8, MOD-9)."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from psych_runtime.core.model_fields import FIELDS, takes_of
from psych_runtime.errors import UnsendableRequest
from psych_runtime.ports.model import DeclaringClient, ModelClient, ModelField, Takes
from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._scene import ask, hello, is_whole, request, scene, stream
from psych_runtime.testing.model_contract._server import Script, Server
from psych_schema.common import BlobRef
from psych_schema.model import (
    AssistantMessage,
    BlobPart,
    ModelRequest,
    OutputFormat,
    ReasoningPart,
    TextPart,
    ToolDefinition,
    UserMessage,
)
from psych_schema.spec import ToolChoice

__all__ = [
    "a_blob_without_its_bytes_is_refused_unsent",
    "a_field_that_is_not_taken_is_refused_unsent",
    "an_image_is_sent_or_refused",
    "another_models_thoughts_are_not_sent",
    "each_field_that_is_taken_is_sent",
    "extras_are_sent",
    "extras_set_nothing_that_the_client_writes",
    "the_same_request_is_the_same_bytes",
    "what_is_taken_is_said",
]

_IMAGE: Final = b"\x89PNG\r\n\x1a\n kit image"
_TEXT: Final = b64encode(_IMAGE).decode()
_REF: Final = BlobRef(hash=sha256(_IMAGE).hexdigest(), bytes=len(_IMAGE), media_type="image/png")
_TOOL: Final = ToolDefinition(name="add", description="Add.", parameters={"type": "object"})
_ASKED: Final[Mapping[ModelField, object]] = {
    "cache": "conversation",
    "extras": {"x_kit": {"deep": ["kit-value"]}},
    "max_output_tokens": 7,
    "output": OutputFormat(name="answer", json_schema={"type": "object"}),
    "parallel_tool_calls": False,
    "seed": 3,
    "stop_sequences": ("KIT-END",),
    "temperature": 0.5,
    "tool_choice": ToolChoice(mode="required"),
    "top_p": 0.25,
}


def _with(**fields: object) -> ModelRequest:
    """Return a request that has a tool, and these fields."""
    return request().model_copy(update={"tools": (_TOOL,), **fields})


def _hello(harness: Harness) -> Script:
    return stream(harness.dialect, *hello(harness.dialect))


async def _body(server: Server, client: ModelClient, asked: ModelRequest) -> bytes:
    """Return the body that a request is sent as; it must be answered."""
    is_whole(await ask(client, asked=asked), "a call that asks for more")
    return server.requests[-1].partition(b"\r\n\r\n")[2]


async def _is_refused(server: Server, client: ModelClient, asked: ModelRequest, what: str) -> None:
    """Raise AssertionError unless it fails as UnsendableRequest and nothing has been sent."""
    before = len(server.requests)
    found = await ask(client, asked=asked)
    same(len(server.requests) - before, 0, f"requests that were sent with {what}")
    found.failed(UnsendableRequest, what)


@check("MOD-9", "PUB-1")
async def what_is_taken_is_said(harness: Harness) -> None:
    """At once, without a connection, with one answer; in names that the port has."""
    async with scene(harness, _hello(harness)) as (server, client):
        told: object = takes_of(client)
        same(isinstance(told, Takes), True, f"that {told!r} is a Takes")
        same(takes_of(client), told, "what is taken when asked again")
        unknown = takes_of(client).fields - frozenset(FIELDS)
        same(unknown, frozenset(), "fields that the port has not")
        same(server.requests, [], "requests to learn what is taken")


@check("MOD-9")
async def each_field_that_is_taken_is_sent(harness: Harness) -> None:
    """It makes another request of it."""
    async with scene(harness, _hello(harness)) as (server, client):
        plain = await _body(server, client, _with())
        for field in sorted(takes_of(client).fields):
            asked = await _body(server, client, _with(**{field: _ASKED[field]}))
            same(asked != plain, True, f"that {field} makes another request")


@check("MOD-9")
async def a_field_that_is_not_taken_is_refused_unsent(harness: Harness) -> None:
    """By a client that says what it takes; of any other the runtime does it."""
    async with scene(harness, _hello(harness)) as (server, client):
        if isinstance(client, DeclaringClient):
            for field in sorted(frozenset(FIELDS) - client.takes().fields):
                await _is_refused(server, client, _with(**{field: _ASKED[field]}), field)


@check("MOD-9")
async def extras_are_sent(harness: Harness) -> None:
    """Name and value, however deep."""
    async with scene(harness, _hello(harness)) as (server, client):
        if "extras" in takes_of(client).fields:
            body = await _body(server, client, _with(extras=_ASKED["extras"]))
            same((b"x_kit" in body, b"kit-value" in body), (True, True), "extras in the body")


@check("MOD-9")
async def extras_set_nothing_that_the_client_writes(harness: Harness) -> None:
    """Whether or not this request has it."""
    async with scene(harness, _hello(harness)) as (server, client):
        takes = takes_of(client)
        for name in sorted(takes.own if "extras" in takes.fields else ()):
            await _is_refused(server, client, _with(extras={name: "x"}), f"extras of {name}")


@check("MOD-9")
async def an_image_is_sent_or_refused(harness: Harness) -> None:
    """Its bytes are in the request; a client for words alone sends nothing."""
    message = UserMessage(parts=(TextPart(text="See:"), BlobPart(blob=_REF)))
    asked = _with(messages=(message,), attachments={_REF.hash: _TEXT})
    async with scene(harness, _hello(harness)) as (server, client):
        found = await ask(client, asked=asked)
        if isinstance(found.failure, UnsendableRequest):
            same(server.requests, [], "requests with an image that was refused")
            return
        is_whole(found, "a call with an image")
        same(_TEXT.encode() in server.requests[-1], True, "that the image is in the request")


@check("MOD-9")
async def a_blob_without_its_bytes_is_refused_unsent(harness: Harness) -> None:
    """What the model is to see is not left out in silence."""
    asked = _with(messages=(UserMessage(parts=(BlobPart(blob=_REF),)),))
    async with scene(harness, _hello(harness)) as (server, client):
        await _is_refused(server, client, asked, "a blob without its bytes")


@check("MOD-9")
async def another_models_thoughts_are_not_sent(harness: Harness) -> None:
    """Providers refuse a signature that is not theirs."""
    thought = ReasoningPart(text="kit-thought", signature="kit-signature", by="another")
    said = AssistantMessage(parts=(thought, TextPart(text="So.")))
    more = UserMessage(parts=(TextPart(text="And?"),))
    asked = _with(messages=(*request().messages, said, more), ref="this")
    async with scene(harness, _hello(harness)) as (server, client):
        body = await _body(server, client, asked)
        seen = [word for word in (b"kit-thought", b"kit-signature") if word in body]
        same(seen, [], "of another model's thoughts in the request")


@check("MOD-8")
async def the_same_request_is_the_same_bytes(harness: Harness) -> None:
    """No clock and no count: else no provider could keep a prompt."""
    async with scene(harness, _hello(harness)) as (server, client):
        taken = {field: _ASKED[field] for field in sorted(takes_of(client).fields)}
        first = await _body(server, client, _with(**taken))
        same(await _body(server, client, _with(**taken)), first, "the same request, sent again")
