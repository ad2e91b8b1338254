"""Admitting a Run: its first record and its header are one (ADM-1)."""

from collections.abc import Sequence

from pydantic import JsonValue
from pydantic_core import to_json

from psych_runtime._system import System
from psych_runtime.core.codec import MAX_CONTENT_BYTES, Position, seal
from psych_runtime.errors import InvalidPayload, PayloadTooLarge
from psych_runtime.ports.store import Admit
from psych_schema.common import Scope
from psych_schema.record import RunAdmitted, ThreadRef
from psych_schema.store import RunRow

__all__ = ["admit", "check_input", "run_admitted"]


def check_input(value: JsonValue, *, what: str = "input") -> None:
    """Raise PayloadTooLarge or InvalidPayload for a value that no log takes (R-30, LOG-5)."""
    try:
        size = len(to_json(value, inf_nan_mode="constants"))
        to_json(value, inf_nan_mode="null")
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(what=what, problem=str(error)) from None
    if size > MAX_CONTENT_BYTES:
        raise PayloadTooLarge(what=what, size_bytes=size, bound_bytes=MAX_CONTENT_BYTES)


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
    breakpoints: Sequence[str] = (),
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
        breakpoints=tuple(breakpoints),
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
