"""Proposals that are off by one field: about another object, one too many, one too few."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from pydantic import ValidationError

from psych_runtime.testing import LogBuilder
from psych_schema.record import Record
from psych_schema.transitions import ObjectKind
from psych_schema.types import RECORD_TYPES
from tests.unit.core.drafts import H
from tests.unit.core.logs import CHILD, FAR
from tests.unit.core.walk import OTHER_DIGEST, Walker

__all__ = ["twisted"]

ENVELOPE: Final = frozenset({"v", "run_id", "seq", "at", "type", "id", "commit", "epoch", "prev"})

type Twist = Callable[[Walker, object], object]


def _one_of(*values: object) -> Twist:
    return lambda w, old: w.random.choice([one for one in values if one != old])


def _near(w: Walker, old: object) -> object:
    return max(1, old + w.random.choice((-1, 1))) if isinstance(old, int) else 1


def _some(kind: ObjectKind, *, or_none: bool = False) -> Twist:
    return lambda w, old: None if or_none and old is not None and w.chance(0.5) else w.some(kind)


def _list_of(kind: ObjectKind) -> Twist:
    def twist(w: Walker, old: object) -> object:
        ids = list(old) if isinstance(old, tuple) else []
        match w.random.randrange(3):
            case 0 if ids:
                ids.append(ids[0])
            case 1 if ids:
                ids.pop()
            case _:
                ids.append(w.some(kind))
        return tuple(ids)

    return twist


TWISTS: Final[Mapping[str, Twist]] = {
    "turn": _near,
    "tries": _near,
    "digest": _one_of(H, OTHER_DIGEST),
    "offer": _one_of(None, H, OTHER_DIGEST),
    "hash": _one_of(H, OTHER_DIGEST),
    "unconsumed": _list_of("entry"),
    "entries": _list_of("entry"),
    "waits": _list_of("wait"),
    "calls": _list_of("call"),
    "next_run": _one_of(None, CHILD),
    "supersedes": _some("approval", or_none=True),
    "step": _some("step", or_none=True),
    "compensates": _some("step", or_none=True),
    "parent_call": _some("call", or_none=True),
    "call_id": _some("call"),
    "entry_id": _some("entry"),
    "wait_id": _some("wait"),
    "child": _some("child"),
    "step_id": _some("step"),
    "purpose": _one_of("answer", "repair", "compaction"),
    "decision": _one_of("approve", "edit", "deny"),
    "queue": _one_of("steer", "follow_up", "next_run"),
    "next": _one_of("retry", "give_up"),
    "source": _one_of("executed", "reconciled", "stubbed"),
    "force": _one_of(True, False),
    "safe_to_retry": _one_of(True, False),
    "retry_at": _one_of(None, FAR),
    "wake_at": _one_of(None, FAR),
    "expires_at": _one_of(None, FAR),
    "due": _one_of(None, FAR),
}
OF_TYPE: Final[Mapping[str, Mapping[str, Twist]]] = {
    "attempt.ended": {"reason": _one_of("drained", "blocked", "error")},
    "run.settled": {"state": _one_of("completed", "failed")},
    "model.started": {"turn": _one_of(None, 1, 2), "call": _some("model")},
    "model.delta": {"call": _some("model")},
    "model.completed": {"turn": _one_of(None, 1, 2), "call": _some("model")},
    "model.failed": {"turn": _one_of(None, 1, 2), "call": _some("model")},
    "tool.started": {"approval_id": _some("approval", or_none=True)},
    "approval.requested": {"approval_id": _some("approval")},
    "approval.decided": {"approval_id": _some("approval")},
    "approval.expired": {"approval_id": _some("approval"), "reason": _one_of("due", "cancelled")},
    "wait.opened": {"call": _some("call", or_none=True), "kind": _one_of("question", "timer")},
    "event.received": {"event_id": _some("event")},
    "wait.resolved": {"event_id": _some("event", or_none=True)},
    "child.admitted": {"call": _some("call", or_none=True)},
    "context.compacted": {"call": _some("model")},
}


def twisted(log: LogBuilder, random: Random, record: Record) -> Record:
    """Return the record with one field changed that the protocol looks at, if it has one."""
    fields = {name: value for name, value in record if name not in ENVELOPE}
    known = {**TWISTS, **OF_TYPE.get(record.type, {})}
    found = sorted(known.keys() & fields.keys())
    if record.type == "context.compacted":
        found = ["call"]
    if not found:
        return record
    name = random.choice(found)
    fields[name] = known[name](Walker(log, random), fields[name])
    try:
        return log.draft(RECORD_TYPES[record.type], **fields)
    except ValidationError:  # a list that may not be empty
        return record
