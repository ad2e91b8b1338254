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
_OUTAGES: Final = 0.6  # worlds in which the store goes away, if it may
_FIRST_SECONDS: Final = 0.5
_LAST_SECONDS: Final = 15.0
_SOON_SECONDS: Final = 2.0  # when hardly anything else goes wrong, small worlds end early
_LEASES: Final = 5.0  # that the store is away at most
_RARER: Final[Mapping[FaultKind, float]] = {
    "crash_after": 0.25,
    "crash_before": 0.25,
    "hung": 0.33,
    "paused": 0.33,
    "torn": 8.0,  # of the few commits that carry several units
    "unheard": 15.0,  # of the few messages there are
}
_LATENCIES_SECONDS: Final = (0.0, 0.0, 0.02, 0.15, 0.4)


class Outage(NamedTuple):
    """The store goes away, once."""

    begins_seconds: float
    lasts_seconds: float
    stalls: bool


class Weather:
    """The faults of one world and its outage; `kinds` are those that may strike."""

    def __init__(
        self, kinds: Iterable[FaultKind], random: Random, system: System, *, lease_seconds: float
    ) -> None:
        wanted = sorted(kinds)
        outages = [kind for kind in wanted if kind in ("away", "stalled")]
        rare = len(wanted) > _FEW
        chances: dict[FaultKind, float] = {
            kind: random.choice(_CHANCES if rare else _CHANCES[1:]) * _RARER.get(kind, 1.0)
            for kind in wanted
            if kind not in outages
        }
        latency = random.choice(_LATENCIES_SECONDS)
        self.faults = Faults(system, chances, latency_seconds=latency)
        self.outage: Outage | None = None
        if outages and (not rare or random.random() < _OUTAGES):
            self.outage = Outage(
                random.uniform(_FIRST_SECONDS, _LAST_SECONDS if rare else _SOON_SECONDS),
                random.uniform(1.0, _LEASES * lease_seconds),
                random.choice(outages) == "stalled",
            )

    def turn(self, now_seconds: float) -> None:
        """Let the outage begin when its time has come."""
        outage = self.outage
        if outage is not None and now_seconds > outage.begins_seconds:
            self.outage = None
            self.faults.go_away(outage.lasts_seconds, stalls=outage.stalls)


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
