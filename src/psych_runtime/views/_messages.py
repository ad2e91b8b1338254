"""What people said to a Run: its input, and the messages that its model read or did not."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from pydantic_core import to_json

from psych_runtime.core.codec import is_erased
from psych_runtime.core.conversation import input_parts
from psych_runtime.core.models import trusted
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import QueueEnqueued, RunAdmitted
from psych_schema.view import SaidByUser, UnreadMessage

__all__ = ["input_said", "message_read", "message_unread"]

_said_by_user: Final = trusted(SaidByUser)


def input_said(admitted: RunAdmitted, passed_on: Sequence[QueueEnqueued]) -> list[SaidByUser]:
    """Return what a Run began with: the messages passed on to it, or else its input as one."""
    gone = is_erased(admitted)
    if admitted.input is None and not gone:
        return []
    parts = () if gone else input_parts(admitted.input)
    each = [()] * len(passed_on) if gone else _split(parts, passed_on)
    whose = zip(passed_on, each, strict=True) if each else [(admitted, parts)]
    return [_said(one, its, seq=admitted.seq, gone=gone) for one, its in whose]


def message_read(entry: QueueEnqueued, *, seq: int) -> SaidByUser:
    """Return a message at `seq`, where the model read it."""
    parts = entry.message.parts if entry.message else ()
    return _said(entry, parts, seq=seq, gone=is_erased(entry))


def message_unread(entry: QueueEnqueued, *, ended: bool) -> UnreadMessage:
    """Return a message that the model has not read, and after the Run's end will not."""
    said = message_read(entry, seq=entry.seq)
    return UnreadMessage(
        entry_id=entry.entry_id,
        queue=entry.queue,
        state="left" if ended else "queued",
        seq=said.seq,
        at=said.at,
        by=said.by,
        text=said.text,
        attachments=said.attachments,
        gone=said.gone,
    )


def _split(parts: Sequence[Part], messages: Sequence[QueueEnqueued]) -> list[Sequence[Part]]:
    """Return what each message has of the parts of an input; nothing when nobody can tell.

    Of an erased message only that it said something is known.
    """
    sizes = [1 if one.message is None else len(one.message.parts) for one in messages]
    if sum(sizes) != len(parts):
        return []
    rest = iter(parts)
    return [tuple(islice(rest, size)) for size in sizes]


def _said(
    record: QueueEnqueued | RunAdmitted, parts: Sequence[Part], *, seq: int, gone: bool
) -> SaidByUser:
    """Return what `record` says: its parts as one text, values as JSON, and what is attached."""
    entry = record if isinstance(record, QueueEnqueued) else None
    text = "".join(
        part.text if isinstance(part, TextPart) else to_json(part.value).decode()
        for part in parts
        if isinstance(part, TextPart | JsonPart)
    )
    return _said_by_user(
        seq=seq,
        at=record.at,
        by=record.by,
        entry_id=entry.entry_id if entry else None,
        queue=entry.queue if entry else None,
        text=None if gone else text,
        attachments=tuple(part for part in parts if isinstance(part, BlobPart)),
        gone=gone,
    )
