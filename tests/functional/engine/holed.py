"""A store whose database has lost a record: what a log is that nobody has judged since."""

from typing import cast

from psych_runtime.ports.store import Store
from psych_schema.store import RecordRow

__all__ = ["holed"]


class _Holed:
    def __init__(self, inner: Store, seq: int) -> None:
        self._inner = inner
        self._seq = seq

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def twin(self) -> "_Holed":
        """Return what another loop uses, of the same database."""
        return _Holed(self._inner.twin(), self._seq)

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        """Return what is left."""
        rows = await self._inner.read(tenant, run_id, after=after)
        return [row for row in rows if row.seq != self._seq][:limit]


def holed(store: Store, seq: int) -> Store:
    """Return the store without the record at `seq` of any Run."""
    return cast("Store", _Holed(store, seq))
