"""What was said in the Runs of a thread, by whom, in the order in which the models met it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic_core import to_json

from psych_runtime.core.codec import Entry, is_erased
from psych_runtime.core.conversation import input_parts
from psych_runtime.core.fold import RunState
from psych_runtime.core.models import trusted
from psych_runtime.views._lifecycle import blocked_on, ended, lifecycle
from psych_runtime.views._said import text_of
from psych_runtime.views._survey import survey
from psych_schema.model import BlobPart, JsonPart, Part, TextPart
from psych_schema.record import (
    AbortRequested,
    ApprovalRequested,
    ModelCompleted,
    ModelFailed,
    QueueCancelled,
    QueueConsumed,
    QueueEnqueued,
    Record,
    RunAdmitted,
    RunSettled,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
)
from psych_schema.store import RunRow
from psych_schema.view import (
    AbortAsked,
    CallMade,
    SaidByModel,
    SaidByUser,
    ThreadItem,
    ThreadRun,
    ThreadView,
    UnreadMessage,
)

__all__ = ["messages_passed_on", "thread_run", "thread_view"]

_said_by_model: Final = trusted(SaidByModel)
_said_by_user: Final = trusted(SaidByUser)

type _Outcome = Literal["ok", "error", "aborted", "timed_out", "unknown", "refused", "open"]


def thread_view(thread: str, runs: Iterable[ThreadRun], *, cursor: str | None) -> ThreadView:
    """Return Runs of a thread as one page, in the order of the thread."""
    found = sorted(runs, key=lambda run: run.position)
    return ThreadView(thread=thread, runs=tuple(found), cursor=cursor)


def thread_run(
    header: RunRow, entries: Iterable[Entry], *, passed_on: Sequence[QueueEnqueued] = ()
) -> ThreadRun:
    """Say what was said in one Run; words that have been erased are `gone`.

    Args:
        header: the Run's header.
        entries: its log from the first record to the header's head, as for `status_view`.
        passed_on: the messages that are its input, when the Run before it left them to it.
    """
    talk = _Talk(passed_on)
    found = survey(header, entries, talk.read)
    return ThreadRun(
        run_id=header.run_id,
        position=header.position,
        version=header.version,
        lifecycle=lifecycle(found, blocked_on(found)),
        ended=ended(found),
        created_at=header.created_at,
        said=tuple(one.line() if isinstance(one, _Call) else one for one in talk.said),
        unread=tuple(_unread(one, talk) for one in talk.unread.values() if not talk.moves(one)),
    )


def messages_passed_on(entries: Iterable[Entry], run_id: str) -> tuple[QueueEnqueued, ...]:
    """Return the messages that a Run left to the one behind it, in order."""
    waiting: dict[str, QueueEnqueued] = {}
    for record in (entry.record for entry in entries):
        match record:
            case QueueEnqueued() if record.queue == "next_run":
                waiting[record.entry_id] = record
            case QueueCancelled():
                waiting.pop(record.entry_id, None)
            case RunSettled() if record.next_run == run_id:
                return tuple(waiting.values())
            case _:
                continue
    return ()


@dataclass(slots=True)
class _Call:
    """A tool call, and what is known of it."""

    record: Record  # that named it first
    call_id: str
    name: str | None = None
    identity: str | None = None
    ended: ToolCompleted | ToolRefused | None = None

    def line(self) -> CallMade:
        outcome, code = _end(self.ended)
        return CallMade(
            seq=self.record.seq,
            at=self.record.at,
            call_id=self.call_id,
            name=self.name,
            identity=self.identity,
            outcome=outcome,
            code=code,
        )


def _end(record: ToolCompleted | ToolRefused | None) -> tuple[_Outcome, str | None]:
    """Return what became of a call, and the code of why it failed."""
    if record is None:
        return "open", None
    if isinstance(record, ToolRefused):
        return "refused", record.code
    return record.outcome, record.failure.code if record.failure else None


@dataclass(slots=True)
class _Talk:
    """Reads a log for what was said in it."""

    passed_on: Sequence[QueueEnqueued] = ()
    said: list[_Call | ThreadItem] = field(default_factory=list)
    unread: dict[str, QueueEnqueued] = field(default_factory=dict)
    settled: RunSettled | None = None
    _calls: dict[str, _Call] = field(default_factory=dict)

    def moves(self, entry: QueueEnqueued) -> bool:
        """Tell whether a message is input of the next Run, and no more this one's."""
        settled = self.settled
        return entry.queue == "next_run" and settled is not None and settled.next_run is not None

    def read(self, record: Record, _: RunState) -> None:
        """Take one record."""
        match record:
            case RunAdmitted():
                self._input(record)
            case QueueEnqueued():
                self.unread[record.entry_id] = record
            case QueueConsumed():
                self.said += [_read(self.unread.pop(e), record) for e in record.entries]
            case QueueCancelled():
                self.unread.pop(record.entry_id, None)
            case ModelCompleted() if record.turn is not None:
                self._answer(record)
            case ModelFailed() if record.turn is not None and record.next == "give_up":
                self._broken(record)
            case ApprovalRequested() | ToolStarted():
                self._call(record, record.call_id).identity = record.identity
            case ToolCompleted() | ToolRefused():
                self._call(record, record.call_id).ended = record
            case AbortRequested():
                self.said.append(_abort(record))
            case RunSettled():
                self.settled = record
            case _:
                return

    def _input(self, record: RunAdmitted) -> None:
        gone = is_erased(record)
        if record.input is None and not gone:
            return
        parts = () if gone else input_parts(record.input)
        each = _split(None if gone else parts, self.passed_on)
        if each:
            for one, words in zip(self.passed_on, each, strict=True):
                self.said.append(_input_of(one, words, record, gone=gone))
            return
        self.said.append(
            _said_by_user(
                seq=record.seq,
                at=record.at,
                by=record.by,
                text=None if gone else _words(parts),
                attachments=_attachments(parts),
                gone=gone,
            )
        )

    def _answer(self, record: ModelCompleted) -> None:
        asked = record.said.calls if record.said else ()
        text = text_of(record.said.parts) if record.said else ""
        self._model(record, text, partial=False)
        for place, call_id in enumerate(record.calls):
            call = self._call(record, call_id)
            call.name = asked[place].name if place < len(asked) else None

    def _broken(self, record: ModelFailed) -> None:
        self._model(record, text_of(record.said.parts) if record.said else "", partial=True)

    def _model(self, record: ModelCompleted | ModelFailed, text: str, *, partial: bool) -> None:
        gone = is_erased(record)
        if text or gone:
            self.said.append(
                _said_by_model(
                    seq=record.seq,
                    at=record.at,
                    call=record.call,
                    text=text or None,
                    partial=partial,
                    gone=gone,
                )
            )

    def _call(self, record: Record, call_id: str) -> _Call:
        known = self._calls.get(call_id)
        if known is None:
            known = self._calls[call_id] = _Call(record, call_id)
            self.said.append(known)
        return known


def _split(parts: Sequence[Part] | None, messages: Sequence[QueueEnqueued]) -> list[Sequence[Part]]:
    """Return what each message has of the parts of an input; nothing when nobody can tell.

    None: the input has been erased. Of an erased message only that it said something is known.
    """
    if parts is None:
        return [()] * len(messages)
    sizes = [1 if one.message is None else len(one.message.parts) for one in messages]
    if sum(sizes) != len(parts):
        return []
    found: list[Sequence[Part]] = []
    for size in sizes:
        found.append(parts[:size])
        parts = parts[size:]
    return found


def _input_of(
    entry: QueueEnqueued, parts: Sequence[Part], admitted: RunAdmitted, *, gone: bool
) -> SaidByUser:
    """Return a message that began a Run, where the model read it."""
    return _said_by_user(
        seq=admitted.seq,
        at=entry.at,
        by=entry.by,
        entry_id=entry.entry_id,
        queue=entry.queue,
        text=None if gone else _words(parts),
        attachments=_attachments(parts),
        gone=gone,
    )


def _read(entry: QueueEnqueued, consumed: QueueConsumed) -> SaidByUser:
    """Return a message at the place where the model read it."""
    parts = entry.message.parts if entry.message else ()
    gone = is_erased(entry)
    return _said_by_user(
        seq=consumed.seq,
        at=entry.at,
        by=entry.by,
        entry_id=entry.entry_id,
        queue=entry.queue,
        text=None if gone else _words(parts),
        attachments=_attachments(parts),
        gone=gone,
    )


def _unread(entry: QueueEnqueued, talk: _Talk) -> UnreadMessage:
    gone = is_erased(entry)
    parts = entry.message.parts if entry.message else ()
    return UnreadMessage(
        entry_id=entry.entry_id,
        queue=entry.queue,
        state="queued" if talk.settled is None else "left",
        seq=entry.seq,
        at=entry.at,
        by=entry.by,
        text=None if gone else _words(parts),
        attachments=_attachments(parts),
        gone=gone,
    )


def _abort(record: AbortRequested) -> AbortAsked:
    return AbortAsked(
        seq=record.seq,
        at=record.at,
        by=record.by,
        reason=record.reason,
        force=record.force,
        gone=is_erased(record),
    )


def _words(parts: Sequence[Part]) -> str:
    """Return what parts say as one text, values as JSON."""
    return "".join(
        part.text if isinstance(part, TextPart) else to_json(part.value).decode()
        for part in parts
        if isinstance(part, TextPart | JsonPart)
    )


def _attachments(parts: Sequence[Part]) -> tuple[BlobPart, ...]:
    return tuple(part for part in parts if isinstance(part, BlobPart))
