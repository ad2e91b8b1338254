"""Random legal logs: proposals of every record type, most of them about objects that are there."""

from collections.abc import Callable, Mapping
from random import Random

from psych_runtime.core.fold import RunState
from psych_runtime.testing import LogBuilder
from psych_schema.record import Record
from psych_schema.transitions import TRANSITIONS, ObjectKind
from tests.unit.core.drafts import H, draft
from tests.unit.core.logs import FAR

__all__ = ["choose", "propose", "recover"]

type Fields = dict[str, object]

OTHER_DIGEST = "b" * 64

LIVE: Mapping[str, tuple[str, ...]] = {
    "call": ("asked", "proposed", "started"),
    "approval": ("open", "granted"),
    "wait": ("open",),
    "entry": ("queued",),
    "event": ("kept",),
    "child": ("live",),
    "step": ("open", "retry"),
    "model": ("open",),
}
PREFIX: Mapping[str, str] = {
    "call": "call",
    "approval": "apr",
    "wait": "wait",
    "entry": "ent",
    "event": "evt",
    "child": "run",
    "step": "step",
    "model": "mc",
}


class Walker:
    """Chooses among what a log has."""

    def __init__(self, log: LogBuilder, random: Random) -> None:
        self.log = log
        self.state = log.state
        self.random = random

    def new(self, kind: ObjectKind) -> str:
        """Return a new id."""
        return self.log.system.new_id(PREFIX[kind])

    def some(self, kind: ObjectKind) -> str:
        """Return an object that is open; else, or now and then, one of the past or of nobody."""
        found = list(self.state.ids(kind, *LIVE[kind]))
        if not found or self.random.random() < 0.1:
            found = [key for (one, key) in self.state.objects if one == kind]
        if not found or self.random.random() < 0.05:
            return self.new(kind)
        return self.random.choice(found)

    def chance(self, share: float) -> bool:
        """Return True in this share of the cases."""
        return self.random.random() < share

    def owner(self) -> Fields:
        """Return who makes a call: mostly the model, else another call or a step."""
        if self.chance(0.7):
            return {"call_id": self.some("call")}
        call = self.new("call") if self.chance(0.8) else self.some("call")
        if self.chance(0.5):
            return {"call_id": call, "parent_call": self.some("call")}
        return {"call_id": call, "step": self.some("step")}


def _started(w: Walker) -> Fields:
    fields = w.owner()
    call = str(fields["call_id"])
    grants = [
        one
        for one in w.state.ids("approval", "granted")
        if w.state.get("approval", one).text("call_id") == call
    ]
    fields["tries"] = w.state.get("call", call).number("tries") + 1
    fields["safe_to_retry"] = w.chance(0.5)
    if grants:
        fields["approval_id"] = grants[0]
        fields["digest"] = w.state.get("approval", grants[0]).text("digest")
    return fields


def _model_started(w: Walker) -> Fields:
    compacts = w.chance(0.2)
    return {
        "call": w.new("model"),
        "turn": None if compacts else w.state.last_turn or 1,
        "purpose": "compaction" if compacts else "answer",
        "offer": w.state.last_offer or None,
    }


def _model_completed(w: Walker) -> Fields:
    call = w.some("model")
    turn = w.state.get("model", call).get("turn")
    asked = 0 if turn is None else w.random.randrange(4)
    return {"call": call, "turn": turn, "calls": tuple(w.new("call") for _ in range(asked))}


def _model_failed(w: Walker) -> Fields:
    call = w.some("model")
    after = w.random.choice(["retry", "give_up"])
    return {"call": call, "turn": w.state.get("model", call).get("turn"), "next": after}


def _decided(w: Walker) -> Fields:
    decision = w.random.choice(["approve", "approve", "edit", "deny"])
    digest = OTHER_DIGEST if decision == "edit" else H
    return {"approval_id": w.some("approval"), "decision": decision, "digest": digest}


def _settled(w: Walker) -> Fields:
    queued = list(w.state.ids("entry", "queued"))
    later = [one for one in queued if w.state.get("entry", one).text("queue") == "next_run"]
    return {
        "state": w.random.choice(["completed", "failed"]),
        "unconsumed": tuple(one for one in queued if one not in later),
        "next_run": w.log.system.new_id("run") if later else None,
    }


def _resolved(w: Walker) -> Fields:
    how = w.random.choice(["delivered", "delivered", "due", "expired", "cancelled"])
    event = w.some("event") if how == "delivered" and w.chance(0.3) else None
    by = "ann" if how == "delivered" else None
    return {"wait_id": w.some("wait"), "how": how, "event_id": event, "by": by}


def _suspended(w: Walker) -> Fields:
    waits = (*w.state.ids("wait", "open"), *w.state.ids("approval", "open"))
    return {"waits": waits, "wake_at": FAR if w.chance(0.5) else None}


def _opened(w: Walker) -> Fields:
    return {
        "wait_id": w.new("wait"),
        "kind": w.random.choice(["question", "timer", "children"]),
        "call": w.some("call") if w.chance(0.7) else None,
        "due": FAR,
        "expires_at": FAR if w.chance(0.7) else None,
    }


def _step_started(w: Walker) -> Fields:
    step = w.some("step") if w.chance(0.4) else w.new("step")
    return {"step_id": step, "compensates": w.some("step") if w.chance(0.1) else None}


PROPOSALS: Mapping[str, Callable[[Walker], Fields]] = {
    "run.admitted": lambda w: {},
    "run.suspended": _suspended,
    "run.settled": _settled,
    "run.erased": lambda w: {},
    "abort.requested": lambda w: {"force": w.chance(0.5)},
    "attempt.started": lambda w: {},
    "attempt.ended": lambda w: {},
    "turn.started": lambda w: {"turn": w.state.last_turn + 1},
    "tools.offered": lambda w: {},
    "advisory.added": lambda w: {"advisory_id": w.log.system.new_id("adv")},
    "queue.enqueued": lambda w: {
        "entry_id": w.new("entry"),
        "queue": w.random.choice(["steer", "follow_up", "next_run"]),
    },
    "queue.consumed": lambda w: {"entries": (w.some("entry"),)},
    "queue.cancelled": lambda w: {"entry_id": w.some("entry")},
    "model.started": _model_started,
    "model.delta": lambda w: {"call": w.some("model")},
    "model.completed": _model_completed,
    "model.failed": _model_failed,
    "tool.refused": lambda w: w.owner(),
    "tool.started": _started,
    "tool.progress": lambda w: {"call_id": w.some("call")},
    "tool.completed": lambda w: {"call_id": w.some("call")},
    "approval.requested": lambda w: {
        **w.owner(),
        "approval_id": w.new("approval"),
        "expires_at": FAR,
        "supersedes": w.some("approval") if w.chance(0.3) else None,
    },
    "approval.decided": _decided,
    "approval.expired": lambda w: {"approval_id": w.some("approval"), "reason": "due"},
    "wait.opened": _opened,
    "event.received": lambda w: {"event_id": w.new("event")},
    "wait.resolved": _resolved,
    "child.admitted": lambda w: {"child": w.new("child"), "call": w.some("call")},
    "child.messaged": lambda w: {"child": w.some("child")},
    "child.settled": lambda w: {"child": w.some("child")},
    "step.started": _step_started,
    "step.completed": lambda w: {
        "step_id": w.some("step"),
        "retry_at": FAR if w.chance(0.3) else None,
    },
    "context.compacted": lambda w: {
        "call": w.random.choice([key for (k, key) in w.state.objects if k == "model"] or ["mc_x"]),
        "upto": w.log.conversation.last,
    },
    "tasks.updated": lambda w: {},
    "memory.changed": lambda w: {},
}
SHARES: Mapping[str, float] = {
    "abort.requested": 0.01,
    "run.settled": 0.05,
    "attempt.started": 0.1,
    "attempt.ended": 0.1,
}
"""How often a record is proposed that cuts a walk short, while the Run runs."""


def propose(log: LogBuilder, random: Random, kind: str) -> Record | None:
    """Return a record of this type that may follow or not; None when the dice say so."""
    walker = Walker(log, random)
    if kind == "context.compacted" and not any(k == "model" for (k, _) in log.state.objects):
        return None
    return draft(log, kind, **PROPOSALS[kind](walker))


def choose(log: LogBuilder, random: Random) -> Record | None:
    """Return a proposal of any type."""
    kind = random.choice(KINDS)
    if log.state.phase == "running" and random.random() > SHARES.get(kind, 1.0):
        return None
    return propose(log, random, kind)


KINDS = tuple(TRANSITIONS)


def recover(log: LogBuilder) -> None:
    """Do what any taker can do with any Run that has not settled: close what is open, and it."""
    state: RunState = log.state
    log.claim()
    assert not state.any("model", "open")
    for call in list(state.ids("call", "started")):
        log.finish(call, outcome="unknown")
    for call in list(state.ids("call", "asked", "proposed")):
        log.refuse(call, "aborted")
    for step in list(state.ids("step", "open")):
        log.end_step(step, "unknown")
    log.settle("failed", code="lost")
