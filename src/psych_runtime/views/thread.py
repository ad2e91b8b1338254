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

__all__ = ["thread_run", "thread_view"]

_said_by_model: Final = trusted(SaidByModel)
_said_by_user: Final = trusted(SaidByUser)

type _Outcome = Literal["ok", "error", "aborted", "timed_out", "unknown", "refused", "open"]
type _State = Literal["queued", "cancelled", "left", "passed_on"]


def thread_view(thread: str, runs: Iterable[ThreadRun], *, cursor: str | None) -> ThreadView:
    """Return Runs of a thread as one page, in the order of the thread."""
    found = sorted(runs, key=lambda run: run.position)
    return ThreadView(thread=thread, runs=tuple(found), cursor=cursor)


def thread_run(header: RunRow, entries: Iterable[Entry]) -> ThreadRun:
    """Say what was said in one Run; words that have been erased are `gone`.

    Args:
        header: the Run's header.
        entries: its log from the first record to the header's head, as for `status_view`.
    """
    talk = _Talk()
    found = survey(header, entries, talk.read)
    return ThreadRun(
        run_id=header.run_id,
        position=header.position,
        version=header.version,
        lifecycle=lifecycle(found, blocked_on(found)),
        ended=ended(found),
        created_at=header.created_at,
        said=tuple(one.line() if isinstance(one, _Call) else one for one in talk.said),
        unread=tuple(_unread(one, talk) for one in talk.unread.values()),
    )


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

    said: list[_Call | ThreadItem] = field(default_factory=list)
    unread: dict[str, QueueEnqueued] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    settled: RunSettled | None = None
    _calls: dict[str, _Call] = field(default_factory=dict)

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
                self.cancelled.add(record.entry_id)
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
    state: _State = "queued"
    if entry.entry_id in talk.cancelled:
        state = "cancelled"
    elif talk.settled is not None:
        moves = entry.queue == "next_run" and talk.settled.next_run is not None
        state = "passed_on" if moves else "left"
    gone = is_erased(entry)
    parts = entry.message.parts if entry.message and state != "passed_on" else ()
    return UnreadMessage(
        entry_id=entry.entry_id,
        queue=entry.queue,
        state=state,
        seq=entry.seq,
        at=entry.at,
        by=entry.by,
        text=None if gone or state == "passed_on" else _words(parts),
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
