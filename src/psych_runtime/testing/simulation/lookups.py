"""What must hold where a tool is asked what became of a call (RUN-1, R-9)."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NoReturn

from psych_runtime.core.streaks import NOT_HAPPENED
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.record import AttemptStarted, Record, ToolCompleted, ToolStarted

__all__ = ["Lookups"]

_ROUNDED_SECONDS: Final = 0.001

type _Name = tuple[str, str]  # run, call


class Lookups:
    """When calls began, in the log and in the world, and what was said about them since.

    `fail` is told what does not hold, `now` is the one true time, which no process knows.
    """

    def __init__(
        self, fail: Callable[[str], NoReturn], now: Callable[[], datetime], counts: Counter[str]
    ) -> None:
        self._fail = fail
        self._now = now
        self._counts = counts
        self._started: dict[_Name, ToolStarted] = {}
        self._claimed: dict[tuple[str, int], datetime] = {}  # by run and epoch
        self._executed: dict[_Name, datetime] = {}
        self._answers: dict[_Name, list[Executed]] = {}

    def begins(self, call: ToolContext) -> None:
        """Hear that a call is executed now."""
        self._executed[call.run_id, call.call_id] = self._now()

    def asks(
        self, tool: RegisteredTool, call: StartedCall, *, now: datetime, lease_seconds: float
    ) -> None:
        """Judge that a tool is asked, by the clock of whoever asks."""
        self._counts["lookups"] += 1
        name = (call.run_id, call.call_id)
        named = f"{tool.name}, {call.call_id} of {call.run_id} in epoch {call.epoch},"
        started = self._started.get(name)
        if started is None or call.started_at != started.at:
            self._fail(f"{named} is asked about a call that began at {call.started_at}")
        if started.safe_to_retry:
            self._fail(f"{named} is asked about a call that may run again")
        if started.epoch >= call.epoch:
            self._fail(f"{named} is asked about a call of epoch {started.epoch}")
        claimed = self._claimed[call.run_id, started.epoch + 1]
        over = max(started.at + timedelta(seconds=lease_seconds), claimed)
        rest = tool.timeout_seconds - (now - over).total_seconds()
        executed = self._executed.get(name)
        if executed is not None and call.epoch == started.epoch + 1:  # one clock judges it all
            ran = (self._now() - executed).total_seconds() + _ROUNDED_SECONDS
            rest = max(rest, tool.timeout_seconds - ran)
        if rest > 0:
            self._fail(f"{named} is asked {rest:.3f} s before the call can have ended")

    def answered(self, call: StartedCall, executed: Executed | None) -> None:
        """Hear what the tool said."""
        if executed is not None:
            self._answers.setdefault((call.run_id, call.call_id), []).append(executed)

    def add(self, record: Record) -> None:
        """Take a record of the log, and judge what it says of a call."""
        match record:
            case AttemptStarted():
                self._claimed[record.run_id, record.epoch] = record.at
            case ToolStarted():
                self._started[record.run_id, record.call_id] = record
            case ToolCompleted(source="reconciled"):
                self._judge(record)
            case _:
                return

    def _judge(self, record: ToolCompleted) -> None:
        name = (record.run_id, record.call_id)
        ended = (record.outcome, record.result, record.failure)
        answers = self._answers.get(name, ())
        if not any(one[:3] == ended or one.attachments for one in answers):
            self._fail(f"{record.call_id} of {record.run_id} ended as nobody said: {ended}")
        code = None if record.failure is None else record.failure.code
        happened = record.outcome != "unknown" and code != NOT_HAPPENED
        self._counts[f"looked up: {'happened' if happened else code or 'unknown'}"] += 1
        if happened and name not in self._executed:
            self._fail(f"{record.call_id} of {record.run_id} happened, and it was never executed")
