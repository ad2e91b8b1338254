"""Clock, ids and randomness: the only module that reads them; everything else is given a System."""

import os
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from random import SystemRandom
from typing import Final

__all__ = ["AMBIENT", "System", "ambient_system"]

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_RANDOM_BITS: Final = 80


class System:
    """What a process knows of time and chance; a simulation brings its own.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._random = SystemRandom()
        self._clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> datetime:
        """Return the wall clock in UTC; it may jump."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never fall and, where the system can, count a suspended machine."""
        return time.clock_gettime(self._clock)

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()

    def salt(self) -> str:
        """Return 32 hexadecimal characters that nobody can guess."""
        return os.urandom(16).hex()

    def new_id(self, prefix: str) -> str:
        """Return `prefix`, an underscore and 26 characters: milliseconds, then chance.

        Ids of one System rise strictly, whatever the wall clock does.
        """
        fresh = time.time_ns() // 1_000_000 << _RANDOM_BITS | int.from_bytes(os.urandom(10))
        with self._lock:
            value = self._last = max(fresh, self._last + 1)
        return prefix + "_" + "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


AMBIENT: Final[ContextVar[System | None]] = ContextVar("AMBIENT", default=None)
"""Whose clock, ids and chance code uses that is not told: a simulation sets its own."""


def ambient_system() -> System:
    """Return the System of this context, a new one where nobody has set any."""
    return AMBIENT.get() or System()


_SHIFTS: Final = tuple(range(120, -1, -10))
