"""Statements that find Runs to claim and to settle, over the generated tables (R-15).

Every one is answered from an index that settled Runs are not in.
"""

from typing import Literal

from sqlalchemy import ColumnElement, Select, bindparam, or_, select

from psych_runtime.store.sql_words import OPEN_STATES, WAITING_STATES, first, word, words
from psych_schema.tables import tables

__all__ = ["ClaimStatements"]


class ClaimStatements:
    """What looking for work says."""

    def __init__(self, prefix: str) -> None:
        self._t = tables(prefix)

    def _waiting(self, state: Literal["ready", "suspended"]) -> ColumnElement[bool]:
        c = self._t.run.c
        return c.state.in_(words(WAITING_STATES)) & (c.state == word(state))

    def next_ready_tenant(self) -> Select[str]:
        """Find the next tenant with a ready Run whose time has come."""
        c = self._t.run.c
        due = or_(c.wake_at.is_(None), c.wake_at <= bindparam("now"))
        found = select(c.tenant).where(self._waiting("ready"), due)
        return first(found.where(c.tenant > bindparam("after")).order_by(c.tenant))

    def next_due_tenant(self) -> Select[str]:
        """Find the next tenant with a suspended Run whose time has come."""
        c = self._t.run.c
        due = c.wake_at <= bindparam("now")
        found = select(c.tenant).where(self._waiting("suspended"), due)
        return first(found.where(c.tenant > bindparam("after")).order_by(c.tenant))

    def next_priority(self, state: Literal["ready", "suspended"]) -> Select[int]:
        """Find the next lower priority that a tenant's Runs of a state have."""
        c = self._t.run.c
        return first(
            select(c.priority)
            .where(self._waiting(state), c.tenant == bindparam("tenant"))
            .where(c.priority < bindparam("below"))
            .order_by(c.priority.desc())
        )

    def find_ready(self) -> Select[*tuple[object, ...]]:
        """Read a tenant's ready Runs of one priority that wait for no instant, oldest first."""
        c = self._t.run.c
        return (
            select(*c)
            .where(self._waiting("ready"), c.tenant == bindparam("tenant"))
            .where(c.priority == bindparam("priority"), c.wake_at.is_(None))
            .order_by(c.created_at)
        )

    def find_due(self, state: Literal["ready", "suspended"]) -> Select[*tuple[object, ...]]:
        """Read a tenant's Runs of one priority and state whose time has come, earliest first."""
        c = self._t.run.c
        return (
            select(*c)
            .where(self._waiting(state), c.tenant == bindparam("tenant"))
            .where(c.priority == bindparam("priority"), c.wake_at <= bindparam("now"))
            .order_by(c.wake_at)
        )

    def next_held_worker(self) -> Select[str | None]:
        """Find the next worker that a header names."""
        worker = self._t.run.c.worker
        return first(select(worker).where(worker > bindparam("after")).order_by(worker))

    def find_held(self) -> Select[*tuple[object, ...]]:
        """Read the running Runs of a worker."""
        c = self._t.run.c
        return select(*c).where(c.worker == bindparam("worker"), c.state == word("running"))

    def find_late(self) -> Select[*tuple[object, ...]]:
        """Read unsettled Runs past their deadline, longest ago first."""
        c = self._t.run.c
        late = c.deadline_at <= bindparam("now")
        found = select(*c).where(c.state.in_(words(OPEN_STATES)), late)
        return found.order_by(c.deadline_at)

    def find_aborted(self) -> Select[*tuple[object, ...]]:
        """Read unsettled Runs that somebody asked to stop."""
        c = self._t.run.c
        return select(*c).where(c.state.in_(words(OPEN_STATES)), c.abort.is_not(None))
