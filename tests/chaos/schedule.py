"""Which harm is done when: all of it from one seed, so that a run's schedule can be repeated."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tests.services import How

__all__ = ["HARMS", "NET_HARMS", "PROCESS_HARMS", "Harm", "Strike", "schedule"]

type Harm = Literal["kill", "stop", "restart", "cut", "delay", "lose"]

PROCESS_HARMS: Final[tuple[Harm, ...]] = ("kill", "stop")
"""What can be done where the store is a file."""
NET_HARMS: Final[tuple[Harm, ...]] = (*PROCESS_HARMS, "cut", "delay", "lose")
"""What can be done where the store is a server that forgets all when it is restarted."""
HARMS: Final[tuple[Harm, ...]] = (*NET_HARMS, "restart")

_FIRST_SECONDS: Final = 3.0  # until each harm's first strike, at most
_BETWEEN_SECONDS: Final[dict[Harm, tuple[float, float]]] = {
    "kill": (4.0, 7.0),
    "stop": (3.0, 6.0),  # after the one before has ended
    "restart": (5.0, 9.0),
    "cut": (3.0, 7.0),
    "delay": (5.0, 9.0),
    "lose": (7.0, 12.0),
}


@dataclass(frozen=True)
class Strike:
    """One harm.

    Attributes:
        at: seconds after the beginning.
        pick: which of those that can be struck, in [0, 1).
        seconds: for how long; 0 is a moment, or as long as a restart takes.
        how: a restart's.
    """

    at: float
    harm: Harm
    pick: float
    seconds: float
    how: How


def schedule(
    seed: int, *, seconds: float, lease_seconds: float, harms: Iterable[Harm]
) -> tuple[Strike, ...]:
    """Return the strikes of `seconds`; every harm strikes at least once."""
    return tuple(
        strike
        for harm in harms
        for strike in _lane(random.Random(f"{seed} {harm}"), harm, seconds, lease_seconds)
    )


def _lane(
    chance: random.Random, harm: Harm, seconds: float, lease_seconds: float
) -> Iterable[Strike]:
    at = chance.uniform(0.5, _FIRST_SECONDS)
    first = True
    while True:
        lasts = _lasts(chance, harm, lease_seconds, first=first)
        first = False
        how: How = "immediate" if chance.random() < 0.5 else "fast"
        yield Strike(at, harm, chance.random(), lasts, how)
        at += lasts + chance.uniform(*_BETWEEN_SECONDS[harm])
        if at >= seconds:
            return


def _lasts(chance: random.Random, harm: Harm, lease_seconds: float, *, first: bool) -> float:
    match harm:
        case "restart":  # some outlast every lease, so that nobody may be judged by it
            return lease_seconds * 1.2 if chance.random() < 0.3 and not first else 0.0
        case "stop":
            return lease_seconds * chance.uniform(1.2, 1.8)
        case "delay":
            return chance.uniform(1.0, 3.0)
        case "lose":
            return chance.uniform(0.3, 1.5)
        case _:
            return 0.0
