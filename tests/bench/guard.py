"""Was the machine quiet enough to be believed? A loop of known work is timed between rounds."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from tests.bench.figures import spread_of

__all__ = ["Guard", "Spin", "why_not", "work"]

_STEPS = 400_000  # a shorter loop is through before its turn on a busy core ends
_MAX_WAITING = 1.15
_MAX_UNEVEN = 0.30


class Spin(NamedTuple):
    """One pass of the loop."""

    cpu_seconds: float
    wall_seconds: float


def work() -> Spin:
    """Do the known work once."""
    wall, cpu = time.perf_counter(), time.process_time()
    total = 0
    for step in range(_STEPS):
        total += step * step % 7
    return Spin(time.process_time() - cpu, time.perf_counter() - wall)


def why_not(spins: Sequence[Spin]) -> str:
    """Return why figures taken between these spins are not to be believed; empty: they are.

    A loop that took longer than its processor time had to wait for others; one whose processor
    time varies shared its core, or the core changed its speed.
    """
    if not spins:
        return "nothing was watched"
    waiting = median(spin.wall_seconds / spin.cpu_seconds for spin in spins)
    uneven = spread_of([spin.cpu_seconds for spin in spins])
    reasons = []
    if waiting > _MAX_WAITING:
        reasons.append(f"a loop waited {waiting - 1:.0%} of its time for others")
    if uneven > _MAX_UNEVEN:
        reasons.append(f"the same loop's processor time varied by {uneven:.0%}")
    return "; ".join(reasons)


@dataclass(slots=True)
class Guard:
    """Watches the machine while figures are taken."""

    spins: list[Spin] = field(default_factory=list)

    def look(self) -> None:
        """Time the loop once; called between rounds."""
        self.spins.append(work())

    @property
    def problem(self) -> str:
        """Why not to believe what was measured; empty: believe it."""
        return why_not(self.spins)
