"""Logs for readers: a Run as it was lived, as it grows, and as it gets broken."""

from psych_runtime.core.codec import sha256
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Sealed, Store, Unit
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import Scope
from psych_schema.store import RecordRow

__all__ = ["ACME", "OTHER", "append", "commit", "lived", "mark_corrupt"]

ACME = Scope(tenant="acme")
OTHER = Scope(tenant="globex")


def lived(*, first_id: int = 1) -> LogBuilder:
    """Return a settled Run of two turns with one tool call, taken from a dead worker once."""
    log = LogBuilder(system=CountingSystem(first_id=first_id))
    log.admit("hi")
    log.claim()
    [call] = log.turn(["look"], text="Let me look.")
    log.start(call, safe_to_retry=True)
    log.claim()
    log.start(call, safe_to_retry=True)
    log.finish(call, "42")
    log.turn(text="It is 42.")
    log.settle()
    return log


async def commit(store: Store, unit: Unit) -> None:
    """Commit one unit, which must be taken."""
    [answer] = await store.commit([unit])
    assert isinstance(answer, Committed)


async def append(store: Store, log: LogBuilder, *, type: str, body: str, version: int = 1) -> None:
    """Write a row behind the log that no writer would write."""
    header = log.header
    seq = header.head + 1
    row = RecordRow(run_id=log.run_id, seq=seq, tenant=log.tenant, type=type, body=body)
    record = log.entries[-1].record.model_copy(update={"v": version})
    change = Change(
        log.run_id, header.head, None, (Sealed(row, record, sha256(body)),), HeaderChange()
    )
    await commit(store, Unit(log.system.new_id("com"), log.tenant, (change,)))


async def mark_corrupt(store: Store, log: LogBuilder) -> None:
    """Say in the header that nobody can go on with this log."""
    header = await store.header(log.tenant, log.run_id)
    marked = HeaderChange(state="corrupt", worker=None, wake_at=None, deadline_at=None)
    change = Change(log.run_id, header.head, None, (), marked)
    await commit(store, Unit(log.system.new_id("com"), log.tenant, (change,)))
