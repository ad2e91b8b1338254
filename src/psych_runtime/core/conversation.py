"""The conversation of a Run: what the model is shown, built record by record (MOD-8).

Messages are only appended, except by a compaction; tool answers stand in the order asked,
whenever they came.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, cast

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_json

from psych_runtime.core._prefix import Prefix
from psych_runtime.core.codec import is_erased
from psych_runtime.core.models import trusted
from psych_runtime.core.preview import (
    MAX_ATTACHED_BYTES,
    Whole,
    file_line,
    is_long_text,
    is_text,
    preview,
    text_of,
    unshown_line,
)
from psych_runtime.errors import ContentErased, CorruptLog
from psych_schema.common import BlobRef
from psych_schema.model import (
    AssistantMessage,
    BlobPart,
    Message,
    Part,
    TextPart,
    ToolMessage,
    UserMessage,
)
from psych_schema.record import (
    AdvisoryAdded,
    ContextCompacted,
    ModelCompleted,
    ModelDelta,
    QueueCancelled,
    QueueConsumed,
    QueueEnqueued,
    Record,
    RunAdmitted,
    ToolCompleted,
    ToolRefused,
)
from psych_schema.transitions import TRANSITIONS

__all__ = ["Conversation", "input_parts"]

_assistant_message: Final = trusted(AssistantMessage)
_text_part: Final = trusted(TextPart)
_tool_message: Final = trusted(ToolMessage)
_user_message: Final = trusted(UserMessage)

_SILENT: Final = frozenset(kind for kind, row in TRANSITIONS.items() if row.content is None) - {
    "queue.consumed",
    "queue.cancelled",
}
"""Most records: they say nothing to the model, and have no words that could be gone."""


@cache
def _parts() -> TypeAdapter[list[Part]]:
    return TypeAdapter(list[Part], config=ConfigDict(strict=True, allow_inf_nan=False))


def input_parts(value: JsonValue) -> tuple[Part, ...]:
    """Return a Run's input as parts: `{"message": text or parts}`, anything else as JSON text."""
    if isinstance(value, dict) and set(value) == {"message"}:
        message = value["message"]
        if isinstance(message, str):
            return (_text_part(text=message),)
        if isinstance(message, list):
            try:
                return tuple(_parts().validate_json(to_json(message)))
            except ValidationError:
                return (TextPart(text=to_json(value).decode()),)
    return (TextPart(text=to_json(value).decode()),)


class Conversation:
    """What was said, in the model's order.

    `last` is the id of the last record that is part of it, `base` of the last compaction, and
    `advised` the codes of the advisories since somebody else spoke. `blobs` are those that a
    message names, by hash; `wholes` is where all of a result is that is shown in part, by the
    name that the model knows. A Run that continues a thread starts from its predecessor's.
    """

    __slots__ = (
        *("_calls", "_entries", "_order", "_places", "_slots"),
        *("advised", "base", "blobs", "last", "messages", "wholes"),
    )

    def __init__(
        self, before: Sequence[Message] = (), wholes: Mapping[str, Whole] | None = None
    ) -> None:
        self.messages: list[Message | None] = list(before)  # None: a call without an answer yet
        self.last = ""
        self.base: str | None = None
        self.advised: frozenset[str] = frozenset()
        self.blobs: dict[str, BlobRef] = {}
        self.wholes: dict[str, Whole] = dict(wholes or {})
        self._order: list[int] = [0] * len(self.messages)  # the place of each message's record
        self._places: dict[str, int] = {}  # of records, in the order they came
        self._slots: dict[str, int] = {}
        self._calls: dict[str, ModelCompleted] = {}
        self._entries: dict[str, UserMessage] = {}
        self._find_blobs(before)

    def add(self, record: Record) -> None:
        """Take one record.

        Raises ContentErased when its words are gone (a delta's may be: what it said comes again),
        CorruptLog for a compaction that does not end at the end of a turn.
        """
        if vars(record)["type"] in _SILENT:
            return
        if is_erased(record) and not isinstance(record, ModelDelta):
            raise ContentErased(run_id=record.run_id)
        match record:
            case RunAdmitted():
                self._mark(record)
                if record.input is not None:
                    self._hear(_user_message(parts=input_parts(record.input)))
            case QueueEnqueued() if record.message is not None:
                self._entries[record.entry_id] = record.message
            case QueueConsumed():
                self._mark(record)
                self.advised = frozenset()
                for entry in record.entries:
                    if (message := self._entries.pop(entry, None)) is not None:
                        self._hear(message)
            case QueueCancelled():
                self._entries.pop(record.entry_id, None)
            case AdvisoryAdded():
                self._mark(record)
                self.advised |= {record.code}
                self._put(UserMessage(parts=(TextPart(text=record.message or ""),)))
            case ModelCompleted() if record.turn is not None:
                self._answer(record)
            case ToolCompleted() | ToolRefused() if record.call_id in self._slots:
                self._result(record)
            case ContextCompacted() if record.summary is not None:
                self._compact(record, record.summary)
            case _:
                return

    def entry(self, entry_id: str) -> UserMessage | None:
        """Return the message of an entry that is still queued."""
        return self._entries.get(entry_id)

    def asked(self, call_id: str) -> ModelCompleted:
        """Return the record that asked for a call."""
        return self._calls[call_id]

    def complete(self) -> Sequence[Message]:
        """Return the messages as they are now, every call answered. ValueError when one is not.

        No message is copied or looked at: every turn of a long Run pays for this.
        """
        if self._slots:
            raise ValueError("a tool call has no answer yet")
        return cast("Sequence[Message]", Prefix(self.messages))

    def settled(self) -> tuple[Message, ...]:
        """Return the messages of a Run that has ended: calls and answers in pairs."""
        return tuple(m for m in self.messages if m is not None)

    def _mark(self, record: Record) -> None:
        """Let `record` be the last one of the conversation."""
        self.last = record.id
        self._places[record.id] = len(self._places) + 1

    def _put(self, message: Message | None) -> None:
        self.messages.append(message)
        self._order.append(len(self._places))
        if message is not None:
            self._find_blobs((message,))

    def _hear(self, message: UserMessage) -> None:
        """Put what somebody said; a file that has no room must not make the thread unusable."""
        if any(isinstance(one, BlobPart) for one in message.parts):
            message = _user_message(parts=tuple(self._heard(message.parts)))
        self._put(message)

    def _heard(self, parts: Iterable[Part]) -> Iterator[Part]:
        blobs = dict(self.blobs)
        for one in parts:
            if isinstance(one, BlobPart) and not _take(one, blobs):
                yield _text_part(text=unshown_line(one))
            else:
                yield one

    def _find_blobs(self, messages: Iterable[Message]) -> None:
        for message in messages:
            for part in message.parts:
                if part.kind == "blob":
                    self.blobs[part.blob.hash] = part.blob

    def _answer(self, record: ModelCompleted) -> None:
        self._mark(record)
        parts = record.said.parts if record.said else ()
        calls = record.said.calls if record.said else ()
        self._put(_assistant_message(parts=parts, calls=calls))
        for call in record.calls:
            self._slots[call] = len(self.messages)
            self._calls[call] = record
            self._put(None)

    def _result(self, record: ToolCompleted | ToolRefused) -> None:
        self._mark(record)
        slot = self._slots.pop(record.call_id)
        if isinstance(record, ToolRefused):
            parts: tuple[Part, ...] = (_text_part(text=record.message or record.code),)
            failed = True
        else:
            result = record.result
            parts = result.parts if result else ()
            if record.shown_bytes is not None:
                parts = tuple(self._shown(record, parts, record.shown_bytes))
            if any(isinstance(one, BlobPart) for one in parts):
                parts = tuple(self._files(record, parts))
            if result and result.message is not None:
                parts = (*parts, _text_part(text=result.message))
            failed = record.outcome != "ok"
        message = _tool_message(call_id=record.call_id, parts=parts, failed=failed)
        self.messages[slot] = message
        self._order[slot] = len(self._places)
        self._find_blobs((message,))

    def _shown(
        self, record: ToolCompleted, parts: Sequence[Part], shown_bytes: int
    ) -> Iterator[Part]:
        """Yield what is shown of texts that are too large, and remember where all of it is."""
        texts = [one for one in parts if not isinstance(one, BlobPart)]
        if record.elided is not None:
            self.wholes[record.elided.handle] = Whole(record.run_id, record.elided.blob)
            yield from texts
        elif len((text := text_of(texts)).encode()) > shown_bytes:
            self.wholes[record.call_id] = Whole(record.run_id, parts=texts)
            yield _text_part(text=preview(text, shown_bytes, result=record.call_id))
        else:
            yield from texts
        yield from (one for one in parts if isinstance(one, BlobPart))

    def _files(self, record: ToolCompleted, parts: Sequence[Part]) -> Iterator[Part]:
        """Yield parts, and a line for each file that is not shown; one of text can be read."""
        blobs = dict(self.blobs)
        place = 0
        for one in parts:
            if not isinstance(one, BlobPart):
                yield one
                continue
            place += 1
            shown = record.shown_bytes
            if not (shown is not None and is_long_text(one, shown)) and _take(one, blobs):
                yield one
            elif is_text(one.blob.media_type):
                name = f"{record.call_id}.{place}"
                self.wholes[name] = Whole(record.run_id, one.blob)
                yield _text_part(text=file_line(one, result=name))
            else:
                yield _text_part(text=unshown_line(one))

    def _compact(self, record: ContextCompacted, summary: UserMessage) -> None:
        """Let the summary stand for every message up to that of the record `upto`."""
        self._mark(record)
        upto = self._places.get(record.upto)
        if upto is None or record.upto == record.id:
            raise CorruptLog(reason="upto_unknown", run_id=record.run_id, seq=record.seq)
        cut = max((i for i, place in enumerate(self._order, 1) if place <= upto), default=0)
        rest = self.messages[cut : cut + 1]
        if any(place > upto for place in self._order[:cut]) or isinstance(
            next(iter(rest), None), ToolMessage
        ):
            raise CorruptLog(reason="upto_inside_turn", run_id=record.run_id, seq=record.seq)
        self.messages = [summary, *self.messages[cut:]]  # a new list: the old one may be shown
        self._order[:cut] = [0]
        self._slots = {call: slot - cut + 1 for call, slot in self._slots.items()}
        self.base = record.id
        self.blobs = {}
        self._find_blobs(self.settled())


def _take(file: BlobPart, blobs: dict[str, BlobRef]) -> bool:
    """Add a file to what a request has; False, and not added, where it makes that too large."""
    together = blobs | {file.blob.hash: file.blob}
    if sum(one.bytes for one in together.values()) > MAX_ATTACHED_BYTES:
        return False
    blobs.update(together)
    return True
