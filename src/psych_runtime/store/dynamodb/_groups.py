"""Which units of one commit may be written side by side: those that touch nothing in common."""

from collections.abc import Callable, Iterator, Sequence

from psych_runtime.ports.store import UNSET, Admit, Unit

__all__ = ["groups"]


def groups(units: Sequence[Unit], is_capped: Callable[[str], bool]) -> list[list[int]]:
    """Return the places of the units, those together that must be written one after the other.

    They share a Run, a key, a place in a thread, or the count of a tenant's cap.
    """
    owner: dict[tuple[object, ...], int] = {}
    parent = list(range(len(units)))

    def root(place: int) -> int:
        while parent[place] != place:
            place = parent[place]
        return place

    for place, unit in enumerate(units):
        for name in _touched(unit, is_capped):
            first = owner.setdefault(name, place)
            parent[root(place)] = root(first)
    found: dict[int, list[int]] = {}
    for place in range(len(units)):
        found.setdefault(root(place), []).append(place)
    return list(found.values())


def _touched(unit: Unit, is_capped: Callable[[str], bool]) -> Iterator[tuple[object, ...]]:
    for key in unit.keys:
        yield "key", unit.tenant, key.run_id, key.key
    for change in unit.changes:
        yield "run", change.run_id
        if isinstance(change, Admit):
            yield "place", unit.tenant, change.header.thread, change.header.position
        elif change.header.state is not UNSET and is_capped(unit.tenant):
            yield "cap", unit.tenant
