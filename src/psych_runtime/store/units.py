"""What every adapter does with a unit before and beside writing it, and what it refuses (R-1)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from psych_runtime.ports.store import (
    UNCAPPED,
    UNSET,
    Admit,
    After,
    Change,
    HeaderChange,
    Remaining,
    Unit,
)
from psych_runtime.store._notices import Heads, News
from psych_schema.common import RunPhase
from psych_schema.store import RunRow

__all__ = [
    "MAX_DELETED",
    "OVER",
    "admitted",
    "changed",
    "check_cap",
    "check_deletion",
    "check_limit",
    "check_units",
    "edit_open",
    "enters",
    "is_as_seen",
    "leaves",
    "news_of",
]

OVER: Final = frozenset[object](("settled", "corrupt"))
"""States that a Run does not leave."""

MAX_DELETED: Final = 90  # Runs of one delete_runs


def check_units(units: Sequence[Unit]) -> None:
    """Refuse what no writer may send, before anything is written: nothing, a gap, a foreign row.

    ValueError: a bug of the writer. Nothing that a user does leads here.
    """
    for unit in units:
        if not unit.changes:
            raise ValueError(f"unit {unit.commit_id}: it changes no Run; keys go beside a change")
        if len(unit.changes) > 1:
            _check_distinct(unit, "run", [change.run_id for change in unit.changes])
        if unit.keys:
            _check_distinct(unit, "key", [(key.run_id, key.key) for key in unit.keys])
            _check_tenant(unit, (key.tenant for key in unit.keys))
        for change in unit.changes:
            if isinstance(change, Admit):
                head = 0
                _check_tenant(unit, (change.header.tenant,))
                if not change.records:
                    raise ValueError(f"unit {unit.commit_id}: an admission without a record")
                if change.header.head != len(change.records):
                    raise ValueError(f"unit {unit.commit_id}: an admission's head is its last seq")
            else:
                head = change.expect_head
            for seq, sealed in enumerate(change.records, head + 1):
                row = sealed.row
                if row.seq != seq or row.run_id != change.run_id or row.tenant != unit.tenant:
                    raise ValueError(
                        f"unit {unit.commit_id}: seq {seq} of {change.run_id} expected, "
                        f"not seq {row.seq} of {row.run_id}"
                    )


def _check_distinct(unit: Unit, what: str, names: Sequence[object]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"unit {unit.commit_id}: the same {what} twice")


def _check_tenant(unit: Unit, tenants: Iterable[str]) -> None:
    if any(tenant != unit.tenant for tenant in tenants):
        raise ValueError(f"unit {unit.commit_id}: a row of another tenant")


def admitted(admit: Admit, now: datetime) -> RunRow:
    """Return the header of a new Run, its deadline counted from the store's now (R-14)."""
    if admit.deadline_seconds is None:
        return admit.header
    deadline_at = now + timedelta(seconds=admit.deadline_seconds)
    return admit.header.model_copy(update={"deadline_at": deadline_at})


def changed(header: RunRow, change: Change, now: datetime) -> dict[str, object]:
    """Return the columns that `change` sets; the head follows the last record."""
    update: dict[str, object] = {}
    if change.records:
        last = change.records[-1]
        update["head"] = last.row.seq
        update["head_hash"] = last.hash
        update["head_at"] = last.record.at
        newest = max(sealed.record.v for sealed in change.records)
        if newest > header.schema_version:
            update["schema_version"] = newest
    edit = change.header
    for column in ("state", "worker", "epoch", "crashes", "abort", "referenced"):
        value: object = getattr(edit, column)
        if value is not UNSET:
            update[column] = value
    for column in ("wake_at", "deadline_at"):
        instant: object = getattr(edit, column)
        if isinstance(instant, After):
            instant = now + timedelta(seconds=instant.seconds)
        if instant is not UNSET:
            update[column] = instant
    if isinstance(edit.remaining_seconds, Remaining):
        if header.deadline_at is not None:
            left = (header.deadline_at - now).total_seconds()
            update["remaining_seconds"] = max(0.0, left)
    elif edit.remaining_seconds is not UNSET:
        update["remaining_seconds"] = edit.remaining_seconds
    if edit.opened or edit.closed:
        update["open"] = edit_open(header.open, edit)
    return update


def edit_open(before: Mapping[str, int], edit: HeaderChange) -> dict[str, int]:
    """Return the column `open` after a change: what closed is gone, what opened has its seq."""
    after = {**before, **edit.opened}
    for name in edit.closed:
        after.pop(name, None)
    return after


def news_of(units: Iterable[Unit]) -> News:
    """Return what committed units tell whoever waits for their Runs, or for work."""
    heads: Heads = {}
    touched: Heads = {}
    over: set[tuple[str, str]] = set()
    admitted: list[Admit] = []
    work = False
    for unit in units:
        for change in unit.changes:
            name = unit.tenant, change.run_id
            state = change.header.state
            if change.records:
                heads[name] = change.records[-1].row.seq
            elif isinstance(change, Change):
                touched[name] = change.expect_head
            if isinstance(change, Admit) and state == "ready":
                admitted.append(change)
            elif state == "ready":
                work = True
            elif state in OVER:
                over.add(name)
    return News(heads, touched, frozenset(over), work, tuple(admitted))


def enters(state: RunPhase, edit: HeaderChange) -> bool:
    """Tell whether a change makes a Run running that was not: its tenant's cap counts it."""
    return edit.state == "running" and state != "running"


def leaves(capped: bool, edit: HeaderChange) -> bool:
    """Tell whether a change ends what made a Run count in its tenant's cap."""
    return capped and edit.state is not UNSET and edit.state != "running"


def check_deletion(headers: Sequence[RunRow]) -> None:
    """Refuse what no caller of delete_runs may send. ValueError: a bug of the caller."""
    if len(headers) > MAX_DELETED:
        raise ValueError(f"{len(headers)} runs to delete, at most {MAX_DELETED} at once")
    if len({header.run_id for header in headers}) != len(headers):
        raise ValueError("the same run to delete twice")


def check_limit(limit: int) -> None:
    """Refuse a page that nothing fits into. ValueError: a bug of the caller."""
    if limit < 1:
        raise ValueError(f"a limit of {limit}, at least 1")


def check_cap(limit: int | None) -> None:
    """Refuse a bound that no row of a cap keeps as one. ValueError: a bug of the caller."""
    if limit is not None and not 0 <= limit < UNCAPPED:
        raise ValueError(f"a cap of {limit}, 0 to {UNCAPPED - 1}")


def is_as_seen(tenant: str, now: RunRow | None, seen: RunRow) -> bool:
    """Tell whether a Run that is to be deleted is a tenant's, and as its caller saw it."""
    return now is not None and (now.tenant, now.head, now.state, now.referenced) == (
        tenant,
        seen.head,
        seen.state,
        seen.referenced,
    )
