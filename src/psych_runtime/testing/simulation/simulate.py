"""Prove an agent against crashes: the real engine in thousands of seeded worlds (RUN-1)."""

import gc
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Final, NamedTuple, override

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
            f"replay it: simulate(scenario, seeds=[{seed}]), the other arguments as they were"
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
    drains: bool = True,
    storm_seconds: float = 40.0,
) -> SimulationReport:
    """Live through one world per seed, and say what happened in them.

    Args:
        scenario: starts workers in the world it is given, dispatches Runs, awaits
            `world.finished()`, and asserts what must be true then.
        seeds: the same seed gives the same world, step by step.
        faults: the kinds that may strike (`psych_runtime.store.faults.FAULT_KINDS`).
        drains: whether workers are told to stop at times, as in a deploy.
        storm_seconds: how long things go wrong, in virtual seconds; then everything must end.

    Raises:
        SimulationFailed: for the first seed in which an assertion of the scenario, or an
            invariant of the library, does not hold.
    """
    happened: Counter[str] = Counter()
    struck: Counter[FaultKind] = Counter()
    count, seconds = 0, 0.0
    for seed in seeds:
        world = live_through(
            scenario, seed, faults=faults, drains=drains, storm_seconds=storm_seconds
        )
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
    drains: bool = True,
    storm_seconds: float = 40.0,
) -> Simulation:
    """Live through the world of one seed and return it as it was left.

    Raises SimulationFailed when an invariant does not hold, or with what the scenario raised.
    """
    loop = SimulatedLoop(Random(f"{seed}:schedule"), max_steps=_MAX_STEPS)
    world = Simulation(loop, seed, faults=faults, drains=drains, storm_seconds=storm_seconds)
    loop.set_exception_handler(world.overhear)
    collects = gc.isenabled()
    gc.disable()  # a collected task of a killed process would run its `finally`
    try:
        with _Heard(world.errors):
            loop.run_until_complete(_live(scenario, world))
    except Exception as error:
        raise SimulationFailed(seed, world.watch.verdict or error) from error
    finally:
        world.lived_seconds, world.fingerprint = loop.time(), loop.fingerprint
        loop.discard()
        if collects:
            gc.enable()
    return world


class _Heard(logging.Handler):
    """Keeps what the library logs as an error, in virtual time; the rest goes unheard."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._errors = errors
        self._log = logging.getLogger("psych_runtime")
        self._before = (self._log.level, self._log.propagate)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message."""
        error = record.exc_info[1] if record.exc_info else None
        self._errors.append(record.getMessage() + (f": {error!r}" if error else ""))

    def __enter__(self) -> None:
        self._log.addHandler(self)
        self._log.setLevel(logging.ERROR)
        self._log.propagate = False

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
        level, self._log.propagate = self._before
        self._log.setLevel(level)


async def _live(scenario: Scenario, world: Simulation) -> None:
    await scenario(world)
    if world.watch.verdict is not None:
        raise world.watch.verdict
