"""A model stream as it comes in: what it said, what it asked for, what it counted.

Whatever providers send: calls without an id, ids twice, arguments in pieces or too long (MOD-1,
MOD-2, R-30). What was seen before a stream broke is kept.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from pydantic import BaseModel

from psych_runtime._system import System
from psych_runtime.core.codec import MAX_CONTENT_BYTES, sha256
from psych_runtime.core.models import trusted
from psych_runtime.tools.arguments import MAX_ARGUMENTS_BYTES
from psych_schema.common import Cost, Usage
from psych_schema.model import (
    AskedCall,
    CallDelta,
    Finish,
    FinishReason,
    ModelEvent,
    Part,
    ReasoningDelta,
    ReasoningPart,
    TextDelta,
    TextPart,
    UsageReport,
)

__all__ = ["Channel", "Incoming", "clean_text"]

_text_part: Final = trusted(TextPart)

_MAX_STREAM_CHARACTERS: Final = 16 * 1024 * 1024
_ECHO_CHARACTERS: Final = 1000
_NAME_CHARACTERS: Final = 256
_REASONS: Final[tuple[str, ...]] = get_args(FinishReason.__value__)

type Channel = tuple[Literal["text", "reasoning", "arguments"], int]
"""What a delta belongs to: text, reasoning or arguments, and for the last the call's index."""


def clean_text(text: str) -> str:
    """Return `text` as Unicode: surrogate pairs joined, lone surrogates replaced (V9)."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _checked[T: BaseModel](event: T) -> T:
    """Return what goes into the log as it is; ValueError for what could not be read again."""
    return type(event).model_validate_json(event.model_dump_json(warnings="none"))


@dataclass(slots=True)
class _Piece:
    reasoning: bool
    texts: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: bool = False


@dataclass(slots=True)
class _Call:
    provider_id: str | None = None
    names: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    size: int = 0  # characters of the arguments


class Incoming:
    """Collects the events of one call."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._started = system.monotonic()
        self._pieces: list[_Piece] = []
        self._calls: dict[int, _Call] = {}
        self._words = 0  # characters of text and reasoning
        self._size = 0  # characters of everything, one more for each event
        self.usage: Usage | None = None
        self.cost: Cost | None = None
        self.finish: FinishReason | None = None
        self.served_by: str | None = None
        self.first_token_seconds: float | None = None

    @property
    def seconds(self) -> float:
        """How long the call has taken so far."""
        return round(max(0.0, self._system.monotonic() - self._started), 6)

    @property
    def too_large(self) -> bool:
        """Tell whether this can be no answer any more: a stream need not have an end."""
        return self._words > MAX_CONTENT_BYTES or self._size > _MAX_STREAM_CHARACTERS

    def add(self, event: ModelEvent) -> tuple[Channel, str] | None:
        """Take one event; return its text and channel when a reader could see it."""
        self._size += 1
        match event:
            case TextDelta():
                self._token(event.text, words=True)
                self._piece(reasoning=False).texts.append(event.text)
                return ("text", 0), event.text
            case ReasoningDelta():
                self._token(event.text, words=True)
                piece = self._piece(reasoning=True, alone=event.redacted)
                piece.redacted = event.redacted
                piece.texts.append(event.text)
                if event.signature:
                    self._token(event.signature, words=True)
                    piece.signature = clean_text(event.signature)
                return ("reasoning", 0), event.text
            case CallDelta():
                self._token(event.arguments, words=False)
                call = self._calls.setdefault(event.index, _Call())
                call.provider_id = call.provider_id or event.provider_id
                if event.name:
                    call.names.append(event.name)
                call.arguments.append(event.arguments)
                room = max(0, MAX_ARGUMENTS_BYTES - call.size)
                call.size += len(event.arguments)
                return ("arguments", event.index), event.arguments[:room]
            case UsageReport():
                if event.cost is None and type(event.usage) is Usage:
                    self.usage = Usage(**vars(event.usage))
                    return None
                told = _checked(event)
                self.usage = told.usage
                self.cost = told.cost or self.cost
            case Finish():
                if event.reason not in _REASONS:
                    Finish(reason=event.reason)  # raises ValidationError
                self.finish = event.reason
                if event.served_by is not None:
                    self.served_by = clean_text(event.served_by)[:_NAME_CHARACTERS]
        return None

    def parts(self) -> tuple[Part, ...]:
        """Return what was said, in order."""
        parts: list[Part] = []
        for piece in self._pieces:
            text = clean_text("".join(piece.texts))
            if piece.reasoning:
                parts.append(
                    ReasoningPart(text=text, signature=piece.signature, redacted=piece.redacted)
                )
            elif text:
                parts.append(_text_part(text=text))
        return tuple(parts)

    def calls(self) -> tuple[AskedCall, ...]:
        """Return what was asked for, each under an id of ours."""
        return tuple(self._asked(self._calls[index]) for index in sorted(self._calls))

    def _asked(self, call: _Call) -> AskedCall:
        arguments = clean_text("".join(call.arguments))
        problem = None
        size = len(arguments.encode())
        if size > MAX_ARGUMENTS_BYTES:
            problem = (
                f"the arguments have {size} bytes, the bound is {MAX_ARGUMENTS_BYTES}; "
                f"sha256 {sha256(arguments)}; only their beginning is kept"
            )
            arguments = arguments[:_ECHO_CHARACTERS]
        return AskedCall(
            call_id=self._system.new_id("call"),
            provider_id=None if call.provider_id is None else clean_text(call.provider_id),
            name=clean_text("".join(call.names)),
            arguments=arguments,
            problem=problem,
        )

    def _token(self, text: str, *, words: bool) -> None:
        self._size += len(text)
        self._words += len(text) if words else 0
        if self.first_token_seconds is None:
            self.first_token_seconds = self.seconds

    def _piece(self, *, reasoning: bool, alone: bool = False) -> _Piece:
        """Return the piece that goes on; a signature closes one, redacted ones are `alone`."""
        last = self._pieces[-1] if self._pieces else None
        closed = last is None or last.signature is not None or alone or last.redacted
        if last is None or closed or last.reasoning != reasoning:
            last = _Piece(reasoning)
            self._pieces.append(last)
        return last
