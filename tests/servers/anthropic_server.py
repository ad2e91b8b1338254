"""A loopback server for the Messages format, written from its published description.

It says what a test scripts, and holds every request against the rules that the format publishes:
a request that the service would refuse fails the test.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from tests.servers.openai_server import OpenAIServer, Reply, Seen, answer

__all__ = [
    "AnthropicServer",
    "block",
    "complaint",
    "delta",
    "error",
    "events",
    "message_delta",
    "start",
    "stop",
    "text",
    "whole",
]

_MEMBERS = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MARKS = 4
_THOUGHTS = ("thinking", "redacted_thinking")

type Json = dict[str, JsonValue]


class AnthropicServer(OpenAIServer):
    """Plays replies, see OpenAIServer; `complaints` says what was wrong with the requests."""

    @property
    def complaints(self) -> list[str]:
        """What the service would have answered with 400."""
        return [found for seen in self.seen if (found := _refused(seen))]

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__(*_)
        assert self.complaints == []


def events(*values: Json, named: bool = True) -> bytes:
    """Return one event for each value, under its type unless it has no name."""
    lines = []
    for value in values:
        name = f"event: {value['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(value)}\n\n")
    return "".join(lines).encode()


def start(**usage: JsonValue) -> Json:
    """Return the event that opens a message."""
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "served-model",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return {"type": "message_start", "message": message}


def block(index: int, kind: str, **more: JsonValue) -> Json:
    """Return the event that opens a block."""
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **more},
    }


def delta(index: int, kind: str, **more: JsonValue) -> Json:
    """Return the event that adds to a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def stop(index: int) -> Json:
    """Return the event that closes a block."""
    return {"type": "content_block_stop", "index": index}


def text(index: int, *pieces: str) -> list[Json]:
    """Return a whole block of text."""
    told = [delta(index, "text_delta", text=piece) for piece in pieces]
    return [block(index, "text", text=""), *told, stop(index)]


def message_delta(reason: str | None = "end_turn", **usage: JsonValue) -> Json:
    """Return the event with the reason to stop and the totals so far."""
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": usage,
    }


def whole(*values: Json, reason: str = "end_turn") -> Reply:
    """Answer with a stream that has a beginning and an end."""
    begin, end = start(input_tokens=3, output_tokens=1), message_delta(reason, output_tokens=7)
    return answer(events(begin, *values, end, {"type": "message_stop"}))


def error(
    status: int, kind: str, message: str, *, headers: Mapping[str, str] | None = None
) -> Reply:
    """Refuse with the published error object."""
    value = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return answer(
        json.dumps(value).encode(),
        status=status,
        headers=headers,
        content_type="application/json",
        framing="length",
    )


def complaint(body: Json) -> str | None:
    """Return the first published rule that the body of a request breaks."""
    return next(_complaints(body), None)


def _refused(seen: Seen) -> str | None:
    if (seen.method, seen.path) != ("POST", "/v1/messages"):
        return f"{seen.method} {seen.path}: not found"
    if "anthropic-version" not in seen.headers:
        return "anthropic-version: header is required"
    return complaint(seen.json)


def _complaints(body: Json) -> Iterator[str]:
    yield from (
        f"{name}: extra inputs are not permitted" for name in sorted(body.keys() - _MEMBERS)
    )
    bound, heat = body.get("max_tokens"), body.get("temperature", 0)
    if not isinstance(bound, int) or bound < 1:
        yield "max_tokens: a number from 1 is required"
    if not isinstance(heat, int | float) or not 0 <= heat <= 1:
        yield "temperature: range 0 to 1"
    if body.get("tool_choice") and not body.get("tools"):
        yield "tool_choice: may only be specified with tools"
    if any(not str(sequence).strip() for sequence in _list(body, "stop_sequences")):
        yield "stop_sequences: each must contain non-whitespace"
    blocks = [*_blocks(body, "tools"), *_blocks(body, "system")]
    for message in _blocks(body, "messages"):
        blocks += _blocks(message, "content")
    if sum("cache_control" in found for found in blocks) > _MARKS:
        yield f"cache_control: at most {_MARKS} blocks"
    yield from (broken for found in blocks if (broken := _broken(found)))
    yield from _turns(_blocks(body, "messages"))


def _broken(found: Json) -> str | None:
    """Return what is wrong with one block, wherever it is."""
    kind = found.get("type")
    if kind == "text" and not str(found["text"]).strip():
        return "text content blocks must contain non-whitespace text"
    if kind in _THOUGHTS and "cache_control" in found:
        return "thinking blocks cannot have cache_control"
    if kind == "thinking" and not found.get("signature"):
        return "thinking: signature is required"
    if kind == "tool_use" and not isinstance(found["input"], dict):
        return "tool_use: input should be an object"
    if kind == "tool_use" and not all(_NAME.fullmatch(str(found[key])) for key in ("id", "name")):
        return "tool_use: id and name should match the pattern"
    if kind == "tool_result":
        content = _blocks(found, "content")
        if found.get("is_error") and any(inner["type"] != "text" for inner in content):
            return "tool_result: all content must be text if is_error is true"
        return next((broken for inner in content if (broken := _broken(inner))), None)
    return None


def _turns(messages: Sequence[Json]) -> Iterator[str]:
    """Yield what is wrong with the order of roles, calls and results."""
    if not messages:
        yield "messages: at least one message is required"
    waiting: list[JsonValue] = []
    for place, message in enumerate(messages):
        content = _blocks(message, "content")
        if message["role"] != ("user", "assistant")[place % 2]:
            yield f"messages.{place}: roles must alternate, beginning with the user's"
        if not content:
            yield f"messages.{place}: content must not be empty"
        elif message["role"] == "assistant" and content[-1]["type"] in _THOUGHTS:
            yield f"messages.{place}: the final block cannot be thinking"
        results = [found["tool_use_id"] for found in content if found["type"] == "tool_result"]
        first = [
            found["tool_use_id"] for found in content[: len(results)] if "tool_use_id" in found
        ]
        if sorted(map(str, first)) != sorted(map(str, waiting)) or len(first) != len(results):
            yield f"messages.{place}: each tool_use needs one tool_result, at once"
        waiting = [found["id"] for found in content if found["type"] == "tool_use"]
    if waiting:
        yield "messages: tool_use without tool_result"


def _list(value: Json, key: str) -> list[JsonValue]:
    found = value.get(key, [])
    assert isinstance(found, list), f"{key}: not an array"
    return found


def _blocks(value: Json, key: str) -> list[Json]:
    found = _list(value, key)
    assert all(isinstance(item, dict) for item in found), f"{key}: not objects"
    return [item for item in found if isinstance(item, dict)]
