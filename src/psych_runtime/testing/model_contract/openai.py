"""The chat/completions format, as OpenAI and the servers that are compatible with it stream it."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.testing.model_contract import _openai_words as words_of
from psych_runtime.testing.model_contract.dialect import FEATURES, Kind, Refusal
from psych_runtime.testing.model_contract.wire import Message, Sse
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

__all__ = ["OpenAIDialect"]

_REFUSALS: Final[Mapping[int, tuple[str, str | None]]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", None),
    422: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
}
_REASONS: Final[Mapping[FinishReason, str]] = {
    "content_filter": "content_filter",
    "length": "length",
    "other": "something_new",
    "stop": "stop",
    "tool_calls": "tool_calls",
}


class OpenAIDialect:
    """Chunks in server-sent events, ended by `[DONE]`; usage in a chunk of its own.

    Args:
        without: features of FEATURES that this server, or this client, does not have.
        reasoning_field: the field of a delta in which reasoning comes.
    """

    def __init__(
        self, *, without: Collection[str] = (), reasoning_field: str = "reasoning_content"
    ) -> None:
        self.wire = Sse()
        self.features = frozenset(FEATURES) - frozenset(without)
        self.counters = frozenset(
            {"cache_read_tokens", "input_tokens", "output_tokens", "reasoning_tokens"}
        )
        self.finish_reasons: Collection[FinishReason] = tuple(_REASONS)
        self._reasoning_field = reasoning_field

    def answer(self, said: Sequence[ModelEvent]) -> Sequence[Sequence[Message]]:
        """Return the chunks of each event; the first has the role before it."""
        groups = [[self._event(event)] for event in said]
        if groups:
            opening = _delta({"role": "assistant", "content": "", "refusal": None})
            groups[0].insert(0, opening)
        return groups

    def end(self) -> Sequence[Message]:
        """Return `[DONE]`."""
        return (Message("[DONE]"),)

    def idle_talk(self) -> Sequence[Message]:
        """Return chunks without choices, with an empty delta, and what Azure begins with."""
        return (
            _chunk([], prompt_filter_results=[{"prompt_index": 0, "content_filter_results": {}}]),
            _delta({}),
            _delta({"content": None}),
            _delta({"content": "", "tool_calls": None}),
        )

    def failures(self, kind: Kind, words: str) -> Sequence[Message]:
        """Return an error alone, one under its name, and one beside an ended choice."""
        name = "server_error" if kind == "transient" else "invalid_request_error"
        error: dict[str, JsonValue] = {"message": words, "type": name, "param": None, "code": None}
        alone = json.dumps({"error": error})
        return (
            Message(alone),
            Message(alone, "error"),
            _chunk([_choice({"content": ""}, "error")], error=error),
        )

    def refusal(self, status: int, words: str) -> Refusal:
        """Return the error object that is published for `status`."""
        name, code = _REFUSALS.get(status, ("server_error", None))
        error = {"message": words, "type": name, "param": None, "code": code}
        return Refusal(status, json.dumps({"error": error}, ensure_ascii=False).encode())

    def overflows(self) -> Mapping[str, Refusal | Message]:
        """Return what providers behind this format are known to say."""
        return words_of.OVERFLOWS

    def near_overflows(self) -> Mapping[str, tuple[Refusal | Message, Kind]]:
        """Return rate limits and refusals that speak of tokens, lengths and contexts."""
        return words_of.NEAR_OVERFLOWS

    def _event(self, event: ModelEvent) -> Message:
        match event:
            case TextDelta():
                return _delta({"content": event.text})
            case ReasoningDelta():
                return _delta({self._reasoning_field: event.text})
            case CallDelta():
                return _delta({"tool_calls": [_call(event)]})
            case UsageReport():
                return _chunk([], usage=_inclusive(event.usage))
            case Finish():
                return _chunk([_choice({}, _REASONS[event.reason])])


def _delta(delta: dict[str, JsonValue]) -> Message:
    return _chunk([_choice(delta, None)])


def _choice(delta: dict[str, JsonValue], reason: str | None) -> JsonValue:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _chunk(choices: list[JsonValue], **more: JsonValue) -> Message:
    chunk: dict[str, JsonValue] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "m-2026-11-29",
        "system_fingerprint": "fp_1",
        "choices": choices,
        "usage": None,
    }
    return Message(json.dumps(chunk | more, ensure_ascii=False, separators=(",", ":")))


def _call(piece: CallDelta) -> JsonValue:
    """Return a piece; id, type and name come with the first one only."""
    function: dict[str, JsonValue] = {"arguments": piece.arguments}
    told: dict[str, JsonValue] = {"index": piece.index}
    if piece.provider_id is not None:
        told["id"] = piece.provider_id
    if piece.name is not None:
        told["type"] = "function"
        function = {"name": piece.name, **function}
    return {**told, "function": function}


def _inclusive(usage: Usage) -> JsonValue:
    """Return totals: the prompt with what was cached, the completion with the reasoning."""
    prompt = (usage.input_tokens or 0) + (usage.cache_read_tokens or 0)
    output = usage.output_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
