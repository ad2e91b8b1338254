"""Turns the events of one Messages stream into model events (MOD-1, MOD-4, MOD-5, MOD-9, TOK-1)."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from psych_runtime.errors import ModelPermanent, ModelTransient
from psych_runtime.model._anthropic_usage import Counters
from psych_runtime.model._calls import CallPieces
from psych_runtime.model._json import mend
from psych_runtime.model._sse import Event
from psych_runtime.model._stream import Words, due
from psych_runtime.model.transient import judge_event
from psych_schema.model import Finish, FinishReason, ModelEvent, ReasoningDelta, TextDelta

__all__ = ["MessageReader", "is_last"]

_FINISH: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
_BLOCKS: Final = frozenset({"redacted_thinking", "text", "thinking", "tool_use"})
_LAST: Final = "message_stop"
_LAST_CHARACTERS: Final = 64
_MOST_BLOCKS: Final = 10_000
_SIGNATURE_CHARACTERS: Final = 1 << 20


def is_last(event: Event) -> bool:
    """Tell the event that ends a stream, also where its type stands in its data only."""
    if event.type:
        return event.type == _LAST
    return len(event.data) <= _LAST_CHARACTERS and f'"{_LAST}"' in event.data


@dataclass(slots=True)
class _Block:
    """One block of the answer's content, while it is open."""

    kind: str
    call: int = 0
    given: object = None
    pieces: bool = False
    words: Words = field(default_factory=Words)
    signature: str = ""


class MessageReader:
    """Reads the events of one stream in order; a whole message is one event.

    Types of events, blocks and deltas that it does not know say nothing. Raises what an error
    among them means, ModelTransient for an event in which something else stands where words,
    calls or the reason to stop should be: it is garbled, and they are lost; and ModelPermanent
    for an answer that grows without a word.

    Args:
        host: for messages.
        redact: takes secrets out of what the provider says of an error.
    """

    def __init__(self, *, host: str, redact: Callable[[str], str]) -> None:
        self._host = host
        self._redact = redact
        self._calls = CallPieces()
        self._begun = self._called = 0
        self._open: dict[int, _Block] = {}
        self._counters = Counters()
        self._finish: FinishReason | None = None
        self._served_by = ""

    def read(self, value: object) -> Iterator[ModelEvent]:
        """Yield what the next event says; what it tells before an error is not lost."""
        if not isinstance(value, dict):
            raise ModelTransient(f"{self._host} sent a garbled chunk: no JSON object")
        kind = self._due(value.get("type"), str)
        if kind == "error" or (kind is None and value.get("error")):
            self.raise_error(value)
        if kind is None:
            raise ModelTransient(f"{self._host} sent a garbled chunk: an event without a type")
        match kind:
            case "message_start":
                yield from self._message(self._due(value.get("message"), dict) or {})
            case "message":
                yield from self._message(value)
            case "content_block_start":
                yield from self._start(self._place(value), value.get("content_block"))
            case "content_block_delta":
                yield from self._delta(self._place(value), value.get("delta"))
            case "content_block_stop":
                yield from self._close(self._place(value))
            case "message_delta":
                yield from self._usage(value)
                self._stop(self._due(value.get("delta"), dict) or {})
            case _:
                return

    def end(self) -> Iterator[ModelEvent]:
        """Yield what is left, and the finish. ModelTransient: the stream ended without one."""
        if self._finish is None:
            raise ModelTransient(f"the stream of {self._host} ended without a stop reason")
        for place in list(self._open):
            yield from self._close(place)
        yield from self._calls.end()
        yield Finish(reason=self._finish, served_by=self._served_by or None)

    def raise_error(self, error: object) -> NoReturn:
        """Raise what `error`, an object or the words of one, means."""
        raise judge_event(error, host=self._host, redact=self._redact)

    def _message(self, message: dict[str, object]) -> Iterator[ModelEvent]:
        """Read a message: at its start it has a model and usage, as a whole also all it says."""
        self._served_by = mend(self._due(message.get("model"), str) or "") or self._served_by
        yield from self._usage(message)
        for place, block in enumerate(self._due(message.get("content"), list) or []):
            yield from self._start(place, block)
            yield from self._close(place)
        self._stop(message)

    def _usage(self, holder: dict[str, object]) -> Iterator[ModelEvent]:
        usage = holder.get("usage")
        report = self._counters.read(usage) if isinstance(usage, dict) else None
        if report is not None:
            yield report

    def _stop(self, holder: dict[str, object]) -> None:
        reason = self._due(holder.get("stop_reason"), str)
        if reason:
            self._finish = _FINISH.get(reason, "other")

    def _start(self, place: int, value: object) -> Iterator[ModelEvent]:
        yield from self._close(place)
        found = self._due(value, dict) or {}
        block = self._opened(place, self._due(found.get("type"), str) or "")
        match block.kind:
            case "text":
                yield from self._text(block, found.get("text"))
            case "thinking":
                yield from self._thought(block, found.get("thinking"))
                self._sign(block, found.get("signature"))
            case "redacted_thinking":
                self._sign(block, found.get("data"))
            case "tool_use":
                block.call, block.given = self._called, found.get("input")
                self._called += 1
                names = {key: self._due(found.get(key), str) or "" for key in ("id", "name")}
                yield from self._calls.read([{"index": block.call, **names}])

    def _delta(self, place: int, value: object) -> Iterator[ModelEvent]:
        delta = self._due(value, dict) or {}
        kind = self._due(delta.get("type"), str)
        block = self._open.get(place)
        if block is None:
            block = self._opened(place, "")
        if block.kind and block.kind not in _BLOCKS:
            return
        match kind:
            case "text_delta":
                yield from self._text(block, delta.get("text"))
            case "thinking_delta":
                yield from self._thought(block, delta.get("thinking"))
            case "signature_delta":
                self._sign(block, delta.get("signature"))
            case "input_json_delta":
                if block.kind != "tool_use":
                    raise ModelTransient(f"{self._host} sent a garbled chunk: input of no call")
                piece = self._due(delta.get("partial_json"), str) or ""
                block.pieces = block.pieces or bool(piece)
                yield from self._calls.read([{"index": block.call, "arguments": piece}])

    def _close(self, place: int) -> Iterator[ModelEvent]:
        """End a block; what came without pieces, or closes it, is told now."""
        block = self._open.pop(place, None)
        if block is None:
            return
        left = block.words.end()
        if block.kind == "tool_use" and block.given and not block.pieces:
            text = json.dumps(block.given, ensure_ascii=False, separators=(",", ":"))
            yield from self._calls.read([{"index": block.call, "arguments": text}])
        elif block.signature:
            redacted = block.kind == "redacted_thinking"
            signature = mend(block.signature)
            yield ReasoningDelta(text=left, signature=signature, redacted=redacted)
        elif left:
            yield ReasoningDelta(text=left) if block.kind == "thinking" else TextDelta(text=left)

    def _opened(self, place: int, kind: str) -> _Block:
        self._begun += 1
        if self._begun > _MOST_BLOCKS:
            raise ModelPermanent(f"{self._host} sent an answer of more than {_MOST_BLOCKS} blocks")
        block = self._open[place] = _Block(kind)
        return block

    def _sign(self, block: _Block, value: object) -> None:
        block.signature += self._due(value, str) or ""
        if len(block.signature) > _SIGNATURE_CHARACTERS:
            bound = f"more than {_SIGNATURE_CHARACTERS} characters"
            raise ModelPermanent(f"{self._host} sent a signature of {bound}")

    def _text(self, block: _Block, value: object) -> Iterator[ModelEvent]:
        if text := block.words.read(self._due(value, str) or ""):
            yield TextDelta(text=text)

    def _thought(self, block: _Block, value: object) -> Iterator[ModelEvent]:
        if text := block.words.read(self._due(value, str) or ""):
            yield ReasoningDelta(text=text)

    def _place(self, value: dict[str, object]) -> int:
        """Return the index of a block, which may be 0."""
        return self._due(value.get("index"), int) or 0

    def _due[T](self, value: object, kind: type[T]) -> T | None:
        return due(value, kind, host=self._host)
