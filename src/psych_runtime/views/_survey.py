"""One pass over a log for every view: the fold, and the records that views quote.

A log that is illegal or cannot be read is surveyed as far as it can be (LOG-3): views show
what is wrong with it, they do not fail.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from psych_runtime.core.codec import SCHEMA_VERSION, Entry
from psych_runtime.core.fold import RunState, advance
from psych_runtime.errors import CorruptLog
from psych_schema.record import (
    ApprovalRequested,
    AttemptEnded,
    AttemptStarted,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    QueueEnqueued,
    Record,
    RunAdmitted,
    RunSettled,
    ToolStarted,
    WaitOpened,
)
from psych_schema.store import RunRow

__all__ = ["Problem", "Reader", "Survey", "survey"]

type Reader = Callable[[Record, RunState], None]
"""Is told each record, and the state after it."""


class Problem(NamedTuple):
    """What is wrong with a log, and where."""

    reason: str
    seq: int


class Survey:
    """What a log says, and where it stops to say anything."""

    def __init__(self, header: RunRow) -> None:
        self.header = header
        self.state = RunState()
        self.problem: Problem | None = None
        self.admitted: RunAdmitted | None = None
        self.settled: RunSettled | None = None
        self.released: AttemptEnded | None = None  # how the last attempt let go, if it did
        self.failed: ModelFailed | None = None  # the last model call, if it failed
        self.failure: ModelFailed | None = None  # the last that said why, in this Run at all
        self.fails = False  # no model call was completed since `failure`
        self.requests: dict[str, ApprovalRequested] = {}
        self.waits: dict[str, WaitOpened] = {}
        self.entries: dict[str, QueueEnqueued] = {}
        self.started: dict[str, ToolStarted] = {}

    @property
    def corrupt(self) -> bool:
        """Tell whether the log is one that the protocol cannot produce."""
        return self.problem is not None

    @property
    def newer(self) -> bool:
        """Tell whether a newer build wrote what this one cannot read (R-16)."""
        return self.header.schema_version > SCHEMA_VERSION

    @property
    def whole(self) -> bool:
        """Tell whether everything up to the head could be read."""
        return self.state.position.seq >= self.header.head

    def take(self, record: Record) -> None:
        """Keep what views may quote."""
        match record:
            case RunAdmitted():
                self.admitted = record
            case RunSettled():
                self.settled = record
            case AttemptStarted():
                self.released = None
            case AttemptEnded():
                self.released = record
            case ModelStarted():
                self.failed = None
            case ModelFailed():
                self.failed = record
                if record.said is not None and record.said.message:
                    self.failure, self.fails = record, True
            case ModelCompleted():
                self.fails = False
            case ApprovalRequested():
                self.requests[record.approval_id] = record
            case WaitOpened():
                self.waits[record.wait_id] = record
            case QueueEnqueued():
                self.entries[record.entry_id] = record
            case ToolStarted():
                self.started[record.call_id] = record
            case _:
                return


def survey(header: RunRow, entries: Iterable[Entry], *readers: Reader) -> Survey:
    """Fold `entries` once, telling `readers` about each; stop where the log is illegal."""
    found = Survey(header)
    state = found.state
    for entry in entries:
        try:
            advance(state, entry)
        except CorruptLog as error:
            found.problem = Problem(error.reason, error.seq)
            return found
        found.take(entry.record)
        for reader in readers:
            reader(entry.record, state)
    if not found.whole and not found.newer:
        found.problem = Problem("unreadable", state.position.seq + 1)
    elif header.state == "corrupt":
        found.problem = Problem("marked_corrupt", header.head)
    return found
