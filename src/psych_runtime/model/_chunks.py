"""Turns the chunks of one chat completion into model events (MOD-1, MOD-5, TOK-1)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from psych_runtime.errors import ModelTransient
from psych_runtime.model._calls import CallPieces
from psych_runtime.model._json import array_at, mend, object_at, text_at
from psych_runtime.model._stream import Words, due
from psych_runtime.model._usage import usage_report
from psych_runtime.model.transient import judge_event
from psych_schema.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)

__all__ = ["ChunkReader"]

_FINISH: Mapping[str, FinishReason] = {
    "content_filter": "content_filter",
    "end_turn": "stop",
    "eos": "stop",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "stop": "stop",
    "tool_calls": "tool_calls",
}


class ChunkReader:
    """Reads the chunks of one stream in order; a whole `chat.completion` is one chunk.

    Raises what an error object among them means, and ModelTransient for a chunk in which something
    else stands where words, calls or the finish should be: it is garbled, and they are lost.

    Args:
        host: for messages.
        redact: takes secrets out of what the provider says of an error.
    """

    def __init__(self, *, host: str, redact: Callable[[str], str]) -> None:
        self._host = host
        self._redact = redact
        self._calls = CallPieces()
        self._words = Words()
        self._thoughts = Words()
        self._usage: UsageReport | None = None
        self._finish: FinishReason | None = None
        self._served_by = ""

    def read(self, chunk: object) -> Iterator[ModelEvent]:
        """Yield the events of the next chunk; what it tells before an error is not lost."""
        if not isinstance(chunk, dict):
            raise ModelTransient(f"{self._host} sent a garbled chunk: no JSON object")
        self._served_by = mend(text_at(chunk, "model")) or self._served_by
        usage = object_at(chunk, "usage")
        if usage:
            report = usage_report(usage)
            if report != self._usage:
                self._usage = report
                yield report
        if chunk.get("error"):
            self.raise_error(chunk["error"])
        if chunk.get("object") == "error" or chunk.get("type") == "error":
            self.raise_error(chunk)
        for item in self._only(chunk.get("choices"), list) or ():
            choice = self._only(item, dict)
            if choice is not None and self._only(choice.get("index"), int) is None:
                yield from self._choice(choice)  # another than the first is not ours

    def end(self) -> Iterator[ModelEvent]:
        """Yield what is left, and the finish. ModelTransient: the stream ended without one."""
        if self._finish is None:
            raise ModelTransient(f"the stream of {self._host} ended without a finish reason")
        if left := self._thoughts.end():
            yield ReasoningDelta(text=left)
        if left := self._words.end():
            yield TextDelta(text=left)
        yield from self._calls.end()
        yield Finish(reason=self._finish, served_by=self._served_by or None)

    def raise_error(self, error: object) -> NoReturn:
        """Raise what `error`, an object or the words of one, means."""
        raise judge_event(error, host=self._host, redact=self._redact)

    def _choice(self, choice: Mapping[str, object]) -> Iterator[ModelEvent]:
        if choice.get("error"):
            self.raise_error(choice["error"])
        delta = self._only(choice.get("delta"), dict)
        said = delta or self._only(choice.get("message"), dict) or {}
        yield from self._reasoning(self._thought(said))
        refusal = self._only(said.get("refusal"), str) or ""
        yield from self._text(self._spoken(said.get("content")) + refusal)
        pieces = self._only(said.get("tool_calls"), list) or []
        old = self._only(said.get("function_call"), dict)
        if not pieces and old is not None:
            pieces = [{"index": 0, "function": old}]
        yield from self._calls.read([piece for piece in map(self._piece, pieces) if piece])
        reason = self._only(choice.get("finish_reason"), str)
        if reason == "error":
            raise ModelTransient(f"{self._host} ended the stream with an error")
        if reason:
            self._finish = _FINISH.get(reason, "other")

    def _spoken(self, content: object) -> str:
        """Return text; some servers send an array of parts."""
        if isinstance(content, str):
            return content
        parts = (self._only(part, dict) or {} for part in self._only(content, list) or ())
        return "".join(self._only(part.get("text"), str) or "" for part in parts)

    def _thought(self, said: Mapping[str, object]) -> str:
        """Return reasoning; a server that sends it under both names sends the same twice."""
        told = text_at(said, "reasoning_content") or text_at(said, "reasoning")
        return told or "".join(
            self._spoken(part.get("thinking"))
            for part in array_at(said, "content")
            if isinstance(part, dict) and part.get("type") == "thinking"
        )

    def _piece(self, piece: object) -> dict[str, object] | None:
        """Return a piece of a call whose name, where it has one, is a text."""
        found = self._only(piece, dict)
        if found is not None:
            self._only((self._only(found.get("function"), dict) or found).get("name"), str)
        return found

    def _only[T](self, value: object, kind: type[T]) -> T | None:
        return due(value, kind, host=self._host)

    def _text(self, text: str) -> Iterator[ModelEvent]:
        if whole := self._words.read(text):
            yield TextDelta(text=whole)

    def _reasoning(self, text: str) -> Iterator[ModelEvent]:
        if whole := self._thoughts.read(text):
            yield ReasoningDelta(text=whole)
