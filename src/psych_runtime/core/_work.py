"""Bounds what one check may cost: steps are counted, no clock is asked (SEC-3)."""

from typing import Final

__all__ = ["MAX_STEPS", "TooMuchWork", "Work"]

MAX_STEPS: Final = 2_000_000
"""Of one check; a step takes about half a microsecond, a slow one two."""


class TooMuchWork(Exception):
    """The steps are spent; nothing is known of what was checked."""


class Work:
    """The steps that are left."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Take steps before they are done. Raises TooMuchWork."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork
