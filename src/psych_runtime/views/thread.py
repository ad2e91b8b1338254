"""What was said in the Runs of a thread, by whom, in the order in which the models met it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from psych_runtime.core.codec import Entry, is_erased
from psych_runtime.core.fold import RunState
from psych_runtime.core.models import trusted
from psych_runtime.views._lifecycle import blocked_on, ended, lifecycle
from psych_runtime.views._messages import input_said, message_read, message_unread
from psych_runtime.views._said import text_of
from psych_runtime.views._survey import survey
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
    ThreadItem,
    ThreadRun,
    ThreadView,
    UnreadMessage,
)

__all__ = ["messages_passed_on", "thread_run", "thread_view"]

_said_by_model: Final = trusted(SaidByModel)

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
        unread=talk.unread(),
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
    _queued: dict[str, QueueEnqueued] = field(default_factory=dict)
    _settled: RunSettled | None = None
    _calls: dict[str, _Call] = field(default_factory=dict)

    def unread(self) -> tuple[UnreadMessage, ...]:
        """Return what the model has not read; what the next Run began with is no more here."""
        ended = self._settled is not None
        moved = self._settled is not None and self._settled.next_run is not None
        here = [one for one in self._queued.values() if not (moved and one.queue == "next_run")]
        return tuple(message_unread(one, ended=ended) for one in here)

    def read(self, record: Record, _: RunState) -> None:
        """Take one record."""
        match record:
            case RunAdmitted():
                self.said += input_said(record, self.passed_on)
            case QueueEnqueued():
                self._queued[record.entry_id] = record
            case QueueConsumed():
                read = [self._queued.pop(name) for name in record.entries]
                self.said += [message_read(one, seq=record.seq) for one in read]
            case QueueCancelled():
                self._queued.pop(record.entry_id, None)
            case ModelCompleted() if record.turn is not None:
                self._model(record)
                self._asked(record)
            case ModelFailed() if record.turn is not None and record.next == "give_up":
                self._model(record)
            case ApprovalRequested() | ToolStarted():
                self._call(record, record.call_id).identity = record.identity
            case ToolCompleted() | ToolRefused():
                self._call(record, record.call_id).ended = record
            case AbortRequested():
                self.said.append(_abort(record))
            case RunSettled():
                self._settled = record
            case _:
                return

    def _model(self, record: ModelCompleted | ModelFailed) -> None:
        text = text_of(record.said.parts) if record.said else ""
        gone = is_erased(record)
        if text or gone:
            self.said.append(
                _said_by_model(
                    seq=record.seq,
                    at=record.at,
                    call=record.call,
                    text=text or None,
                    partial=isinstance(record, ModelFailed),
                    gone=gone,
                )
            )

    def _asked(self, record: ModelCompleted) -> None:
        asked = record.said.calls if record.said else ()
        for place, call_id in enumerate(record.calls):
            call = self._call(record, call_id)
            call.name = asked[place].name if place < len(asked) else None

    def _call(self, record: Record, call_id: str) -> _Call:
        known = self._calls.get(call_id)
        if known is None:
            known = self._calls[call_id] = _Call(record, call_id)
            self.said.append(known)
        return known


def _abort(record: AbortRequested) -> AbortAsked:
    return AbortAsked(
        seq=record.seq,
        at=record.at,
        by=record.by,
        reason=record.reason,
        force=record.force,
        gone=is_erased(record),
    )
