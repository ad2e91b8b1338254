"""Whole Runs, from dispatch to settled, on a store, beside the same by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, process_time
from typing import Protocol

from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import Cost, in_turn_async

__all__ = ["Amount", "Place", "Runner", "lines"]


class Runner(Protocol):
    """Who executes Runs."""

    async def many(self, runs: int, *, at_once: int) -> None:
        """Execute so many Runs, `at_once` of them at any moment."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where Runs are kept, what they are beside, and the bounds of lines such as `rate_16`."""

    id: str
    where: str
    beside: str
    bounds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured: `runs` in a round, an eighth of that where one goes at a time."""

    rounds: int
    runs: int
    concurrencies: tuple[int, ...]


async def lines(
    place: Place, ours: Runner, theirs: Runner, amount: Amount, guard: Guard
) -> list[Line]:
    """Return how long a Run takes, one after another, or their rate; and processor time."""
    found: list[Line] = []
    for at_once in amount.concurrencies:
        runs = amount.runs if at_once > 1 else max(1, amount.runs // 8)
        many = [partial(_cost, runner, runs, at_once) for runner in (theirs, ours)]
        hand, we = await in_turn_async(guard, amount.rounds, *many)
        found += [
            _one(place, runs, we, hand) if at_once == 1 else _rate(place, at_once, runs, we, hand),
            Line(
                id=f"{place.id}_cpu_{at_once}",
                title=f"a Run {place.where}, {at_once} at once",
                unit="ms CPU",
                beside=place.beside,
                ours=[cost.cpu_seconds / runs * 1e3 for cost in we],
                yardstick=[cost.cpu_seconds / runs * 1e3 for cost in hand],
                bound=place.bounds.get(f"cpu_{at_once}"),
            ),
        ]
    return found


def _one(place: Place, runs: int, we: Sequence[Cost], hand: Sequence[Cost]) -> Line:
    return Line(
        id=f"{place.id}_one",
        title=f"a Run {place.where}, one after another",
        unit="ms",
        beside=place.beside,
        ours=[cost.wall_seconds / runs * 1e3 for cost in we],
        yardstick=[cost.wall_seconds / runs * 1e3 for cost in hand],
        bound=place.bounds.get("one"),
    )


def _rate(place: Place, at_once: int, runs: int, we: Sequence[Cost], hand: Sequence[Cost]) -> Line:
    return Line(
        id=f"{place.id}_rate_{at_once}",
        title=f"Runs {place.where}, {at_once} at once",
        unit="runs/s",
        beside=place.beside,
        ours=[runs / cost.wall_seconds for cost in we],
        yardstick=[runs / cost.wall_seconds for cost in hand],
        bound=place.bounds.get(f"rate_{at_once}"),
        rate=True,
    )


async def _cost(runner: Runner, runs: int, at_once: int) -> Cost:
    wall, cpu = perf_counter(), process_time()
    await runner.many(runs, at_once=at_once)
    return Cost(process_time() - cpu, perf_counter() - wall)
