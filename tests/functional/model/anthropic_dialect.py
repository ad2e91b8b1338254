"""The Messages format, as its published description says that it is streamed."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.testing.model_contract import FEATURES, Kind, Message, Refusal, Sse
from psych_schema.common import Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)

__all__ = ["AnthropicDialect"]

_ERRORS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_REASONS: Final[Mapping[FinishReason, str]] = {
    "content_filter": "refusal",
    "length": "max_tokens",
    "other": "something_new",
    "stop": "end_turn",
    "tool_calls": "tool_use",
}
_COUNTERS: Final[Mapping[str, str]] = {
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
}
_TOO_LONG: Final = "prompt is too long: 208310 tokens > 200000 maximum"
_RATE: Final = (
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute. "
    "Please reduce the prompt length or the maximum tokens requested, or try again later."
)


class AnthropicDialect:
    """Blocks that are opened, told in deltas and closed; usage at the start and in its deltas."""

    def __init__(self) -> None:
        self.wire = Sse()
        self.features = frozenset(FEATURES) - {"interleaved_calls"}
        self.counters = frozenset({*_COUNTERS, "reasoning_tokens"})
        self.finish_reasons: Collection[FinishReason] = tuple(_REASONS)

    def answer(self, said: Sequence[ModelEvent]) -> Sequence[Sequence[Message]]:
        """Return the events of each; usage that comes first is in `message_start`."""
        writer = _Writer()
        return [list(writer.write(event)) for event in said]

    def end(self) -> Sequence[Message]:
        """Return `message_stop`."""
        return (_message("message_stop"),)

    def idle_talk(self) -> Sequence[Message]:
        """Return a ping, an event that nobody knows, and deltas without anything new."""
        return (
            _message("ping"),
            _message("something_new", delta={"type": "text_delta", "text": "no"}),
            _message("message_delta", delta={"stop_reason": None, "stop_sequence": None}),
        )

    def failures(self, kind: Kind, words: str) -> Sequence[Message]:
        """Return an error under its name, and without it."""
        name = "overloaded_error" if kind == "transient" else "invalid_request_error"
        data = json.dumps(_error(name, words))
        return (Message(data, "error"), Message(data))

    def refusal(self, status: int, words: str) -> Refusal:
        """Return the error object that is published for `status`."""
        return _refusal(status, words)

    def overflows(self) -> Mapping[str, Refusal | Message]:
        """Return what it says of a request that is too long, in tokens and in bytes."""
        limit = (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, "
            "decrease input length or `max_tokens` and try again"
        )
        return {
            "anthropic": _refusal(400, _TOO_LONG),
            "anthropic, with max_tokens": _refusal(400, limit),
            "anthropic, bytes": _refusal(413, "Request exceeds the maximum size"),
            "anthropic, in the stream": _event("invalid_request_error", _TOO_LONG),
        }

    def near_overflows(self) -> Mapping[str, tuple[Refusal | Message, Kind]]:
        """Return rates and bounds that speak of tokens."""
        largest = "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"
        return {
            "input tokens per minute": (_refusal(429, _RATE), "transient"),
            "a rate in the stream": (_event("rate_limit_error", _RATE), "transient"),
            "too large an output": (_refusal(400, largest), "permanent"),
            "no credit": (_event("billing_error", "Your credit is too low."), "permanent"),
        }


class _Writer:
    """Knows which block of one answer is open."""

    def __init__(self) -> None:
        self._started = False
        self._index = -1
        self._open: object = None

    def write(self, event: ModelEvent) -> Iterator[Message]:
        if not self._started:
            self._started = True
            first = isinstance(event, UsageReport)
            yield _start(_counted(event.usage) if isinstance(event, UsageReport) else None)
            if first:
                return
        match event:
            case TextDelta():
                yield from self._block("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": event.text})
            case ReasoningDelta():
                block: JsonValue = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._block("thinking", block)
                yield self._delta({"type": "thinking_delta", "thinking": event.text})
            case CallDelta():
                yield from self._call(event)
            case UsageReport():
                delta: JsonValue = {"stop_reason": None, "stop_sequence": None}
                yield _message("message_delta", delta=delta, usage=_counted(event.usage))
            case Finish():
                yield from self._close()
                reason: JsonValue = {"stop_reason": _REASONS[event.reason], "stop_sequence": None}
                yield _message("message_delta", delta=reason)

    def _call(self, event: CallDelta) -> Iterator[Message]:
        block: dict[str, JsonValue] = {"type": "tool_use", "name": event.name, "input": {}}
        if event.provider_id is not None:
            block["id"] = event.provider_id
        yield from self._block(("tool_use", event.index), block)
        if event.arguments:
            yield self._delta({"type": "input_json_delta", "partial_json": event.arguments})

    def _block(self, kind: object, block: JsonValue) -> Iterator[Message]:
        if self._open != kind:
            yield from self._close()
            self._index += 1
            self._open = kind
            yield _message("content_block_start", index=self._index, content_block=block)

    def _close(self) -> Iterator[Message]:
        if self._open is not None:
            self._open = None
            yield _message("content_block_stop", index=self._index)

    def _delta(self, delta: JsonValue) -> Message:
        return _message("content_block_delta", index=self._index, delta=delta)


def _start(usage: JsonValue) -> Message:
    message: dict[str, JsonValue] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-2026-11-30",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    return _message("message_start", message=message | ({"usage": usage} if usage else {}))


def _message(kind: str, **more: JsonValue) -> Message:
    data = json.dumps({"type": kind, **more}, ensure_ascii=False, separators=(",", ":"))
    return Message(data, kind)


def _counted(usage: Usage) -> JsonValue:
    counted: dict[str, JsonValue] = {
        word: getattr(usage, name)
        for name, word in _COUNTERS.items()
        if getattr(usage, name) is not None
    }
    if usage.reasoning_tokens is not None:
        counted["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counted


def _error(name: str, words: str) -> dict[str, JsonValue]:
    return {"type": "error", "error": {"type": name, "message": words}, "request_id": "req_1"}


def _event(name: str, words: str) -> Message:
    return Message(json.dumps(_error(name, words)), "error")


def _refusal(status: int, words: str) -> Refusal:
    error = _error(_ERRORS.get(status, "api_error"), words)
    return Refusal(status, json.dumps(error, ensure_ascii=False).encode())
