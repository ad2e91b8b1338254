"""Writes a ModelRequest in the Messages format; the same request is the same bytes (MOD-8)."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.model_fields import unsendable
from psych_runtime.errors import UnsendableRequest
from psych_runtime.model._anthropic_messages import Block, messages, system
from psych_runtime.model._history import compact
from psych_runtime.model._json import mend
from psych_runtime.ports.model import ModelField, Takes
from psych_schema.model import ModelRequest

__all__ = ["FIELDS", "OWN", "encode"]

FIELDS: Final[frozenset[ModelField]] = frozenset(
    {
        "cache",
        "extras",
        "max_output_tokens",
        "output",
        "parallel_tool_calls",
        "stop_sequences",
        "temperature",
        "tool_choice",
        "top_p",
    }
)
"""All but `seed`, for which this format has no word."""

OWN: Final = frozenset(
    {
        "max_tokens",
        "messages",
        "model",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    }
)
"""What no extras may set; `output_config` they may, but for its `format`."""

_MARK: Final[Mapping[str, JsonValue]] = {"type": "ephemeral"}
_MODES: Final = {"auto": "auto", "none": "none", "required": "any", "tool": "tool"}
_HOTTEST: Final = 1.0


def encode(request: ModelRequest, *, fields: frozenset[ModelField], max_tokens: int) -> bytes:
    """Return the body, the messages last: that of a longer conversation begins with the same.

    Args:
        fields: what of FIELDS the server has.
        max_tokens: the bound on output where the request has none; this format wants one.

    Raises:
        UnsendableRequest: something that this format, or this server, has not.
    """
    _check(request, fields)
    body: dict[str, JsonValue] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or max_tokens,
        "stream": True,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop_sequences:
        body["stop_sequences"] = list(request.stop_sequences)
    body |= _extras(request)
    tools = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
    instructions = system(request)
    turns = messages(request)
    if request.cache is not None:
        _mark(request, tools, instructions, [turn.content for turn in turns if turn.by_user])
    if tools:
        body["tools"] = [dict(tool) for tool in tools]
        if choice := _choice(request):
            body["tool_choice"] = choice
    if instructions:
        body["system"] = [dict(block) for block in instructions]
    body["messages"] = [turn.json() for turn in turns]
    return mend(compact(body)).encode()


def _check(request: ModelRequest, fields: frozenset[ModelField]) -> None:
    refused = unsendable(request, Takes(fields, OWN), client="AnthropicClient")
    if refused is not None:
        raise UnsendableRequest(refused)
    if (request.temperature or 0) > _HOTTEST:
        problem = f"temperature is {request.temperature:g}; this format takes 0 to {_HOTTEST:g}"
        raise UnsendableRequest(problem)
    if any(not sequence.strip() for sequence in request.stop_sequences):
        raise UnsendableRequest("a stop sequence is blank; this format takes none without words")


def _extras(request: ModelRequest) -> dict[str, JsonValue]:
    """Return the extras, and the format of the answer beside what they say of output."""
    extras = dict(request.extras)
    if request.output is None or not request.output.strict:
        return extras
    config = extras.get("output_config", {})
    if not isinstance(config, dict) or "format" in config:
        problem = "extras have an output_config with a format, which AnthropicClient writes itself"
        raise UnsendableRequest(f"{problem}; take it out, or the output of the Spec")
    schema: JsonValue = {"type": "json_schema", "schema": dict(request.output.json_schema)}
    return {**extras, "output_config": {**config, "format": schema}}


def _tool(name: str, description: str, parameters: Mapping[str, JsonValue]) -> Block:
    schema: JsonValue = {"type": "object", **parameters}  # the type is demanded
    return {"name": name, "description": description, "input_schema": schema}


def _choice(request: ModelRequest) -> dict[str, JsonValue]:
    """Return the choice of tools, empty where nothing is said of it."""
    asked = request.tool_choice
    choice: dict[str, JsonValue] = {}
    if asked is not None:
        choice["type"] = _MODES[asked.mode]
        if asked.mode == "tool":
            choice["name"] = asked.tool
    if request.parallel_tool_calls is not None and choice.get("type") != "none":
        choice.setdefault("type", "auto")
        choice["disable_parallel_tool_use"] = not request.parallel_tool_calls
    return choice


def _mark(
    request: ModelRequest, tools: list[Block], instructions: list[Block], asked: list[list[Block]]
) -> None:
    """Set the breakpoints: a request is kept up to each, in the order tools, system, messages.

    Of a conversation also the end before this one is marked, where the last request ended: the
    service looks back from a mark over a few blocks only.
    """
    ends = [instructions or tools]
    if request.cache == "conversation":
        ends += asked[-2:]
    for blocks in ends:
        if blocks:
            blocks[-1]["cache_control"] = dict(_MARK)
