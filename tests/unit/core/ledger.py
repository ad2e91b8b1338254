"""A second opinion on what may follow: the catalogue of records in plain code, without a table.

Slow, obvious, and written from the protocol alone; whatever the fold says is compared with it.
"""

from collections.abc import Mapping

from psych_schema.record import (
    AbortRequested,
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    AttemptEnded,
    AttemptStarted,
    ChildAdmitted,
    MemoryChanged,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    QueueConsumed,
    QueueEnqueued,
    Record,
    RunAdmitted,
    RunSettled,
    RunSuspended,
    StepCompleted,
    StepStarted,
    TasksUpdated,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
    TurnStarted,
    WaitOpened,
    WaitResolved,
)

__all__ = ["Ledger"]

type Moves = dict[tuple[str, str], str] | None
"""Where objects go; None: the record may not follow."""

OPEN_CALLS = ("asked", "proposed", "started")
ALIVE = ("ready", "running", "suspended")
FROM_OUTSIDE = {
    "abort.requested",
    "queue.enqueued",
    "queue.cancelled",
    "approval.decided",
    "event.received",
    "wait.resolved",
    "child.settled",
}
NO_MODEL_CALL = {
    "attempt.ended",
    "run.suspended",
    "run.settled",
    "model.started",
    "context.compacted",
}
NO_TOOL_CALL = {"run.settled", "turn.started", "context.compacted"}
NO_ABORT = {"approval.decided", "wait.opened", "wait.resolved"}
SINGLE: Mapping[str, tuple[str, str | None, tuple[str, ...], str | None]] = {
    "run.erased": ("run", None, ("settled",), "erased"),
    "attempt.ended": ("run", None, ("running",), "ready"),
    "tools.offered": ("offer", "hash", ("none", "known"), "known"),
    "advisory.added": ("advisory", "advisory_id", ("none",), "added"),
    "queue.enqueued": ("entry", "entry_id", ("none",), "queued"),
    "queue.cancelled": ("entry", "entry_id", ("queued",), "cancelled"),
    "model.delta": ("model", "call", ("open",), None),
    "tool.progress": ("call", "call_id", ("started",), None),
    "event.received": ("event", "event_id", ("none",), "kept"),
    "child.admitted": ("child", "child", ("none",), "live"),
    "child.messaged": ("child", "child", ("live",), None),
    "child.settled": ("child", "child", ("live",), "settled"),
    "context.compacted": ("model", "call", ("completed",), "used"),
}
"""What most records do: one object, from one of these phases to that one, or nowhere."""


def said(record: Record, field: str) -> object:
    """Return a field that records of this kind have."""
    value: object = getattr(record, field)
    return value


class Ledger:
    """Every object's phase, and the records that made and moved it."""

    def __init__(self) -> None:
        self.phases: dict[tuple[str, str], str] = {}
        self.moved: dict[tuple[str, str], Record] = {}
        self.made: dict[tuple[str, str], Record] = {}
        self.epoch = 0
        self.starts: dict[str, ToolStarted] = {}  # the last one of each call
        self.started_in: dict[str, int] = {}
        self.last_turn = 0
        self.is_fork = False

    def phase(self, kind: str, key: str = "") -> str:
        return self.phases.get((kind, key), "none")

    def those(self, kind: str, *phases: str) -> list[str]:
        return [key for (k, key), phase in self.phases.items() if k == kind and phase in phases]

    def may(self, record: Record) -> bool:
        """Tell whether the record may follow."""
        return self._moves(record) is not None

    def take(self, record: Record) -> None:
        """Take a record that may follow."""
        moves = self._moves(record)
        assert moves is not None
        if record.type == "attempt.started":
            self.epoch += 1
        for place, phase in moves.items():
            self.phases[place] = phase
            self.moved[place] = record
            self.made.setdefault(place, record)
        match record:
            case RunAdmitted():
                self.is_fork = record.base is not None
            case TurnStarted():
                self.last_turn = record.turn
            case ToolStarted():
                self.starts[record.call_id] = record
                self.started_in[record.call_id] = self.epoch
            case _:
                pass

    def _moves(self, record: Record) -> Moves:
        stubbed = isinstance(record, ToolCompleted) and record.source == "stubbed"
        need: tuple[str, ...] = ("running",)
        if record.type in FROM_OUTSIDE or record.type == "attempt.started":
            need = ALIVE
        elif record.type in ("run.admitted", "run.erased") or stubbed:
            need = {"run.admitted": ("none",), "run.erased": ("settled",)}.get(
                record.type, ("ready",)
            )
        if self.phase("run") not in need or not self._nothing_forbids(record):
            return None
        moves = self._named(record)
        if moves is not None and record.type in FROM_OUTSIDE and self.phase("run") == "suspended":
            moves["run", ""] = "ready"
        return moves

    def _nothing_forbids(self, record: Record) -> bool:
        """Judge what must not be there, and abort."""
        kind = record.type
        if kind in NO_MODEL_CALL and self.those("model", "open"):
            return False
        if kind in NO_TOOL_CALL and self.those("call", *OPEN_CALLS):
            return False
        return kind not in NO_ABORT or self.phase("abort") == "none"

    def _named(self, record: Record) -> Moves:
        match record:
            case RunAdmitted():
                return {("run", ""): "ready"}
            case RunSuspended():
                return self._suspended(record)
            case RunSettled():
                return self._settled(record)
            case AbortRequested():
                return self._aborted(record)
            case TurnStarted():
                return self._turn(record)
            case QueueConsumed():
                return self._all(("entry", record.entries, "queued", "consumed"))
            case ModelStarted():
                return self._model_started(record)
            case ModelCompleted() | ModelFailed():
                return self._model_ended(record)
            case ToolRefused() | ToolStarted() | ToolCompleted():
                return self._call(record)
            case ApprovalRequested() | ApprovalDecided() | ApprovalExpired():
                return self._approval(record)
            case WaitOpened() | WaitResolved():
                return self._wait(record)
            case StepStarted():
                return self._step(record)
            case _:
                return self._single(record)

    def _single(self, record: Record) -> Moves:
        match record:
            case AttemptStarted():
                cut = {("model", one): "interrupted" for one in self.those("model", "open")}
                return {("run", ""): "running", **cut}
            case TasksUpdated() | MemoryChanged():
                return {}
            case StepCompleted():
                after = "done" if record.retry_at is None else "retry"
                return self._all(("step", (record.step_id,), "open", after))
            case AttemptEnded() if self._unsafe_here():
                return None
            case QueueEnqueued() if record.queue != "next_run" and self.phase("abort") != "none":
                return None
            case ChildAdmitted() if not self._owned(call=record.call, step=record.step):
                return None
            case _:
                what, field, source, target = SINGLE[record.type]
                key = "" if field is None else str(said(record, field))
                if self.phase(what, key) not in source:
                    return None
                return {} if target is None else {(what, key): target}

    def _all(self, *groups: tuple[str, tuple[str, ...], str, str]) -> Moves:
        moves: dict[tuple[str, str], str] = {}
        for kind, keys, source, target in groups:
            if len(set(keys)) < len(keys) or any(self.phase(kind, k) != source for k in keys):
                return None
            moves |= {(kind, key): target for key in keys}
        return moves

    def _owned(self, *, call: str | None = None, step: str | None = None) -> bool:
        """Tell whether the call that is named runs, and the step is open."""
        runs = call is None or self.phase("call", call) == "started"
        return runs and (step is None or self.phase("step", step) == "open")

    def _waiting(self) -> set[object]:
        """Return the calls on which somebody is waited for."""
        waits = {said(self.made["wait", one], "call") for one in self.those("wait", "open")}
        asked = {
            said(self.made["approval", one], "call_id") for one in self.those("approval", "open")
        }
        return waits | asked

    def _unsafe_here(self) -> bool:
        """Tell whether a call of this epoch runs that may not be repeated, and nobody waits."""
        return any(
            self.started_in[call] == self.epoch
            and not self.starts[call].safe_to_retry
            and call not in self._waiting()
            for call in self.those("call", "started")
        )

    def _suspended(self, record: RunSuspended) -> Moves:
        if any(call not in self._waiting() for call in self.those("call", *OPEN_CALLS)):
            return None
        listed = sorted([*self.those("wait", "open"), *self.those("approval", "open")])
        if sorted(record.waits) != listed or not (listed or record.wake_at):
            return None
        return {("run", ""): "suspended"}

    def _settled(self, record: RunSettled) -> Moves:
        queued = self.those("entry", "queued")
        later = [e for e in queued if said(self.made["entry", e], "queue") == "next_run"]
        unread = sorted(set(queued) - set(later))
        if self.those("step", "open") or sorted(record.unconsumed) != unread:
            return None
        if (record.next_run is not None) != bool(later):
            return None
        loose = unread or self.those("child", "live") or self.phase("abort") != "none"
        if record.state == "completed" and loose:
            return None
        return {
            ("run", ""): "settled",
            **{("approval", one): "voided" for one in self.those("approval", "open", "granted")},
            **{("wait", one): "voided" for one in self.those("wait", "open")},
            **{("entry", one): "voided" for one in queued},
        }

    def _aborted(self, record: AbortRequested) -> Moves:
        if self.phase("abort") not in (("none", "requested") if record.force else ("none",)):
            return None
        return {
            ("abort", ""): "forced" if record.force else "requested",
            **{("approval", one): "voided" for one in self.those("approval", "open", "granted")},
            **{("wait", one): "voided" for one in self.those("wait", "open")},
        }

    def _turn(self, record: TurnStarted) -> Moves:
        if self.those("turn", "open") or record.turn != self.last_turn + 1:
            return None
        return {("turn", str(record.turn)): "open"} if self._owned(step=record.step) else None

    def _model_started(self, record: ModelStarted) -> Moves:
        if (record.turn is None) != (record.purpose == "compaction"):
            return None
        if record.turn is not None and self.phase("turn", str(record.turn)) != "open":
            return None
        if record.offer is not None and self.phase("offer", record.offer) != "known":
            return None
        return (
            {("model", record.call): "open"}
            if self.phase("model", record.call) == "none"
            else (None)
        )

    def _model_ended(self, record: ModelCompleted | ModelFailed) -> Moves:
        if self.phase("model", record.call) != "open":
            return None
        if said(self.made["model", record.call], "turn") != record.turn:
            return None
        turn = () if record.turn is None else (str(record.turn),)
        if isinstance(record, ModelFailed):
            over = turn if record.next == "give_up" else ()
            failed = ("model", (record.call,), "open", "failed")
            return self._all(failed, ("turn", over, "open", "failed"))
        if record.turn is None and record.calls:
            return None
        return self._all(
            ("model", (record.call,), "open", "completed"),
            ("turn", turn, "open", "answered"),
            ("call", record.calls, "none", "asked"),
        )

    def _call(self, record: ToolRefused | ToolStarted | ToolCompleted) -> Moves:
        call, now = record.call_id, self.phase("call", record.call_id)
        if isinstance(record, ToolCompleted):
            if record.source == "stubbed":
                may = now == "asked" and self.is_fork and self.epoch == 0
            else:
                may = now == "started"
            return {("call", call): "done"} if may else None
        if not self._owned(call=record.parent_call, step=record.step):
            return None
        nested = record.parent_call is not None or record.step is not None
        first = "none" if nested else "asked"
        if isinstance(record, ToolRefused):
            return {("call", call): "done"} if now in (first, "proposed") else None
        tries = 1
        if now == "started":
            start = self.starts[call]
            if not start.safe_to_retry or self.started_in[call] >= self.epoch:
                return None
            tries = start.tries + 1
        if record.tries != tries:
            return None
        if record.approval_id is None:
            return {("call", call): "started"} if now in (first, "started") else None
        grant = ("approval", record.approval_id)
        if now != "proposed" or self.phase(*grant) != "granted" or self.phase("abort") != "none":
            return None
        fits = said(self.moved[grant], "digest") == record.digest
        fits = fits and said(self.made[grant], "call_id") == call
        return {("call", call): "started", grant: "used"} if fits else None

    def _approval(self, record: ApprovalRequested | ApprovalDecided | ApprovalExpired) -> Moves:
        one = ("approval", record.approval_id)
        if isinstance(record, ApprovalRequested):
            return self._requested(record)
        if self.phase(*one) != "open":
            return None
        asked = self.made[one]
        if isinstance(record, ApprovalExpired):
            due = record.reason == "due" and said(asked, "expires_at") is None
            return None if due else {one: "denied"}
        same = record.digest == said(asked, "digest")
        if record.decision == "deny":
            return {one: "denied"}
        return {one: "granted"} if same == (record.decision == "approve") else None

    def _requested(self, record: ApprovalRequested) -> Moves:
        nested = record.parent_call is not None or record.step is not None
        proposable = ("none" if nested else "asked", "proposed")
        one = ("approval", record.approval_id)
        if self.phase(*one) != "none" or self.phase("call", record.call_id) not in proposable:
            return None
        if not self._owned(call=record.parent_call, step=record.step):
            return None
        before = [
            key
            for key in self.those("approval", "open", "granted")
            if said(self.made["approval", key], "call_id") == record.call_id
        ]
        if before != ([] if record.supersedes is None else [record.supersedes]):
            return None
        replaced = {("approval", key): "superseded" for key in before}
        return {one: "open", ("call", record.call_id): "proposed", **replaced}

    def _wait(self, record: WaitOpened | WaitResolved) -> Moves:
        one = ("wait", record.wait_id)
        if isinstance(record, WaitOpened):
            on = record.call is None or self.phase("call", record.call) in OPEN_CALLS
            may = on and self._owned(step=record.step) and self.phase(*one) == "none"
            return {one: "open"} if may else None
        if self.phase(*one) != "open":
            return None
        opened = self.made[one]
        timer = said(opened, "kind") == "timer"
        fits = {
            "delivered": not timer,
            "due": timer and said(opened, "due") is not None,
            "expired": said(opened, "expires_at") is not None,
            "cancelled": True,
        }[record.how]
        if not fits or (record.how != "delivered" and self.phase("run") != "running"):
            return None
        if record.event_id is None:
            return {one: "resolved"}
        kept = ("event", record.event_id)
        return {one: "resolved", kept: "used"} if self.phase(*kept) == "kept" else None

    def _step(self, record: StepStarted) -> Moves:
        undone = record.compensates is None or self.phase("step", record.compensates) == "done"
        may = undone and self.phase("step", record.step_id) in ("none", "retry")
        return {("step", record.step_id): "open"} if may else None
