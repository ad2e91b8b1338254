"""Prove an agent against crashes: the real engine in thousands of seeded worlds (RUN-1)."""

import gc
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from psych_runtime.store.faults import FAULT_KINDS, FaultKind
from psych_runtime.testing.simulation.loop import SimulatedLoop
from psych_runtime.testing.simulation.world import Simulation

__all__ = ["SimulationFailed", "SimulationReport", "live_through", "simulate"]

_MAX_STEPS: Final = 3_000_000


class SimulationFailed(AssertionError):
    """A seed in which something does not hold; the cause says what.

    Nothing real was touched. The same scenario fails with this seed again, step by step.
    """

    def __init__(self, seed: int, cause: BaseException) -> None:
        self.seed = seed
        self.cause = cause
        super().__init__(
            f"seed {seed}: {type(cause).__name__}: {cause}\n"
            f"replay it: simulate(scenario, seeds=[{seed}])"
        )


class SimulationReport(NamedTuple):
    """What was lived through: how many seeds, what happened in them, which faults struck."""

    seeds: int
    happened: Counter[str]
    struck: Counter[FaultKind]
    virtual_seconds: float


type Scenario = Callable[[Simulation], Awaitable[None]]


def simulate(
    scenario: Scenario,
    *,
    seeds: Iterable[int] = range(100),
    faults: Iterable[FaultKind] = tuple(FAULT_KINDS),
    storm_seconds: float = 40.0,
) -> SimulationReport:
    """Live through one world per seed; raise SimulationFailed for the first that goes wrong."""
    happened: Counter[str] = Counter()
    struck: Counter[FaultKind] = Counter()
    count, seconds = 0, 0.0
    for seed in seeds:
        world = live_through(scenario, seed, faults=faults, storm_seconds=storm_seconds)
        happened += world.watch.counts
        struck += world.faults.struck
        seconds += world.lived_seconds
        count += 1
    return SimulationReport(count, happened, struck, seconds)


def live_through(
    scenario: Scenario,
    seed: int,
    *,
    faults: Iterable[FaultKind] = tuple(FAULT_KINDS),
    storm_seconds: float = 40.0,
) -> Simulation:
    """Live through the world of one seed and return it as it was left.

    Raises SimulationFailed when an invariant does not hold, or with what the scenario raised.
    """
    loop = SimulatedLoop(Random(f"{seed}:schedule"), max_steps=_MAX_STEPS)
    world = Simulation(loop, seed, faults=faults, storm_seconds=storm_seconds)
    loop.set_exception_handler(world.overhear)
    log = logging.getLogger("psych_runtime")
    level = log.level
    log.setLevel(logging.CRITICAL)
    collects = gc.isenabled()
    gc.disable()  # a collected task of a killed process would run its `finally`
    try:
        loop.run_until_complete(_live(scenario, world))
    except Exception as error:
        raise SimulationFailed(seed, world.watch.verdict or error) from error
    finally:
        world.lived_seconds, world.fingerprint = loop.time(), loop.fingerprint
        loop.discard()
        log.setLevel(level)
        if collects:
            gc.enable()
    return world


async def _live(scenario: Scenario, world: Simulation) -> None:
    await scenario(world)
    if world.watch.verdict is not None:
        raise world.watch.verdict
