"""Acting without a Scope, over all tenants: what an operator may do and no request handler."""

from dataclasses import dataclass

from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.store import UNCAPPED, Store
from psych_runtime.runtime.requests import check_store

__all__ = ["Administrator", "Cap", "administrator"]

_LONGEST_TENANT = 128


@dataclass(frozen=True, slots=True)
class Cap:
    """How many of a tenant's Runs are counted as running, and how many may be; None is no bound."""

    running: int
    limit: int | None


class Administrator:
    """A store in the hands of an operator; the store stays its owner's to close (SEC-4)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def set_cap(self, tenant: str, limit: int | None) -> None:
        """Bound how many Runs of a tenant are running at once (R-15); None lifts the bound.

        It holds for claims from now on, on every worker: what is running already goes on and
        is not counted. 0 lets nothing begin. What waits costs nothing and keeps its place.

        Raises InvalidArgument; StoreUnavailable: repeat it.
        """
        _check_tenant(tenant)
        if limit is not None and not _is_limit(limit):
            problem = f"pass a whole number, 0 to {UNCAPPED - 1}, or None to lift the cap"
            raise InvalidArgument(what="limit", problem=problem)
        await self._store.set_cap(tenant, limit)

    async def cap(self, tenant: str) -> Cap | None:
        """Return a tenant's cap; None when it never had one. Raises InvalidArgument."""
        _check_tenant(tenant)
        row = await self._store.cap(tenant)
        if row is None:
            return None
        return Cap(row.running, None if row.limit == UNCAPPED else row.limit)


def administrator(store: Store) -> Administrator:
    """Return the handle for acting without a Scope; never give it to a request handler."""
    check_store(store)
    return Administrator(store)


def _check_tenant(tenant: object) -> None:
    if not (isinstance(tenant, str) and 1 <= len(tenant) <= _LONGEST_TENANT):
        problem = f"a tenant has 1 to {_LONGEST_TENANT} characters"
        raise InvalidArgument(what="tenant", problem=problem)


def _is_limit(limit: object) -> bool:
    return isinstance(limit, int) and not isinstance(limit, bool) and 0 <= limit < UNCAPPED
