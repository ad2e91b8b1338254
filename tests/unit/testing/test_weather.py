"""The weather of simulated worlds: drawn from the seed alone, and of many kinds."""

from collections.abc import Iterable, Iterator
from random import Random

from psych_runtime._system import System
from psych_runtime.store.faults import FAULT_KINDS, FaultKind, Faults
from psych_runtime.testing.simulation.weather import Weather

_BY_CHANCE = FAULT_KINDS.keys() - {"away", "stalled"}


class _Unlucky(System):
    """A System of which every chance, however small, strikes."""

    def random(self) -> float:
        return 0.0


def _weathers(kinds: Iterable[FaultKind], *, worlds: int = 200) -> Iterator[Weather]:
    for seed in range(worlds):
        yield Weather(kinds, Random(f"{seed}:world"), _Unlucky(), lease_seconds=6.0)


def _strikes(faults: Faults) -> frozenset[FaultKind]:
    return frozenset(kind for kind in FAULT_KINDS if faults.strikes(kind, None))


def test_a_seed_draws_the_same_weather_again() -> None:
    """Whatever else was drawn in the process."""
    first = [(_strikes(one.faults), one.outages) for one in _weathers(FAULT_KINDS)]
    assert first == [(_strikes(one.faults), one.outages) for one in _weathers(FAULT_KINDS)]


def test_worlds_differ_in_kind() -> None:
    """Some have a few kinds of fault, some most, and in each kind's place there is some world."""
    found = [_strikes(one.faults) for one in _weathers(FAULT_KINDS)]
    sizes = [len(kinds) for kinds in found]
    assert sum(size <= 3 for size in sizes) > 40
    assert sum(size >= 7 for size in sizes) > 40
    assert frozenset().union(*found) == _BY_CHANCE


def test_worlds_have_no_outage_one_or_several() -> None:
    """In the order in which they come."""
    found = [one.outages for one in _weathers(FAULT_KINDS)]
    assert {len(outages) for outages in found} == {0, 1, 2, 3}
    for outages in found:
        begins = [outage.begins_seconds for outage in outages]
        assert begins == sorted(begins)


def test_of_few_kinds_each_strikes_in_every_world() -> None:
    """Whoever asks for them means them."""
    for one in _weathers(["lost", "paused", "away"]):
        assert _strikes(one.faults) == {"lost", "paused"}
        assert [outage.stalls for outage in one.outages] == [False]


def test_no_kind_is_no_weather() -> None:
    """Nothing strikes, and the store stays."""
    for one in _weathers([]):
        assert not _strikes(one.faults)
        assert not one.outages
