"""What a check of the contract needs from whoever runs it."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, Protocol

from psych_runtime.ports import checks
from psych_runtime.ports.store import Store

__all__ = ["Check", "Harness", "near"]

_TOLERANCE: Final = timedelta(seconds=5)  # for stores whose clock runs on its own

type Check = checks.Check[Harness]
"""A named truth about every store."""


class Harness(Protocol):
    """One store, empty and migrated, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[Store]:
        """Open another handle of it."""

    async def advance(self, seconds: float) -> None:
        """Let time pass for it: move its clock on, or all its stored instants back."""


def near(actual: datetime | None, wanted: datetime, what: str) -> None:
    """Raise AssertionError unless the instants are at most 5 seconds apart."""
    if actual is None or abs(actual - wanted) > _TOLERANCE:
        raise AssertionError(f"{what}: {actual}, not about {wanted}")
