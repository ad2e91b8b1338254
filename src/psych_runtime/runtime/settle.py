"""How a Run ends: what is open is closed, and the next Run of the thread begins (R-18).

Attempts and supervisors settle alike; only who writes it differs.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from psych_runtime._system import System
from psych_runtime.core.codec import sha256
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState
from psych_runtime.core.models import altered, trusted
from psych_runtime.ports.store import Admit
from psych_runtime.runtime.admission import admit, run_admitted
from psych_runtime.runtime.attempt import Attempt
from psych_schema.common import EndState
from psych_schema.model import Part, TextPart, UserMessage
from psych_schema.receipt import Receipt
from psych_schema.record import (
    Reason,
    Record,
    RunAdmitted,
    RunSettled,
    ThreadRef,
    ToolCompleted,
    ToolRefused,
    ToolResult,
)
from psych_schema.store import KeyRow

__all__ = [
    "Settlement",
    "next_input",
    "next_key",
    "next_key_row",
    "settle",
    "settlement",
    "successor",
    "unknown_outcome",
]

_run_settled: Final = trusted(RunSettled)


class Settlement(NamedTuple):
    """What closes a Run."""

    closers: tuple[Record, ...]
    settled: RunSettled
    next_run: RunAdmitted | None
    entry_id: str | None  # the first entry that the next Run took

    def linked(self, system: System) -> Callable[[str], Sequence[Admit]] | None:
        """Return what makes the next Run's admission in the same unit."""
        record = self.next_run
        if record is None:
            return None
        return lambda commit_id: [admit(record, commit_id=commit_id, system=system)]

    def keys(self, tenant: str) -> tuple[KeyRow, ...]:
        """Return the key row that lets nobody else admit the next Run for these entries."""
        if self.next_run is None or self.entry_id is None:
            return ()
        run_id = self.settled.run_id
        key = next_key(run_id, self.entry_id)
        receipt = Receipt(
            run_id=self.next_run.run_id, seq=1, entry_id=self.entry_id, head_hash=sha256(key)
        )
        return (next_key_row(tenant, run_id, key, receipt),)


def next_key(run_id: str, entry_id: str) -> str:
    """Return the key under which the Run behind `run_id` is admitted for an entry."""
    return f"next:{run_id}:{entry_id}"


def next_key_row(tenant: str, run_id: str, key: str, receipt: Receipt) -> KeyRow:
    """Return the row of such a key; `receipt` names the Run that was admitted."""
    return KeyRow(
        tenant=tenant,
        run_id=run_id,
        key=key,
        digest=sha256(key),
        receipt=receipt.model_dump_json(),
    )


def settlement(
    state: RunState,
    conversation: Conversation,
    admitted: RunAdmitted,
    *,
    end: EndState,
    code: str | None,
    output: JsonValue,
    system: System,
    now: datetime,
) -> Settlement:
    """Return what closes the Run as it stands."""
    run_id = admitted.run_id
    closers: list[Record] = [
        ToolRefused(
            run_id=run_id,
            id=system.new_id("rec"),
            at=now,
            call_id=call,
            code="aborted",
            message="The run ended before this call was executed.",
        )
        for call in state.ids("call", "asked", "proposed")
    ]
    closers += [
        unknown_outcome(run_id, call, record_id=system.new_id("rec"), at=now)
        for call in state.ids("call", "started")
    ]
    queued = list(state.ids("entry", "queued"))
    following = [e for e in queued if state.get("entry", e).text("queue") == "next_run"]
    words = [m for e in following if (m := conversation.entry(e)) is not None]
    next_run = successor(admitted, words, system) if following else None
    settled = _run_settled(
        run_id=run_id,
        id=system.new_id("rec"),
        at=now,
        state=end,
        reason=None if code is None else Reason(code=code),
        output=output,
        unconsumed=tuple(e for e in queued if e not in following),
        next_run=next_run.run_id if next_run else None,
    )
    return Settlement(tuple(closers), settled, next_run, following[0] if following else None)


def unknown_outcome(run_id: str, call_id: str, *, record_id: str, at: datetime) -> ToolCompleted:
    """Return the record of a call that may or may not have happened (RUN-1)."""
    message = (
        "Nobody knows what came of this call: its worker stopped while it ran. It may or may not "
        "have happened, and it was not tried again. Find out before you repeat it."
    )
    return ToolCompleted(
        run_id=run_id,
        id=record_id,
        at=at,
        call_id=call_id,
        outcome="unknown",
        result=ToolResult(message=message),
        duration_seconds=0.0,
        source="executed",
    )


def successor(
    admitted: RunAdmitted, messages: Sequence[UserMessage], system: System, *, by: str | None = None
) -> RunAdmitted:
    """Return the admission of the Run that follows in the thread, with messages as its input."""
    thread = ThreadRef(
        id=admitted.thread.id,
        position=admitted.thread.position + 1,
        previous=admitted.run_id,
    )
    record = run_admitted(
        system,
        version=admitted.version,
        scope=admitted.scope,
        input=next_input(messages),
        thread=thread,
        deadline_seconds=admitted.deadline_seconds,
        priority=admitted.priority,
        deltas=admitted.deltas,
    )
    return altered(record, {"by": by})


def next_input(messages: Sequence[UserMessage]) -> JsonValue:
    """Return the input of a Run that answers messages."""
    return {"message": _as_input(messages)}


def _as_input(messages: Sequence[UserMessage]) -> JsonValue:
    """Return messages as a Run's input: one text stays a text."""
    parts: list[Part] = [part for message in messages for part in message.parts]
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    value: JsonValue = from_json(to_json(parts))
    return value


async def settle(
    attempt: Attempt, end: EndState, code: str | None, output: JsonValue = None
) -> None:
    """End the Run. Raises Stale when somebody wrote first: look again."""
    found = settlement(
        attempt.state,
        attempt.conversation,
        attempt.admitted,
        end=end,
        code=code,
        output=output,
        system=attempt.host.system,
        now=attempt.now(),
    )
    attempt.journal.note(*found.closers)
    await attempt.journal.decide(
        found.settled,
        linked=found.linked(attempt.host.system),
        keys=found.keys(attempt.tenant),
    )
