"""Settled Runs for operations: alone, in a thread, with a key, as a child."""

from datetime import UTC, datetime, timedelta
from itertools import batched
from typing import Final

from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.store.contract._build import key_row
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import Scope
from psych_schema.record import ThreadRef
from psych_schema.store import RunRow

__all__ = ["ACME", "CALL", "OTHER", "START", "commit", "kept_contents", "line", "refer", "settled"]

ACME: Final = Scope(tenant="acme")
OTHER: Final = Scope(tenant="globex")
CALL: Final = "call_" + "1" * 26
START: Final = datetime(2026, 11, 29, 20, tzinfo=UTC)
"""When the first record of a Run was written, unless it was made later."""

_AT_ONCE: Final = 20


async def commit(store: Store, *units: Unit) -> None:
    """Commit units, each of which must be taken."""
    assert await store.commit(units) == [Committed()] * len(units)


def reference(row: RunRow, head: int) -> Unit:
    """Return the unit that says in a header that another Run goes on with it."""
    change = Change(row.run_id, head, None, (), HeaderChange(referenced=True))
    return Unit(f"com_{row.run_id[4:]}", row.tenant, (change,))


async def refer(store: Store, row: RunRow) -> None:
    """Say in a header that another Run goes on with it."""
    head = (await store.header(row.tenant, row.run_id)).head
    await commit(store, reference(row, head))


def lived(
    number: int,
    *,
    tenant: str = "acme",
    after: LogBuilder | None = None,
    hours: float = 0.0,
    ends: bool = True,
    **fields: object,
) -> LogBuilder:
    """Return a Run of one turn; `number` tells its ids from others', `hours` is how much later."""
    system = CountingSystem(start=START + timedelta(hours=hours), first_id=number * 1000)
    log = LogBuilder(tenant=tenant, system=system, records_per_unit=90)
    if after is not None:
        last = after.header
        fields["thread"] = ThreadRef(
            id=last.thread, position=last.position + 1, previous=last.run_id
        )
    log.admit(f"question {number}", **fields)
    log.claim()
    log.turn(text=f"answer {number}")
    if ends:
        log.settle()
    return log


async def settled(
    store: Store,
    number: int,
    *,
    tenant: str = "acme",
    after: LogBuilder | None = None,
    hours: float = 0.0,
    key: str | None = None,
    ends: bool = True,
    **fields: object,
) -> LogBuilder:
    """Write a Run of one turn.

    With `after` it goes on with a thread; with `key` that key has admitted it. When it does not
    end, it is running.
    """
    log = lived(number, tenant=tenant, after=after, hours=hours, ends=ends, key=key, **fields)
    admission, *rest = log.units()
    if key is not None:
        admission = admission._replace(keys=(key_row(key, tenant=tenant),))
    await log.put_texts(store)
    await commit(store, admission, *rest)
    if after is not None:
        await refer(store, after.header)
    return log


async def line(store: Store, count: int, *, first: int = 1) -> list[LogBuilder]:
    """Write a thread of settled Runs, a few in one call."""
    logs: list[LogBuilder] = []
    for number in range(first, first + count):
        logs.append(lived(number, after=logs[-1] if logs else None))
    await logs[0].put_texts(store)
    for some in batched(logs, _AT_ONCE):
        await commit(store, *[unit for log in some for unit in log.units()])
    for some in batched(logs[:-1], _AT_ONCE):
        await commit(store, *[reference(log.header, log.header.head) for log in some])
    return logs


async def kept_contents(store: Store, log: LogBuilder) -> int:
    """Return how many records of a Run have a content or a salt left."""
    rows = await store.read(log.tenant, log.run_id)
    return sum((row.content, row.salt) != (None, None) for row in rows)
