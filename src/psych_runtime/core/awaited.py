"""What a Run asked people for, and what came of it, record by record (R-12, R-13).

The fold knows where approvals, waits and calls stand; this knows what was said about them, and
since when attempts and calls run, of those that nobody may run again (R-9).
"""

from datetime import datetime
from typing import Final

from psych_schema.record import (
    ApprovalDecided,
    ApprovalRequested,
    AttemptStarted,
    EventReceived,
    Record,
    ToolStarted,
    WaitOpened,
    WaitResolved,
)

__all__ = ["Awaited"]

_KINDS: Final = frozenset(
    {
        "approval.requested",
        "approval.decided",
        "attempt.started",
        "wait.opened",
        "wait.resolved",
        "event.received",
        "tool.started",
    }
)


class Awaited:
    """Approvals by call, waits by call, events by id, each with its last word."""

    __slots__ = (
        *("_approvals", "_attempts", "_decisions", "_ending", "_events"),
        *("_resolutions", "_started", "_waits"),
        "ends",
    )

    def __init__(self) -> None:
        self._approvals: dict[str, ApprovalRequested] = {}  # by call: the last one asked for
        self._decisions: dict[str, ApprovalDecided] = {}
        self._waits: dict[str, WaitOpened] = {}  # by call
        self._ending: set[str] = set()  # waits with whose expiry the Run is to end
        self.ends = False  # one of them has expired
        self._resolutions: dict[str, WaitResolved] = {}
        self._events: dict[str, EventReceived] = {}
        self._started: dict[str, datetime] = {}  # calls that must not run twice
        self._attempts: dict[int, datetime] = {}  # by epoch

    def add(self, record: Record) -> None:
        """Take one record."""
        if vars(record)["type"] not in _KINDS:
            return
        match record:
            case ApprovalRequested():
                self._approvals[record.call_id] = record
            case ApprovalDecided():
                self._decisions[record.approval_id] = record
            case WaitOpened():
                if record.call is not None:
                    self._waits[record.call] = record
                if record.on_expiry == "settle":
                    self._ending.add(record.wait_id)
            case WaitResolved():
                self._resolutions[record.wait_id] = record
                self.ends |= record.how == "expired" and record.wait_id in self._ending
            case EventReceived():
                self._events[record.event_id] = record
            case AttemptStarted():
                self._attempts[record.epoch] = record.at
            case ToolStarted() if not record.safe_to_retry:
                self._started[record.call_id] = record.at
            case _:
                return

    def approval(self, call_id: str) -> ApprovalRequested | None:
        """Return the approval that was asked for last for a call."""
        return self._approvals.get(call_id)

    def decision(self, approval_id: str) -> ApprovalDecided | None:
        """Return what somebody decided."""
        return self._decisions.get(approval_id)

    def wait(self, call_id: str) -> WaitOpened | None:
        """Return the wait of a call."""
        return self._waits.get(call_id)

    def resolution(self, wait_id: str) -> WaitResolved | None:
        """Return what came of a wait."""
        return self._resolutions.get(wait_id)

    def started_at(self, call_id: str) -> datetime | None:
        """Return when a call began that must not run twice, by its writer's clock."""
        return self._started.get(call_id)

    def claimed_at(self, epoch: int) -> datetime | None:
        """Return when a worker took the Run under this epoch, by its own clock."""
        return self._attempts.get(epoch)

    def event(self, event_id: str) -> EventReceived | None:
        """Return an event that came."""
        return self._events.get(event_id)
