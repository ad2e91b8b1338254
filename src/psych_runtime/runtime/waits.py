"""Waits of calls: opened when a call asks for one, over when something comes or time is (R-13)."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from psych_runtime.runtime.attempt import Attempt
from psych_runtime.tools.builtin import Waiting
from psych_schema.record import EventReceived, Record, WaitOpened, WaitResolved

__all__ = ["CROWDED", "has_expired", "has_room", "open_wait", "overdue_waits", "waits"]

CROWDED: Final = (
    "Too many calls wait already; this one was not executed. Ask for it again once they are over."
)
"""What the model is told of a call that may not wait, too."""

_MOST: Final = 48  # of the 128 things that a header names; messages may be 64, events 16


def has_room(attempt: Attempt) -> bool:
    """Tell whether one more call may wait, for consent or for something else."""
    waiting = sum(1 for _ in attempt.state.ids("approval", "open", "granted"))
    waiting += sum(1 for _ in attempt.state.ids("wait", "open"))
    return waiting + len(attempt.asking) < _MOST


def waits(attempt: Attempt, call_id: str) -> bool:
    """Tell whether a call waits for something that has not come."""
    wait = attempt.awaited.wait(call_id)
    return wait is not None and attempt.state.get("wait", wait.wait_id).phase == "open"


def open_wait(attempt: Attempt, call_id: str, waiting: Waiting) -> Sequence[Record]:
    """Return the records that open a call's wait; an event that came before meets it at once."""
    opened = WaitOpened(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        wait_id=attempt.new_id("wait"),
        kind=waiting.kind,
        call=call_id,
        ask=waiting.ask,
        payload_schema=waiting.payload_schema,
        due=_after(attempt, waiting.due_seconds),
        expires_at=_after(attempt, waiting.expires_seconds),
        on_expiry=waiting.on_expiry,
    )
    kept = _kept_event(attempt, waiting)
    if kept is None:
        return (opened,)
    return opened, _resolved(attempt, opened.wait_id, "delivered", event_id=kept.event_id)


def _kept_event(attempt: Attempt, waiting: Waiting) -> EventReceived | None:
    """Return the first event of that name that nobody has waited for yet."""
    if waiting.kind != "event":
        return None
    for event_id in attempt.state.ids("event", "kept"):
        event = attempt.awaited.event(event_id)
        if event is not None and waiting.ask == {"event": event.name}:
            return event
    return None


def overdue_waits(attempt: Attempt) -> Iterator[WaitResolved]:
    """Yield the end of each wait whose time is over, in store time."""
    now = attempt.store_now()
    for wait_id in list(attempt.state.ids("wait", "open")):
        wait = attempt.state.get("wait", wait_id)
        due, expires = wait.instant("due"), wait.instant("expires_at")
        if wait.text("kind") == "timer" and due is not None and due <= now:
            yield _resolved(attempt, wait_id, "due")
        elif expires is not None and expires <= now:
            yield _resolved(attempt, wait_id, "expired")


def has_expired(attempt: Attempt) -> bool:
    """Tell whether a wait has expired with which the Run is to end."""
    return attempt.awaited.ends


def _after(attempt: Attempt, seconds: float | None) -> datetime | None:
    return None if seconds is None else attempt.store_now() + timedelta(seconds=seconds)


def _resolved(
    attempt: Attempt,
    wait_id: str,
    how: Literal["delivered", "due", "expired"],
    *,
    event_id: str | None = None,
) -> WaitResolved:
    return WaitResolved(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        wait_id=wait_id,
        how=how,
        event_id=event_id,
    )
