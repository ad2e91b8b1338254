"""Admitting a Run: its first record and its header are one (ADM-1)."""

from pydantic import JsonValue

from psych_runtime._system import System
from psych_runtime.core.codec import Position, seal
from psych_runtime.ports.store import Admit
from psych_schema.common import Scope
from psych_schema.record import RunAdmitted, ThreadRef
from psych_schema.store import RunRow

__all__ = ["admit", "run_admitted"]


def run_admitted(
    system: System,
    *,
    version: str,
    scope: Scope,
    input: JsonValue,
    thread: ThreadRef | None = None,
    deadline_seconds: float | None = None,
    priority: int = 0,
    deltas: bool = False,
    key: str | None = None,
) -> RunAdmitted:
    """Return the first record of a new Run; without `thread` it begins one of its own."""
    run_id = system.new_id("run")
    return RunAdmitted(
        run_id=run_id,
        id=system.new_id("rec"),
        at=system.now(),
        version=version,
        scope=scope,
        input=input,
        deadline_seconds=deadline_seconds,
        priority=priority,
        deltas=deltas,
        key=key,
        root=run_id,
        thread=thread or ThreadRef(id=run_id, position=1),
    )


def admit(record: RunAdmitted, *, commit_id: str, system: System) -> Admit:
    """Return the change that admits a Run: `record` sealed at seq 1, and its header."""
    tenant = record.scope.tenant
    salts = iter(system.salt, "")
    [first] = seal([record], Position(), tenant=tenant, epoch=0, commit_id=commit_id, salts=salts)
    header = RunRow(
        tenant=tenant,
        run_id=record.run_id,
        version=record.version,
        state="ready",
        head=1,
        head_hash=first.hash,
        head_at=first.record.at,
        epoch=0,
        crashes=0,
        priority=record.priority,
        schema_version=record.v,
        thread=record.thread.id,
        position=record.thread.position,
        previous=record.thread.previous,
        parent=record.parent.run if record.parent else None,
        root=record.root,
        created_at=first.record.at,
        open={},
    )
    return Admit(header, (first,), record.deadline_seconds)
