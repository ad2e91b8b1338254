"""Whether a worker has been in contact with the store, by its row (R-6)."""

from datetime import datetime, timedelta

from psych_schema.store import WorkerRow

__all__ = ["in_contact", "is_broken"]


def is_broken(row: WorkerRow, now: datetime) -> bool:
    """Tell whether the contact has broken: less than half of the lease is left."""
    return row.lease_until - now < timedelta(seconds=row.lease_seconds) / 2


def in_contact(row: WorkerRow, now: datetime) -> bool:
    """Tell whether the contact is unbroken, and one whole lease old.

    The others were away as long as the observer was, and their leases may be over by that alone:
    whoever has not renewed since cannot tell.
    """
    unbroken = now - row.since >= timedelta(seconds=row.lease_seconds)
    return unbroken and not is_broken(row, now)
