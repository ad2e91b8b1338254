"""Walking the claim index: shard by shard in order, leaving out what is not due.

An entry sorts by tenant, urgency and instant. So one that is not due yet ends its tenant's
urgency, and the walk goes on behind all others of that urgency, however many they are.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._names import unescaped
from psych_runtime.store.dynamodb._wire import Item, integer_of, text_of
from psych_schema.store import RunRow

__all__ = ["FIRST", "LAST", "Entry", "Walk", "behind"]

FIRST: Final = "\x01"  # no name has U+0000
LAST: Final = "\U0010ffff" * 129  # behind every name, which has at most 128 characters
_PAGE: Final = 50


class Entry(NamedTuple):
    """A Run that may be claimable, by the index or by what this process knows.

    `held` is set for a Run of a dead worker.
    """

    sort: str
    run_id: str
    version: str
    schema_version: int
    held: bool = False

    @property
    def block(self) -> str:
        """What the places of this tenant's entries begin with."""
        return self.sort.partition("#")[0] + "#"

    @property
    def tenant(self) -> str:
        """Whose Run it is."""
        return unescaped(self.sort.partition("#")[0])

    @classmethod
    def of(cls, sort: str, row: RunRow, *, held: bool = False) -> "Entry":
        """Return the entry of a Run that is known."""
        return cls(sort, row.run_id, row.version, row.schema_version, held)


def behind(block: str) -> str:
    """Return the first place behind a tenant's entries, or behind those of one urgency."""
    return block.removesuffix("#") + "$"  # the character behind the separator


class Walk:
    """Entries between two places in order, of one shard or of those that are given."""

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        *,
        ask: Ask | None = None,
        shard: int = 0,
        low: str = FIRST,
        high: str = LAST,
        due: str = LAST,
    ) -> None:
        self.entries = list(entries)
        self._ask = ask
        self._shard = shard
        self._low = low
        self._high = high
        self._due = due

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be read."""
        return self._ask is None or self._low > self._high

    async def fill(self) -> None:
        """Read until there is an entry, or nothing is left."""
        while not self.entries and not self.is_over:
            await self._read()

    async def _read(self) -> None:
        ask = self._ask
        assert ask is not None
        within = Range(ask.tables.run, "claim", f"{self._shard:02}", self._low, self._high)
        page = await ask.query(within, limit=_PAGE)
        for item in page.items:
            sort = text_of(item, "claim_sk")
            if sort < self._low:
                continue
            tenant, urgency, wake, _ = sort.split("#")
            if wake > self._due:
                self._low = behind(f"{tenant}#{urgency}")
                continue
            self._low = sort + FIRST  # behind it, since no place begins with another
            self.entries.append(_entry(sort, item))
        if page.last is None:
            self._ask = None

    @staticmethod
    async def fill_all(walks: Sequence["Walk"]) -> None:
        """Fill walks side by side."""
        hungry = [walk.fill() for walk in walks if not walk.entries and not walk.is_over]
        if hungry:
            await asyncio.gather(*hungry)

    def cut(self, block: str) -> "Walk":
        """Take one tenant's entries out, with what is still to be read of them.

        They are first in this walk, which goes on behind them.
        """
        count = 0
        while count < len(self.entries) and self.entries[count].sort.startswith(block):
            count += 1
        own, self.entries = self.entries[:count], self.entries[count:]
        end = behind(block)
        taken = Walk(own, shard=self._shard, low=self._low, high=end, due=self._due)
        if not self.entries and not self.is_over:
            taken._ask = self._ask
            self._low = max(self._low, end)
        return taken


def _entry(sort: str, item: Item) -> Entry:
    return Entry(
        sort,
        unescaped(sort.rpartition("#")[2]),
        text_of(item, "version"),
        integer_of(item, "schema_version"),
    )
