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
_POOL_BYTES: Final = 2048


class _Drawn:
    """Bytes of os.urandom, many at once: each call of it lets go of the interpreter's lock.

    For one thread at a time. A process that was forked begins anew.
    """

    def __init__(self) -> None:
        self._pool = b""
        self._at = 0
        self._process = 0

    def take(self, count: int) -> bytes:
        """Return so many bytes, which nobody gets again."""
        process = os.getpid()
        end = self._at + count
        if end > len(self._pool) or process != self._process:
            self._pool, self._process = os.urandom(_POOL_BYTES), process
            end = count
        self._at = end
        return self._pool[end - count : end]


class System:
    """What a process knows of time and chance; a simulation brings its own.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._bytes = _Drawn()
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
        with self._lock:
            return self._bytes.take(16).hex()

    def new_id(self, prefix: str) -> str:
        """Return `prefix`, an underscore and 26 characters: milliseconds, then chance.

        Ids of one System rise strictly, whatever the wall clock does.
        """
        now = time.time_ns() // 1_000_000 << _RANDOM_BITS
        with self._lock:
            fresh = now | int.from_bytes(self._bytes.take(10))
            value = self._last = max(fresh, self._last + 1)
        return prefix + "_" + "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


AMBIENT: Final[ContextVar[System | None]] = ContextVar("AMBIENT", default=None)
"""Whose clock, ids and chance code uses that is not told: a simulation sets its own."""


def ambient_system() -> System:
    """Return the System of this context, a new one where nobody has set any."""
    return AMBIENT.get() or System()


_SHIFTS: Final = tuple(range(120, -1, -10))
