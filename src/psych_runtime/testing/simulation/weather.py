"""What goes wrong in the world of one seed: drawn when it begins, so that worlds differ in kind."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.errors import InvalidArgument
from psych_runtime.store.faults import FAULT_KINDS, FaultKind, Faults

__all__ = ["Outage", "Weather", "check_kinds"]

_CHANCES: Final = (0.0, 0.005, 0.02, 0.06)  # that a call is hit, for each kind
_FEW: Final = 3  # kinds of which each strikes in every world
_PLAIN: Final = 0.4  # worlds that have a few kinds only, of many
_PLAIN_CHANCES: Final = (0.02, 0.05, 0.12)
_OUTAGES: Final = (0, 0, 1, 1, 2, 3)  # of one world, if it may have any
_FIRST_SECONDS: Final = 0.5
_LAST_SECONDS: Final = 15.0
_SOON_SECONDS: Final = 2.0  # when hardly anything else goes wrong, small worlds end early
_LEASES: Final = 5.0  # that the store is away at most
_APART_SECONDS: Final = 0.5  # between the first process that reaches it again and the last
_RARER: Final[Mapping[FaultKind, float]] = {
    "crash_after": 0.25,
    "crash_before": 0.25,
    "cut_off": 0.33,
    "hung": 0.33,
    "paused": 0.33,
    "torn": 8.0,  # of the few commits that carry several units
    "unheard": 15.0,  # of the few messages there are
}
_LATENCIES_SECONDS: Final = (0.0, 0.0, 0.02, 0.15, 0.4)


class Outage(NamedTuple):
    """The store goes away for a while."""

    begins_seconds: float
    lasts_seconds: float
    stalls: bool


class Weather:
    """The faults of one world and its outages; `kinds` are those that may strike."""

    def __init__(
        self, kinds: Iterable[FaultKind], random: Random, system: System, *, lease_seconds: float
    ) -> None:
        wanted = sorted(kinds)
        outages = [kind for kind in wanted if kind in ("away", "stalled")]
        strikes = [kind for kind in wanted if kind not in outages]
        rare = len(wanted) > _FEW
        plain = rare and random.random() < _PLAIN
        if plain:
            strikes = random.sample(strikes, min(len(strikes), random.randint(1, _FEW)))
        chances = _PLAIN_CHANCES if plain else _CHANCES if rare else _CHANCES[1:]
        self.faults = Faults(
            system,
            {kind: random.choice(chances) * _RARER.get(kind, 1.0) for kind in strikes},
            latency_seconds=random.choice(_LATENCIES_SECONDS),
        )
        last_seconds = _LAST_SECONDS if rare and not plain else _SOON_SECONDS
        begins = [
            random.uniform(_FIRST_SECONDS, last_seconds if number == 0 else _LAST_SECONDS)
            for number in range(random.choice(_OUTAGES) if rare else 1)
        ]
        self.outages = [
            Outage(
                seconds,
                random.uniform(1.0, _LEASES * lease_seconds),
                random.choice(outages) == "stalled",
            )
            for seconds in sorted(begins if outages else ())
        ]

    def turn(self, now_seconds: float) -> None:
        """Let an outage begin when its time has come; one that lasts is over then."""
        while self.outages and now_seconds > self.outages[0].begins_seconds:
            outage = self.outages.pop(0)
            self.faults.go_away(
                outage.lasts_seconds, stalls=outage.stalls, apart_seconds=_APART_SECONDS
            )


def check_kinds(kinds: Iterable[object]) -> frozenset[FaultKind]:
    """Return fault kinds, or raise InvalidArgument for what is none."""
    names = ", ".join(FAULT_KINDS)
    if isinstance(kinds, str):
        raise InvalidArgument(what="faults", problem=f"pass a list of kinds; they are {names}")
    given = list(kinds)
    for one in given:
        if one not in list(FAULT_KINDS):
            problem = f"there is no kind {one!r}; there are {names}"
            raise InvalidArgument(what="faults", problem=problem)
    return frozenset(kind for kind in FAULT_KINDS if kind in given)
