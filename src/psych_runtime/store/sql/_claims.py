"""Claimable Runs, fairly (R-15): what waits, and what dead workers hold, tenant by tenant."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from psych_runtime.ports.store import UNCAPPED, Exclude, Found
from psych_runtime.store._order import TENANT_WINDOW, claim_key, take_fairly
from psych_runtime.store.sql._database import Claimable, Param
from psych_runtime.store.sql._rows import header_of
from psych_schema.store import RunRow

__all__ = ["find_ready"]

_ANY_SCHEMA: Final = 2_147_483_647
_GROWTH: Final = 8
_MOST: Final = 2_147_483_647  # what a statement multiplies does not overflow

type Ask = Callable[[Mapping[str, Param]], Awaitable[Claimable]]


async def find_ready(ask: Ask, limit: int, after_tenant: str, exclude: Exclude) -> Found:
    """Return what `ready` of the port promises.

    Each tenant is asked for the same share; where some have less, the others are asked for more.
    """
    above = exclude.schema_version_above
    limit = min(limit, _MOST)
    values: dict[str, Param] = {
        "run_ids": exclude.run_ids,
        "versions": exclude.versions,
        "newest": _ANY_SCHEMA if above is None else above,
        "after": after_tenant,
        "window": TENANT_WINDOW,
        "limit": limit,
        "share": 1,
        "uncapped": UNCAPPED,
    }
    while True:
        now, share, capped, rows, orphaned = await ask(values)
        waiting = [header_of(row) for row in rows]
        orphans = [header_of(row) for row in orphaned]
        tenants = _by_tenant([*orphans, *waiting], after_tenant)
        taken = take_fairly((iter(runs) for runs in tenants), limit)
        if len(taken) == limit or share >= limit or not _is_cut(waiting, share):
            return Found(now, taken, capped)
        values["share"] = min(limit, share * _GROWTH)


def _by_tenant(headers: Sequence[RunRow], after: str) -> list[list[RunRow]]:
    """Return Runs by tenant, those behind the cursor first, each tenant's in order."""
    found: dict[str, list[RunRow]] = {}
    for header in headers:
        found.setdefault(header.tenant, []).append(header)
    tenants = sorted(found, key=lambda tenant: (tenant <= after, tenant))
    return [sorted(found[tenant], key=claim_key) for tenant in tenants]


def _is_cut(waiting: Sequence[RunRow], share: int) -> bool:
    """Tell whether a tenant may have more than its share."""
    counts: dict[str, int] = {}
    for header in waiting:
        counts[header.tenant] = counts.get(header.tenant, 0) + 1
    return any(count >= share for count in counts.values())
