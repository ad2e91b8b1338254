"""Writes a ModelRequest in the chat/completions format; the same request is the same bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

from psych_runtime.core.model_fields import unsendable
from psych_runtime.errors import UnsendableRequest
from psych_runtime.model._chat import chat_messages
from psych_runtime.model._history import compact
from psych_runtime.ports.model import ModelField, Takes
from psych_schema.model import ModelRequest, OutputFormat
from psych_schema.spec import ToolChoice

__all__ = ["FIELDS", "OWN", "Dialect", "ReasoningField", "encode"]

type ReasoningField = Literal["reasoning", "reasoning_content"]

FIELDS: Final[frozenset[ModelField]] = frozenset(
    {
        "extras",
        "max_output_tokens",
        "output",
        "parallel_tool_calls",
        "seed",
        "stop_sequences",
        "temperature",
        "tool_choice",
        "top_p",
    }
)
"""All but `cache`: servers of this format cache by themselves, and it has no word for it."""

OWN: Final = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",  # only the first of several choices is read
        "parallel_tool_calls",
        "response_format",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    }
)
"""What no extras may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """In what the servers differ."""

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"]
    streaming: bool
    include_usage: bool
    reasoning_field: ReasoningField | None = None
    fields: frozenset[ModelField] = FIELDS


def encode(request: ModelRequest, dialect: Dialect) -> bytes:
    """Return the body. UnsendableRequest: something that this format, or this server, has not."""
    refused = unsendable(request, Takes(dialect.fields, OWN), client="OpenAIClient")
    if refused is not None:
        raise UnsendableRequest(refused)
    messages = list(chat_messages(request, dialect.reasoning_field))
    body: dict[str, JsonValue] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = [
            _function(tool.name, tool.description, tool.parameters) for tool in request.tools
        ]
        if request.tool_choice is not None:
            body["tool_choice"] = _choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop_sequences:
        body["stop"] = list(request.stop_sequences)
    if request.max_output_tokens is not None:
        body[dialect.max_tokens_field] = request.max_output_tokens
    if request.output is not None:
        body["response_format"] = _format(request.output)
    body["stream"] = dialect.streaming
    if dialect.streaming and dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
    return compact(body | dict(request.extras)).encode()


def _choice(choice: ToolChoice) -> JsonValue:
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.tool}}
    return choice.mode


def _format(output: OutputFormat) -> JsonValue:
    schema: JsonValue = {
        "name": output.name,
        "schema": dict(output.json_schema),
        "strict": output.strict,
    }
    return {"type": "json_schema", "json_schema": schema}


def _function(name: str, description: str, parameters: Mapping[str, JsonValue]) -> JsonValue:
    function: JsonValue = {
        "name": name,
        "description": description,
        "parameters": dict(parameters),
    }
    return {"type": "function", "function": function}
