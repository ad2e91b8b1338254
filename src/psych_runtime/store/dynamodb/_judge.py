"""Judging a unit by headers, in the port's order, and by what is wrong with it alone (R-1)."""

from collections.abc import Mapping

from psych_runtime.ports.answers import Answer, LeaseLost, RunNotFound, SeqConflict, ThreadTaken
from psych_runtime.ports.store import Admit, Change, Unit
from psych_runtime.store.dynamodb._shared import Known
from psych_runtime.store.units import leaves

__all__ = ["any_leaves", "judge", "place_twice"]


def judge(unit: Unit, seen: Mapping[str, Known | None]) -> Answer | None:
    """Judge a unit by its headers; an admission's header is there, or not known to be."""
    fence: Answer | None = None
    head: Answer | None = None
    for change in unit.changes:
        known = seen.get(change.run_id)
        if isinstance(change, Admit):
            if known is not None:
                head = head or SeqConflict(change.run_id)
            continue
        if known is None or known.header.tenant != unit.tenant:
            return RunNotFound(change.run_id)
        if change.fence is not None and change.fence != known.header.epoch:
            fence = fence or LeaseLost(change.run_id)
        if change.expect_head != known.header.head:
            head = head or SeqConflict(change.run_id)
    return fence or head


def place_twice(unit: Unit) -> ThreadTaken | None:
    """Return the place that two admissions of a unit want, None when there is none."""
    places: set[tuple[str, int]] = set()
    for change in unit.changes:
        if isinstance(change, Admit):
            place = change.header.thread, change.header.position
            if place in places:
                return ThreadTaken(*place)
            places.add(place)
    return None


def any_leaves(unit: Unit, seen: Mapping[str, Known | None]) -> bool:
    """Tell whether a unit takes a Run out of its tenant's cap."""
    changes = (change for change in unit.changes if isinstance(change, Change))
    known = ((seen.get(change.run_id), change.header) for change in changes)
    return any(each is not None and leaves(each.header.capped, edit) for each, edit in known)
