"""Letting go of a Run that waits: no lease, slot, connection or task is held (R-13, SUS-4)."""

from datetime import datetime

from psych_runtime.runtime.attempt import Attempt
from psych_schema.record import RunSuspended

__all__ = ["suspend"]


async def suspend(attempt: Attempt, *, until: datetime | None = None) -> None:
    """Write down what the Run waits for, and when it can be claimed at the latest.

    That is `until`, or when something that it waits for is due or expires, in store time.
    Raises Stale when somebody decided or delivered meanwhile.
    """
    state = attempt.state
    waits = [*state.ids("wait", "open"), *state.ids("approval", "open")]
    instants = [
        state.get(kind, one).instant(name)
        for kind in ("wait", "approval")
        for one in state.ids(kind, "open")
        for name in ("due", "expires_at")
    ]
    wake_at = min((one for one in (until, *instants) if one is not None), default=None)
    await attempt.journal.decide(
        RunSuspended(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            waits=tuple(waits),
            wake_at=wake_at,
        )
    )
    if wake_at is not None:
        attempt.parked_seconds = max(0.0, (wake_at - attempt.store_now()).total_seconds())
