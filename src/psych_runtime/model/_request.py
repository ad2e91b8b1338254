"""Writes a ModelRequest in the chat/completions format; the same request is the same bytes."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from psych_runtime.errors import ModelPermanent
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    JsonPart,
    Message,
    ModelRequest,
    Part,
    TextPart,
    ToolMessage,
)

__all__ = ["Dialect", "encode"]

_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """In what the servers differ."""

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"]
    streaming: bool
    include_usage: bool


def encode(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the body. ModelPermanent: a part that this format, or this client, cannot carry."""
    messages: list[JsonValue] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    messages += [_message(message, place) for place, message in enumerate(request.messages)]
    body: dict[str, JsonValue] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = [
            _function(tool.name, tool.description, tool.parameters) for tool in request.tools
        ]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        body[dialect.max_tokens_field] = request.max_output_tokens
    body["stream"] = dialect.streaming
    if dialect.streaming and dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
    return _compact(body).encode()


def _message(message: Message, place: int) -> JsonValue:
    text = _text(message.parts, place)
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if not isinstance(message, AssistantMessage):
        return {"role": "user", "content": text}
    if not message.calls:
        return {"role": "assistant", "content": text}
    calls = [_call(call) for call in message.calls]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _text(parts: Sequence[Part], place: int) -> str:
    """Return the parts as one text; reasoning is left out, this format has no place for it."""
    texts = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, JsonPart):
            texts.append(_compact(part.value, sort=True))
        elif isinstance(part, BlobPart):
            kind = part.blob.media_type
            raise ModelPermanent(
                f"message {place} has a blob part ({kind}); this client sends text and JSON only"
            )
    return "\n".join(texts)


def _call(call: AskedCall) -> JsonValue:
    """Return a call under our id, so that no server can refuse the whole history for it (D5).

    Servers parse the arguments of a history and check the names in it: arguments that could not
    be read go as `{}`, a name that no tool can have goes in characters that one could have.
    """
    readable = call.problem is None and call.arguments.strip()
    arguments = call.arguments if readable else "{}"
    name = _NO_NAME.sub("_", call.name)[:64] or "_"
    function: JsonValue = {"name": name, "arguments": arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _function(name: str, description: str, parameters: Mapping[str, JsonValue]) -> JsonValue:
    function: JsonValue = {
        "name": name,
        "description": description,
        "parameters": dict(parameters),
    }
    return {"type": "function", "function": function}


def _compact(value: JsonValue, *, sort: bool = False) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort
    )
