"""Reads a log for the lines of a report: attempts, model calls, tool calls (TOK-3, RUN-1)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psych_runtime.core.fold import RunState
from psych_runtime.views._sums import reported
from psych_schema.common import Cost
from psych_schema.record import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    AttemptEnded,
    AttemptStarted,
    ChildSettled,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    Record,
    RunErased,
    RunSettled,
    RunSuspended,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
)
from psych_schema.view import AttemptLine, ModelCallLine, ToolCallLine

__all__ = ["Lines"]

type _End = Literal["settled", "suspended", "drained", "blocked", "error", "taken", "open"]


@dataclass(slots=True)
class _Attempt:
    started: AttemptStarted
    ended: _End = "open"

    def line(self) -> AttemptLine:
        one = self.started
        return AttemptLine(
            epoch=one.epoch,
            worker=one.worker,
            reason=one.reason,
            started_at=one.at,
            ended=self.ended,
            crashes=one.crashes,
        )


@dataclass(slots=True)
class _ModelCall:
    started: ModelStarted
    ended: ModelCompleted | ModelFailed | None = None
    interrupted: bool = False

    def line(self) -> ModelCallLine:
        """Return what became of it; a call that was cut off reported nothing."""
        one, end = self.started, self.ended
        line = ModelCallLine(
            call=one.call,
            turn=one.turn,
            purpose=one.purpose,
            model=one.model,
            tries=one.tries,
            outcome="interrupted" if self.interrupted else "open",
            started_at=one.at,
            cost=_missing("interrupted" if self.interrupted else "still_open"),
        )
        if isinstance(end, ModelCompleted):
            facts: dict[str, object] = {
                "outcome": "completed",
                "finish": end.finish,
                "seconds": end.timings.seconds,
                "first_token_seconds": end.timings.first_token_seconds,
                "usage": reported(end.usage),
                "cost": end.cost,
            }
            return line.model_copy(update=facts)
        if isinstance(end, ModelFailed):
            usage = reported(end.usage)
            facts = {
                "outcome": "failed",
                "code": end.failure.code,
                "seconds": (end.at - one.at).total_seconds(),
                "usage": usage,
                "cost": _missing("call_failed" if usage is None else "no_price"),
            }
            return line.model_copy(update=facts)
        return line


def _missing(reason: str) -> Cost:
    return Cost(source="missing", reason=reason)


@dataclass(slots=True)
class _ToolCall:
    call_id: str
    name: str | None = None
    identity: str | None = None
    first_at: datetime | None = None
    started: ToolStarted | None = None
    ended: ToolCompleted | ToolRefused | None = None
    recovered: bool = False
    asked: str | None = None  # the last approval that was asked for
    decided: ApprovalDecided | ApprovalExpired | None = None

    def decide(self, record: ApprovalDecided | ApprovalExpired) -> None:
        """Take a decision; one about what was asked before is history."""
        if record.approval_id == self.asked:
            self.decided = record

    def line(self) -> ToolCallLine:
        one, end = self.started, self.ended
        code: str | None = None
        if isinstance(end, ToolRefused):
            code = end.code
        elif end is not None and end.failure is not None:
            code = end.failure.code
        return ToolCallLine(
            call_id=self.call_id,
            name=self.name,
            identity=self.identity if one is None else one.identity,
            outcome=_outcome(end),
            code=code,
            tries=0 if one is None else one.tries,
            recovered=self.recovered,
            decision=_decision(self.decided),
            decided_by=None if self.decided is None else self.decided.by,
            started_at=self.first_at,
            seconds=_seconds(one, end),
        )


type _Outcome = Literal["ok", "error", "aborted", "timed_out", "unknown", "refused", "open"]


def _outcome(end: ToolCompleted | ToolRefused | None) -> _Outcome:
    if end is None:
        return "open"
    return "refused" if isinstance(end, ToolRefused) else end.outcome


def _decision(
    record: ApprovalDecided | ApprovalExpired | None,
) -> Literal["approve", "deny", "edit", "expired"] | None:
    if isinstance(record, ApprovalDecided):
        return record.decision
    return None if record is None else "expired"


def _seconds(start: ToolStarted | None, end: ToolCompleted | ToolRefused | None) -> float | None:
    """Return how long the last try ran; None when nobody knows."""
    if not isinstance(end, ToolCompleted) or end.outcome == "unknown":
        return None
    if end.outcome == "aborted" and start is not None and end.duration_seconds == 0:
        return (end.at - start.at).total_seconds()
    return end.duration_seconds


class Lines:
    """Collects what a report lists, record by record."""

    def __init__(self) -> None:
        self.errors: list[str] = []  # codes of attempts that failed
        self.children: int = 0
        self.erased = False
        self._attempts: list[_Attempt] = []
        self._models: dict[str, _ModelCall] = {}
        self._tools: dict[str, _ToolCall] = {}
        self._asked: dict[str, _ToolCall] = {}  # by approval
        self._open_model: str | None = None

    def attempts(self) -> tuple[AttemptLine, ...]:
        """Return the attempts in order."""
        return tuple(one.line() for one in self._attempts)

    def model_calls(self) -> tuple[ModelCallLine, ...]:
        """Return the model calls in order."""
        return tuple(one.line() for one in self._models.values())

    def tool_calls(self) -> tuple[ToolCallLine, ...]:
        """Return the tool calls in the order asked."""
        return tuple(one.line() for one in self._tools.values())

    def read(self, record: Record, state: RunState) -> None:
        """Take one record."""
        match record:
            case AttemptStarted():
                self._attempt(record, state)
            case AttemptEnded():
                self._attempts[-1].ended = record.reason
                if record.reason == "error":
                    self.errors.append(record.code or "unknown")
            case RunSuspended():
                self._attempts[-1].ended = "suspended"
            case RunSettled():
                self._attempts[-1].ended = "settled"
            case ModelStarted():
                self._models[record.call] = _ModelCall(record)
                self._open_model = record.call
            case ModelCompleted() | ModelFailed():
                self._model_ended(record)
            case ApprovalRequested():
                call = self._tool(record.call_id)
                call.identity, call.asked, call.decided = record.identity, record.approval_id, None
                self._asked[record.approval_id] = call
            case ApprovalDecided() | ApprovalExpired():
                self._asked[record.approval_id].decide(record)
            case ToolStarted():
                call = self._tool(record.call_id)
                call.first_at = call.first_at or record.at
                call.started = record
            case ToolCompleted() | ToolRefused():
                self._tool(record.call_id).ended = record
            case ChildSettled():
                self.children += 1
            case RunErased():
                self.erased = True
            case _:
                return

    def _attempt(self, record: AttemptStarted, state: RunState) -> None:
        """Begin an attempt; one before it that did not end lost its worker."""
        if self._attempts and self._attempts[-1].ended == "open":
            self._attempts[-1].ended = "taken"
            for call in state.ids("call", "started"):
                self._tool(call).recovered = True
        if self._open_model is not None:
            self._models[self._open_model].interrupted = True
            self._open_model = None
        self._attempts.append(_Attempt(record))

    def _model_ended(self, record: ModelCompleted | ModelFailed) -> None:
        self._models[record.call].ended = record
        self._open_model = None
        if isinstance(record, ModelCompleted):
            names = [one.name for one in record.said.calls] if record.said else []
            for place, call_id in enumerate(record.calls):
                self._tool(call_id).name = names[place] if place < len(names) else None

    def _tool(self, call_id: str) -> _ToolCall:
        return self._tools.setdefault(call_id, _ToolCall(call_id))
