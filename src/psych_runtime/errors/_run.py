"""What concerns one Run or Version."""

from collections.abc import Sequence
from typing import Final

from psych_runtime.errors._base import PsychError, brief, lasting

__all__ = [
    "ApprovalConflict",
    "ApprovalError",
    "ApprovalNotFound",
    "ApprovalOver",
    "ApprovalSuperseded",
    "EntryNotFound",
    "EntryOver",
    "IdempotencyConflict",
    "NotThreadTail",
    "QueueFull",
    "RunError",
    "RunFailed",
    "RunNotFound",
    "RunNotSettled",
    "RunSettled",
    "RunStopping",
    "VersionNotFound",
    "WaitNotFound",
    "WaitOver",
    "WaitTimeout",
]


_REACHED: Final = {
    "decided": "been decided about",
    "settled": "settled",
    "suspended": "settled or suspended",
}
_LISTED: Final = 8
_FULL: Final = {
    "bytes": (
        "messages for the next run queued, and together with this one above {} bytes as JSON; "
        "wait until some are read, or cancel some"
    ),
    "entries": "{} messages queued; wait until some are read, or cancel some",
    "events": (
        "{} events kept that it has not waited for; deliver this one again when it waits, "
        "or interrupt the run"
    ),
}


def _run(run_id: str) -> str:
    return f"run {brief(run_id)}"


class RunError(PsychError):
    """Base of what concerns one Run or Version."""

    code = "run"


class RunNotFound(RunError):
    """No such Run in this tenant; another tenant's Run looks the same."""

    code = "run_not_found"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run {brief(run_id)!r} in this tenant; check the id and the scope")


class VersionNotFound(RunError):
    """No such Version in this tenant: publish it first."""

    code = "version_not_found"

    def __init__(self, *, version: str) -> None:
        self.version = version
        super().__init__(f"no version {brief(version)!r} in this tenant; publish the spec first")


class RunSettled(RunError):
    """The Run has ended; nothing was written. A message may start the next Run of the thread.

    `erased`: what was said in it is gone, so that no Run goes on with it.
    """

    code = "run_settled"

    def __init__(self, *, run_id: str, erased: bool = False) -> None:
        self.run_id = run_id
        self.erased = erased
        given = brief(run_id)
        remedy = (
            "has been erased; begin another thread, with dispatch() and no continues"
            if erased
            else f'to go on, dispatch with continues={given!r} or send with queue="next_run"'
        )
        super().__init__(f"run {given} has settled{' and ' if erased else '; '}{remedy}")


class RunNotSettled(RunError):
    """The Run has not ended, so that nothing of it, or of what it goes on with, may be erased.

    `follows` is the Run to erase when another one is in the way: the one at the end of its
    thread. Nothing was written.
    """

    code = "run_not_settled"

    def __init__(self, *, run_id: str, state: str, follows: str | None = None) -> None:
        self.run_id = run_id
        self.state = state
        self.follows = follows
        goes_on = "" if follows is None else f", which goes on with {_run(follows)},"
        remedy = (
            "no record can follow in its log: delete its rows in the database"
            if state == "corrupt"
            else "wait for it, or interrupt it, then erase"
        )
        super().__init__(f"{_run(run_id)}{goes_on} has not settled: it is {state}; {remedy}")


class RunStopping(RunError):
    """Somebody asked the Run to stop already: only force=True adds to that, and it reads nothing.

    A message to queue next_run is still taken: it begins the next Run.
    """

    code = "run_stopping"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"{_run(run_id)} is stopping already; to interrupt with force=True gives up what "
            'cannot be interrupted, to send with queue="next_run" reaches the next Run'
        )


class RunFailed(RunError):
    """The Run that was followed ended without completing: what was read of it is all there is.

    `state` says how it ended, `reason` is the code of why. Repeating the read changes nothing.
    """

    code = "run_failed"

    def __init__(self, *, run_id: str, state: str, reason: str | None) -> None:
        self.run_id = run_id
        self.state = state
        self.reason = reason
        why = state if reason in (None, state) else f"{state}, {reason}"
        super().__init__(
            f"{_run(run_id)} did not complete ({why}); `psych report` tells what happened"
        )


class IdempotencyConflict(RunError):
    """The key was used for another request (ADM-2).

    Nothing was written; a retry with this key is useless.
    """

    code = "idempotency_conflict"

    def __init__(self, *, key: str, run_id: str) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(
            f"key {brief(key)!r} belongs to another request, of {_run(run_id)}; use a new key"
        )


class NotThreadTail(RunError):
    """`continues` names a Run that is not the settled tail of its thread (R-18)."""

    code = "not_thread_tail"

    def __init__(self, *, run_id: str, tail: str, state: str) -> None:
        self.run_id = run_id
        self.tail = tail
        self.state = state
        super().__init__(
            f"{_run(run_id)} is not the settled tail of its thread: that is {brief(tail)} ({state})"
        )


class QueueFull(RunError):
    """The Run has as much queued as it takes (R-18); nothing was written.

    `reason` says which bound: entries, or bytes of those for the next Run together: wait until
    some have been read, or cancel some; or events, that nobody has waited for yet.
    """

    code = "queue_full"

    def __init__(self, *, run_id: str, reason: str, bound: int) -> None:
        self.run_id = run_id
        self.reason = reason
        self.bound = bound
        super().__init__(f"{_run(run_id)} has {_FULL[reason].format(bound)}")


class EntryNotFound(RunError):
    """The Run was never sent this message; the receipt of `send` names both."""

    code = "entry_not_found"

    def __init__(self, *, run_id: str, entry_id: str) -> None:
        self.run_id = run_id
        self.entry_id = entry_id
        super().__init__(
            f"{_run(run_id)} was sent no message {brief(entry_id)!r}; "
            "pass run_id and entry_id of a receipt"
        )


class EntryOver(RunError):
    """The message is not queued any more, so that nobody can cancel it.

    `reason` says why: consumed (the model was given it), cancelled, passed_on (it is input of
    the next Run of the thread) or left (the Run ended before it was read).
    """

    code = "entry_over"

    def __init__(self, *, run_id: str, entry_id: str, reason: str) -> None:
        self.run_id = run_id
        self.entry_id = entry_id
        self.reason = reason
        super().__init__(
            f"message {brief(entry_id)} of {_run(run_id)} is not queued any more: {reason}"
        )


class ApprovalError(RunError):
    """Base of why a decision is refused; nothing was written, of the other calls neither."""

    code = "approval"


class ApprovalNotFound(ApprovalError):
    """The Run has asked nobody about this call."""

    code = "approval_not_found"

    def __init__(self, *, run_id: str, name: str) -> None:
        self.run_id = run_id
        self.name = name
        super().__init__(
            f"{_run(run_id)} waits for no decision about {brief(name)!r}; "
            "status() lists what it waits for"
        )


class ApprovalConflict(ApprovalError):
    """Somebody decided otherwise before (APP-2)."""

    code = "approval_conflict"

    def __init__(self, *, run_id: str, name: str, decision: str, by: str | None) -> None:
        self.run_id = run_id
        self.name = name
        self.decision = decision
        self.by = by
        who = "somebody" if by is None else brief(by)
        super().__init__(f"{who} decided about {brief(name)} of {_run(run_id)} before: {decision}")


class ApprovalOver(ApprovalError):
    """Its time is over, or the Run has been stopped: nobody can decide any more (APP-4).

    `reason` says which: expired or voided.
    """

    code = "approval_over"

    def __init__(self, *, run_id: str, name: str, reason: str) -> None:
        self.run_id = run_id
        self.name = name
        self.reason = reason
        super().__init__(
            f"nobody can decide about {brief(name)} of {_run(run_id)} any more: it is {reason}"
        )


class ApprovalSuperseded(ApprovalError):
    """The call or its tool has changed since: another approval has taken its place."""

    code = "approval_superseded"

    def __init__(self, *, run_id: str, name: str, by: str) -> None:
        self.run_id = run_id
        self.name = name
        self.by = by
        super().__init__(
            f"{brief(name)} of {_run(run_id)} is superseded by {brief(by)}; "
            "look at its arguments and decide anew"
        )


class WaitNotFound(RunError):
    """The Run waits for no such thing, or for several and none was named; `open` lists them.

    `why` says what the one named is, to which nobody delivers, and how it ends.
    """

    code = "wait_not_found"

    def __init__(
        self, *, run_id: str, wait: str | None, open: Sequence[str], why: str | None = None
    ) -> None:
        self.run_id = run_id
        self.wait = wait
        self.open = tuple(open)
        self.why = why
        found = ", ".join(self.open[:_LISTED]) or "nothing that anybody could deliver"
        if len(self.open) > _LISTED:
            found += f" and {len(self.open) - _LISTED} more; status() lists them"
        asked = why
        if asked is None:
            asked = "which wait is not said" if wait is None else f"it has no wait {brief(wait)!r}"
        super().__init__(f"{_run(run_id)}: {asked}; it waits for {found}")


class WaitOver(RunError):
    """What the Run waited for has come, or its time is over; `how` says which."""

    code = "wait_over"

    def __init__(self, *, run_id: str, wait: str, how: str) -> None:
        self.run_id = run_id
        self.wait = wait
        self.how = how
        super().__init__(f"wait {brief(wait)} of {_run(run_id)} is over: {how}")


class WaitTimeout(RunError):
    """`wait` gave up, or a session's `ask`; the Run goes on.

    `until` says for what it was: settled, suspended, a seq, or decided (by whom `ask` asked).
    """

    code = "wait_timeout"

    def __init__(self, *, run_id: str, until: str, timeout_seconds: float) -> None:
        self.run_id = run_id
        self.until = until
        self.timeout_seconds = timeout_seconds
        super().__init__(
            f"{_run(run_id)} has not {_REACHED.get(until, f'reached {until}')} after "
            f"{lasting(timeout_seconds)}; it goes on: look at its status, or wait again"
        )
