"""What the table cannot say; each predicate is a reason of CorruptLog.

No predicate reads `at`: that an instant has passed is the runtime's judgement, in store time.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from psych_schema.record import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    AttemptEnded,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    Record,
    RunSettled,
    RunSuspended,
    ToolCompleted,
    ToolStarted,
    TurnStarted,
    WaitResolved,
)

if TYPE_CHECKING:
    from psych_runtime.core.fold import RunState

__all__ = ["GUARDS"]


def _calls_that_wait(state: "RunState") -> set[str | None]:
    """Return the calls on which a wait or an approval is open."""
    waits = {state.get("wait", wait).text("call") for wait in state.ids("wait", "open")}
    approvals = {
        state.get("approval", one).text("call_id") for one in state.ids("approval", "open")
    }
    return waits | approvals


def _queued(state: "RunState", *queues: str) -> list[str]:
    return [
        e for e in state.ids("entry", "queued") if state.get("entry", e).text("queue") in queues
    ]


def _only_safe_running(state: "RunState", record: AttemptEnded) -> bool:
    """A call that runs in this epoch and may not be repeated forbids to let go."""
    waiting = _calls_that_wait(state)
    for call in state.ids("call", "started"):
        one = state.get("call", call)
        if one.epoch == state.epoch and not one.get("safe_to_retry") and call not in waiting:
            return False
    return True


def _open_calls_wait(state: "RunState", record: RunSuspended) -> bool:
    """Every open call, also of older epochs, has an open wait or approval."""
    waiting = _calls_that_wait(state)
    return all(call in waiting for call in state.ids("call", "asked", "proposed", "started"))


def _waits_listed(state: "RunState", record: RunSuspended) -> bool:
    """run.suspended lists exactly the open approvals and waits."""
    return sorted(record.waits) == sorted(
        [*state.ids("wait", "open"), *state.ids("approval", "open")]
    )


def _something_to_wait_for(state: "RunState", record: RunSuspended) -> bool:
    """A Run is not suspended for nothing."""
    return bool(record.waits) or record.wake_at is not None


def _unconsumed_listed(state: "RunState", record: RunSettled) -> bool:
    """run.settled lists exactly the queued steer and follow_up entries."""
    return sorted(record.unconsumed) == sorted(_queued(state, "steer", "follow_up"))


def _next_run_listed(state: "RunState", record: RunSettled) -> bool:
    """run.settled names a next Run exactly when next_run entries are queued."""
    return (record.next_run is not None) == bool(_queued(state, "next_run"))


def _completed_leaves_nothing(state: "RunState", record: RunSettled) -> bool:
    """A completed Run has read every message."""
    return record.state != "completed" or not record.unconsumed


def _turn_follows(state: "RunState", record: TurnStarted) -> bool:
    """Turns are numbered without a gap."""
    return record.turn == state.last_turn + 1


def _turn_unless_compaction(state: "RunState", record: ModelStarted) -> bool:
    """A model call belongs to a turn, a compaction to none."""
    return (record.turn is None) == (record.purpose == "compaction")


def _turn_of_call(state: "RunState", record: ModelCompleted | ModelFailed) -> bool:
    """The end of a call names the turn that its start named."""
    return state.get("model", record.call).get("turn") == record.turn


def _compaction_asks_nothing(state: "RunState", record: ModelCompleted) -> bool:
    """A compaction has no tool calls."""
    return record.turn is not None or not record.calls


def _no_other_approval(state: "RunState", record: ApprovalRequested) -> bool:
    """A call has one open or unused approval; a new one supersedes that, never another call's."""
    return all(
        (one == record.supersedes) == (state.get("approval", one).text("call_id") == record.call_id)
        for one in state.ids("approval", "open", "granted")
    )


def _digest_approved(state: "RunState", record: ApprovalDecided) -> bool:
    """approve names the requested digest; edit names another."""
    asked = state.get("approval", record.approval_id).text("digest")
    return record.decision == "deny" or (record.digest == asked) == (record.decision == "approve")


def _approval_is_due(state: "RunState", record: ApprovalExpired) -> bool:
    """Only an approval that can expire is due."""
    expires = state.get("approval", record.approval_id).instant("expires_at")
    return record.reason != "due" or expires is not None


def _retry_is_safe(state: "RunState", record: ToolStarted) -> bool:
    """A started call starts again only if it is safe, in a later epoch, as the next try."""
    call = state.get("call", record.call_id)
    if call.phase != "started":
        return record.tries == 1
    safe = call.get("safe_to_retry") is True and call.epoch < state.epoch
    return safe and record.tries == call.number("tries") + 1


def _grant_fits(state: "RunState", record: ToolStarted) -> bool:
    """The named grant is for this call and these arguments."""
    if record.approval_id is None:
        return True
    grant = state.get("approval", record.approval_id)
    return grant.text("call_id") == record.call_id and grant.text("digest") == record.digest


def _stub_in_fork(state: "RunState", record: ToolCompleted) -> bool:
    """Stubbed results are written from outside, before a fork's first attempt."""
    if record.source != "stubbed":
        return record.epoch != 0 or record.seq == 0
    return state.is_fork and state.epoch == 0


def _resolution_fits(state: "RunState", record: WaitResolved) -> bool:
    """due: a timer with a due; expired: it can expire; delivered: never a timer.

    All but delivered are the attempt's to say, which needs a running Run.
    """
    wait = state.get("wait", record.wait_id)
    inside = (record.epoch != 0 or record.seq == 0) and state.phase == "running"
    match record.how:
        case "delivered":
            return wait.text("kind") != "timer"
        case "due":
            return inside and wait.text("kind") == "timer" and wait.instant("due") is not None
        case "expired":
            return inside and wait.instant("expires_at") is not None
        case "cancelled":
            return inside


type _Guard = Callable[["RunState", Record], bool]

GUARDS: Final[Mapping[str, _Guard]] = {
    guard.__name__.removeprefix("_"): cast("_Guard", guard)
    for guard in (
        _approval_is_due,
        _compaction_asks_nothing,
        _completed_leaves_nothing,
        _digest_approved,
        _grant_fits,
        _next_run_listed,
        _no_other_approval,
        _only_safe_running,
        _open_calls_wait,
        _resolution_fits,
        _retry_is_safe,
        _something_to_wait_for,
        _stub_in_fork,
        _turn_follows,
        _turn_of_call,
        _turn_unless_compaction,
        _unconsumed_listed,
        _waits_listed,
    )
}
