"""A worker's claim to be alive, as its own clock can prove it (R-5, R-9, R-14).

Written by the supervisor's thread, read by the executor: single assignments only.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from psych_runtime._system import System

__all__ = ["Lease"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Lease:
    """Which worker id is ours, until when, and what the store's clock says."""

    def __init__(self, system: System, *, seconds: float) -> None:
        self._system = system
        self.seconds = seconds
        self.worker: str | None = None
        self._renewed_at: float | None = None  # when the last good renewal was sent
        self._offset: float | None = None  # store's clock minus ours, the smallest seen

    def enlisted(self, worker: str, *, now: datetime, sent: float) -> None:
        """Take a worker id whose row exists."""
        self._renewed_at = sent
        self.observe(now, sent)
        self.worker = worker

    def renewed(self, worker: str, *, now: datetime, sent: float) -> None:
        """Take a renewal's answer; answers come in any order."""
        self.observe(now, sent)
        if worker == self.worker and (self._renewed_at is None or sent > self._renewed_at):
            self._renewed_at = sent

    def lost(self) -> None:
        """The worker id is dead; another one follows."""
        self.worker = None
        self._renewed_at = None

    def fresh(self) -> bool:
        """Tell whether an effect may start: the lease runs by our clock, less a margin."""
        if self._renewed_at is None or self.worker is None:
            return False
        return self._system.monotonic() < self._renewed_at + self.seconds * 5 / 6

    def observe(self, now: datetime, sent: float) -> None:
        """Learn the store's clock: the smallest offset keeps ours an upper bound.

        One below what this answer allows is from before the store's clock was set forward.
        """
        stood = (now - _EPOCH).total_seconds()
        offset, least = stood - sent, stood - self._system.monotonic()
        known = self._offset
        if known is None or offset < known or known < least:
            self._offset = offset

    def store_now(self) -> datetime:
        """Return the store's clock: what the store calls due is due here too."""
        if self._offset is None:
            return self._system.now()
        return _EPOCH + timedelta(seconds=self._system.monotonic() + self._offset)
