"""Clock, ids and chance of one simulated process: all from the seed."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, override

from psych_runtime._system import System

__all__ = ["START", "SeededSystem"]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The store's clock when a simulation begins."""


class SeededSystem(System):
    """A System whose clock is the loop's, off by `skew_seconds`, and whose chance is seeded.

    Systems that share `numbers` never give the same id twice.
    """

    def __init__(
        self,
        time: Callable[[], float],
        random: Random,
        numbers: Iterator[int],
        *,
        skew_seconds: float = 0.0,
    ) -> None:
        super().__init__()
        self._time = time
        self._chance = random
        self._numbers = numbers
        self._skew_seconds = skew_seconds

    @override
    def now(self) -> datetime:
        """Return this process's wall clock."""
        return START + timedelta(seconds=self._time() + self._skew_seconds)

    @override
    def monotonic(self) -> float:
        """Return seconds since a moment of its own."""
        return self._time() + 100.0 + self._skew_seconds

    @override
    def random(self) -> float:
        """Return the next number of the seed."""
        return self._chance.random()

    @override
    def salt(self) -> str:
        """Return 32 hexadecimal characters of the seed."""
        return f"{self._chance.getrandbits(128):032x}"

    @override
    def new_id(self, prefix: str) -> str:
        """Return `prefix`, an underscore and the next number of the simulation."""
        return f"{prefix}_{next(self._numbers):026d}"
