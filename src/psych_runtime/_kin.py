"""Runs beside a Run: what stands behind it in its thread, and whoever its header names."""

from psych_runtime.errors import RunNotFound
from psych_runtime.ports.store import Store
from psych_schema.store import RunRow

__all__ = ["followers", "known"]


async def known(store: Store, tenant: str, run_id: str | None) -> RunRow | None:
    """Return the header of a Run that another one names; None when it is gone, or none is named."""
    if run_id is None:
        return None
    try:
        return await store.header(tenant, run_id)
    except RunNotFound:
        return None


async def followers(store: Store, header: RunRow) -> list[RunRow]:
    """Return the Runs that stand behind this one in its thread, in order."""
    found: list[RunRow] = []
    row = await store.tail(header.tenant, header.thread)
    while row is not None and row.position > header.position:
        found.append(row)
        row = await known(store, row.tenant, row.previous)
    return found[::-1]
