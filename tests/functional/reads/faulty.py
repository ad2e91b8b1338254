"""A store whose readers meet what networks do: no answer, and no hint."""

import asyncio
from collections import Counter
from collections.abc import Mapping

from psych_runtime.errors import StoreUnavailable
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RecordRow, RunRow

__all__ = ["DeafStore", "FlakyStore"]


class FlakyStore(MemoryStore):
    """Every `period`-th read, header and wait finds nobody there."""

    def __init__(self, *, period: int) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.failures = 0
        self._period = period

    def _pass(self, name: str) -> None:
        self.calls[name] += 1
        if sum(self.calls.values()) % self._period == 0:
            self.failures += 1
            raise StoreUnavailable(problem="scripted")

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        self._pass("read")
        return await super().read(tenant, run_id, after=after, limit=limit)

    async def header(self, tenant: str, run_id: str) -> RunRow:
        self._pass("header")
        return await super().header(tenant, run_id)

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        self._pass("wait")
        return await super().wait(tenant, heads, seconds, over=over)


class DeafStore(MemoryStore):
    """Every hint is lost: a wait is over at once and knows of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def wait(
        self, tenant: str, heads: Mapping[str, int], seconds: float, *, over: bool = False
    ) -> frozenset[str]:
        self.waits.append(seconds)
        await asyncio.sleep(0)
        return frozenset()
