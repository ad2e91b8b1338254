"""A draft of every record type: valid by itself, naming objects that nobody made."""

from collections.abc import Mapping
from typing import Final

from psych_runtime.core.codec import sha256
from psych_runtime.testing import LogBuilder
from psych_schema.common import Scope
from psych_schema.record import Failure, History, Reason, Record, Said, ThreadRef, Timings
from psych_schema.types import RECORD_TYPES
from tests.unit.core.logs import CHILD, COST, SUMMARY, USAGE

X: Final = "id_" + "9" * 26
H: Final = sha256("anything")

FIELDS: Final[Mapping[str, Mapping[str, object]]] = {
    "run.admitted": {
        "version": H,
        "scope": Scope(tenant="acme"),
        "root": CHILD,
        "thread": ThreadRef(id="t", position=1),
    },
    "run.suspended": {"waits": ()},
    "run.settled": {"state": "failed", "reason": Reason(code="x")},
    "run.erased": {"by": "ann"},
    "abort.requested": {"by": "ann"},
    "attempt.started": {"worker": X, "build": "1", "reason": "fresh", "crashes": 0},
    "attempt.ended": {"reason": "drained"},
    "turn.started": {"turn": 1, "purpose": "answer"},
    "tools.offered": {"hash": H, "system_ref": H, "tools": ()},
    "advisory.added": {"advisory_id": X, "code": "x", "message": "m"},
    "queue.enqueued": {"entry_id": X, "queue": "steer", "message": SUMMARY, "by": "ann"},
    "queue.consumed": {"entries": (X,), "into": X},
    "queue.cancelled": {"entry_id": X, "by": "ann"},
    "model.started": {
        "call": X,
        "turn": 1,
        "purpose": "answer",
        "model": "m",
        "tries": 1,
        "history": History(upto=X),
    },
    "model.delta": {"call": X, "channel": "text", "text": "t"},
    "model.completed": {
        "call": X,
        "turn": 1,
        "said": Said(),
        "finish": "stop",
        "usage": USAGE,
        "cost": COST,
        "timings": Timings(seconds=1.0),
    },
    "model.failed": {
        "call": X,
        "turn": 1,
        "failure": Failure(code="x", transient=True),
        "next": "retry",
    },
    "tool.refused": {"call_id": X, "code": "denied", "message": "no"},
    "tool.started": {
        "call_id": X,
        "tries": 1,
        "identity": "code:look",
        "arguments": {},
        "digest": H,
        "safe_to_retry": False,
        "interruptible": True,
        "key": "k",
    },
    "tool.progress": {"call_id": X, "progress": 0.1, "message": "m"},
    "tool.completed": {
        "call_id": X,
        "outcome": "ok",
        "duration_seconds": 0.1,
        "source": "executed",
    },
    "approval.requested": {
        "approval_id": X,
        "call_id": X,
        "identity": "code:pay",
        "risk": "write",
        "arguments": {},
        "digest": H,
    },
    "approval.decided": {"approval_id": X, "decision": "approve", "digest": H, "by": "bob"},
    "approval.expired": {"approval_id": X, "reason": "cancelled"},
    "wait.opened": {"wait_id": X, "kind": "question", "ask": {"q": 1}},
    "event.received": {"event_id": X, "name": "paid", "payload": 1, "by": "hook"},
    "wait.resolved": {"wait_id": X, "how": "delivered", "payload": 1, "by": "ann"},
    "child.admitted": {"child": CHILD, "version": H, "background": False},
    "child.messaged": {"child": CHILD, "entry_id": X},
    "child.settled": {"child": CHILD, "state": "failed", "usage": USAGE, "cost": COST},
    "step.started": {
        "step_id": X,
        "path": "/a",
        "kind": "tool",
        "name": "a",
        "tries": 1,
        "input_digest": H,
    },
    "step.completed": {"step_id": X, "outcome": "ok"},
    "context.compacted": {"upto": X, "summary": SUMMARY, "call": X, "reason": "asked"},
    "tasks.updated": {"tasks": ["a"]},
    "memory.changed": {"key": "k", "op": "put", "digest": H},
}
"""What each record type needs at least."""


def draft(log: LogBuilder, kind: str, /, **fields: object) -> Record:
    """Return a draft of this type for the log, with these fields instead of the usual ones."""
    return log.draft(RECORD_TYPES[kind], **{**FIELDS[kind], **fields})
