"""Small values as a machine asks for them: what a store draws, no oracle can know.

A row is told by its text and by how often it was written since it was made.
"""

from collections import defaultdict
from typing import Final, Literal, NamedTuple

from psych_schema.store import KvRow
from tests.functional.store.drawing import Picks

__all__ = ["KEYS", "KINDS", "Drawn", "Told", "ValueOracle", "Wish", "wish"]

KINDS: Final = ("memory", "memory.tenant")
KEYS: Final = ("k", "K", "k ", "ka", "\uffff", "\U0001f9e0")

_DRAWN_LEAST: Final = 2  # a row that is not there may be asked for at one less

type Name = tuple[str, str, str]
"""Tenant, kind and key."""

type Wish = Literal["none", "now", "before", "behind", "gone"]
"""At which revision a row is wanted: none, the one it has, beside it, that of a row long gone."""


class Told(NamedTuple):
    """A row as both a store and the oracle can tell it."""

    key: str
    value: str
    writes: int


class ValueOracle:
    """Values by their names."""

    def __init__(self) -> None:
        self.rows: dict[Name, Told] = {}

    def put(self, name: Name, value: str, wanted: Wish) -> Told | None:
        """Write a row, if it is as it is wanted."""
        there = self.rows.get(name)
        if wanted != ("none" if there is None else "now"):
            return None
        writes = 0 if there is None else there.writes + 1
        self.rows[name] = Told(name[2], value, writes)
        return self.rows[name]

    def delete(self, name: Name, wanted: Wish) -> bool:
        """Delete a row; "none" is whatever revision it has."""
        if name not in self.rows or wanted not in ("none", "now"):
            return False
        del self.rows[name]
        return True

    def listed(self, tenant: str, kind: str, prefix: str, after: str, limit: int) -> list[Told]:
        """Return rows in the order of their keys' code points."""
        found = [
            told
            for name, told in sorted(self.rows.items())
            if name[:2] == (tenant, kind) and told.key > after and told.key.startswith(prefix)
        ]
        return found[:limit]


class Drawn:
    """The revisions that one store has drawn and counted on."""

    def __init__(self) -> None:
        self._first: dict[Name, int] = {}
        self._now: dict[Name, int] = {}
        self._gone: dict[Name, int] = {}
        self._made: defaultdict[Name, set[int]] = defaultdict(set)

    def revision(self, name: Name, wanted: Wish) -> int | None:
        """Return which revision a wish is for in this store."""
        now = self._now.get(name, _DRAWN_LEAST)
        revisions: dict[Wish, int | None] = {
            "none": None,
            "now": now,
            "before": now - 1,
            "behind": now + 1,
            "gone": self._gone.get(name, now - 1),
        }
        return revisions[wanted]

    def wrote(self, row: KvRow | None, wanted: Wish) -> Told | str | None:
        """Tell what a put has answered, in words where a new row has a revision of an old one."""
        if row is None:
            return None
        name = (row.tenant, row.kind, row.key)
        if wanted == "none":
            if row.revision in self._made[name]:
                return f"{name} was made at {row.revision} before"
            if name in self._now:
                self._gone[name] = self._now[name]
            self._made[name].add(row.revision)
            self._first[name] = row.revision
        self._now[name] = row.revision
        return self.told(row)

    def told(self, row: KvRow) -> Told:
        """Tell a row."""
        return Told(
            row.key, row.value, row.revision - self._first.get((row.tenant, row.kind, row.key), 0)
        )


def wish(picks: Picks, there: bool) -> Wish:
    """Return at which revision a row is wanted: most often as it is."""
    fits: Wish = "now" if there else "none"
    rest: tuple[Wish, ...] = ("none", "now", "before", "behind", "gone")
    return picks.of((*[fits] * 6, *rest))
