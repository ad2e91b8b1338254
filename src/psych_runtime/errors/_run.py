"""What concerns one Run or Version."""

from collections.abc import Sequence

from psych_runtime.errors._base import PsychError

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


_REACHED = {"settled": "settled", "suspended": "settled or suspended"}


class RunError(PsychError):
    """Base of what concerns one Run or Version."""

    code = "run"


class RunNotFound(RunError):
    """No such Run in this tenant; another tenant's Run looks the same."""

    code = "run_not_found"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"no run {run_id!r} in this tenant; check the id and the scope")


class VersionNotFound(RunError):
    """No such Version in this tenant: publish it first."""

    code = "version_not_found"

    def __init__(self, *, version: str) -> None:
        self.version = version
        super().__init__(f"no version {version!r} in this tenant; publish the spec first")


class RunSettled(RunError):
    """The Run has ended; nothing was written. A message may start the next Run of the thread."""

    code = "run_settled"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id} has settled; to go on, dispatch with continues={run_id!r} or send "
            'with queue="next_run"'
        )


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
        goes_on = "" if follows is None else f", which goes on with run {follows},"
        remedy = (
            "no record can follow in its log: delete its rows in the database"
            if state == "corrupt"
            else "wait for it, or interrupt it, then erase"
        )
        super().__init__(f"run {run_id}{goes_on} has not settled: it is {state}; {remedy}")


class RunStopping(RunError):
    """Somebody asked the Run to stop already: only force=True adds to that, and it reads nothing.

    A message to queue next_run is still taken: it begins the next Run.
    """

    code = "run_stopping"

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id} is stopping already; to interrupt with force=True gives up what cannot "
            'be interrupted, to send with queue="next_run" reaches the next Run'
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
            f"run {run_id} did not complete ({why}); `psych report` tells what happened"
        )


class IdempotencyConflict(RunError):
    """The key was used for another request (ADM-2).

    Nothing was written; a retry with this key is useless.
    """

    code = "idempotency_conflict"

    def __init__(self, *, key: str, run_id: str) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(f"key {key!r} belongs to another request, of run {run_id}; use a new key")


class NotThreadTail(RunError):
    """`continues` names a Run that is not the settled tail of its thread (R-18)."""

    code = "not_thread_tail"

    def __init__(self, *, run_id: str, tail: str, state: str) -> None:
        self.run_id = run_id
        self.tail = tail
        self.state = state
        super().__init__(
            f"run {run_id} is not the settled tail of its thread: that is {tail} ({state})"
        )


class QueueFull(RunError):
    """The Run has as many messages queued as it takes (R-18); nothing was written.

    `reason` says which bound: entries, or bytes of those for the next Run together. Wait until
    some have been read, or cancel some.
    """

    code = "queue_full"

    def __init__(self, *, run_id: str, reason: str, bound: int) -> None:
        self.run_id = run_id
        self.reason = reason
        self.bound = bound
        what = (
            f"{bound} messages queued"
            if reason == "entries"
            else f"messages for the next run queued, and together with this one above {bound} bytes"
        )
        super().__init__(f"run {run_id} has {what}; wait until some are read, or cancel some")


class EntryNotFound(RunError):
    """The Run was never sent this message; the receipt of `send` names both."""

    code = "entry_not_found"

    def __init__(self, *, run_id: str, entry_id: str) -> None:
        self.run_id = run_id
        self.entry_id = entry_id
        super().__init__(
            f"run {run_id} was sent no message {entry_id!r}; pass run_id and entry_id of a receipt"
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
        super().__init__(f"message {entry_id} of run {run_id} is not queued any more: {reason}")


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
            f"run {run_id} waits for no decision about {name!r}; status() lists what it waits for"
        )


class ApprovalConflict(ApprovalError):
    """Somebody decided otherwise before (APP-2)."""

    code = "approval_conflict"

    def __init__(self, *, run_id: str, name: str, decision: str, by: str | None) -> None:
        self.run_id = run_id
        self.name = name
        self.decision = decision
        self.by = by
        who = "somebody" if by is None else by
        super().__init__(f"{who} decided about {name} of run {run_id} before: {decision}")


class ApprovalOver(ApprovalError):
    """Its time is over, or the Run has been stopped: nobody can decide any more (APP-4).

    `reason` says which: expired or voided.
    """

    code = "approval_over"

    def __init__(self, *, run_id: str, name: str, reason: str) -> None:
        self.run_id = run_id
        self.name = name
        self.reason = reason
        super().__init__(f"nobody can decide about {name} of run {run_id} any more: it is {reason}")


class ApprovalSuperseded(ApprovalError):
    """The call or its tool has changed since: another approval has taken its place."""

    code = "approval_superseded"

    def __init__(self, *, run_id: str, name: str, by: str) -> None:
        self.run_id = run_id
        self.name = name
        self.by = by
        super().__init__(
            f"{name} of run {run_id} is superseded by {by}; look at its arguments and decide anew"
        )


class WaitNotFound(RunError):
    """The Run waits for no such thing, or for several and none was named; `open` lists them."""

    code = "wait_not_found"

    def __init__(self, *, run_id: str, wait: str | None, open: Sequence[str]) -> None:
        self.run_id = run_id
        self.wait = wait
        self.open = tuple(open)
        found = ", ".join(open) or "nothing that anybody could deliver"
        asked = "which wait is not said" if wait is None else f"it has no wait {wait!r}"
        super().__init__(f"run {run_id}: {asked}; it waits for {found}")


class WaitOver(RunError):
    """What the Run waited for has come, or its time is over; `how` says which."""

    code = "wait_over"

    def __init__(self, *, run_id: str, wait: str, how: str) -> None:
        self.run_id = run_id
        self.wait = wait
        self.how = how
        super().__init__(f"wait {wait} of run {run_id} is over: {how}")


class WaitTimeout(RunError):
    """`wait` gave up; the Run goes on."""

    code = "wait_timeout"

    def __init__(self, *, run_id: str, until: str, timeout_seconds: float) -> None:
        self.run_id = run_id
        self.until = until
        self.timeout_seconds = timeout_seconds
        super().__init__(
            f"run {run_id} has not {_REACHED.get(until, f'reached {until}')} after "
            f"{timeout_seconds:g} s; it goes on: look at its status, or wait again"
        )
