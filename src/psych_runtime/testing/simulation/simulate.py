"""Prove an agent against crashes: the real engine in thousands of seeded worlds (RUN-1)."""

import asyncio
import gc
import inspect
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Final, NamedTuple, override

from psych_runtime._system import AMBIENT
from psych_runtime.errors import InvalidArgument
from psych_runtime.store.faults import FAULT_KINDS, FaultKind
from psych_runtime.testing.simulation.loop import SimulatedLoop
from psych_runtime.testing.simulation.weather import check_kinds
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
    """What was lived through.

    `struck` counts faults, `worlds` the seeds in which each kind struck at least once, `happened`
    what Runs and workers went through: commits, claims, deaths, ends of Runs.
    """

    seeds: int
    happened: Counter[str]
    struck: Counter[FaultKind]
    worlds: Counter[FaultKind]
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

    It runs a loop of its own: call it from a plain function; from a coroutine, as
    `await asyncio.to_thread(simulate, scenario)`.

    Args:
        scenario: starts workers in the world it is given, dispatches Runs, awaits
            `world.finished()`, and asserts what must be true then.
        seeds: the same seed gives the same world, step by step.
        faults: the kinds that may strike (`psych_runtime.store.faults.FAULT_KINDS`). With many,
            each world has some; of three or fewer, each may strike in every world.
        drains: whether workers are told to stop at times, as in a deploy.
        storm_seconds: how long things go wrong at most, in virtual seconds; then everything
            must end.

    Raises:
        SimulationFailed: for the first seed in which an assertion of the scenario, or an
            invariant of the library, does not hold.
        InvalidArgument: there is no such fault, no seed, or a loop runs here already.
    """
    given = _check_seeds(seeds)
    happened: Counter[str] = Counter()
    struck: Counter[FaultKind] = Counter()
    worlds: Counter[FaultKind] = Counter()
    seconds = 0.0
    for seed in given:
        world = live_through(
            scenario, seed, faults=faults, drains=drains, storm_seconds=storm_seconds
        )
        happened += world.watch.counts
        struck += world.faults.struck
        worlds.update(kind for kind, count in world.faults.struck.items() if count)
        seconds += world.lived_seconds
    return SimulationReport(len(given), happened, struck, worlds, seconds)


def _check_seeds(seeds: object) -> list[int]:
    given = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else []
    found = [seed for seed in given if isinstance(seed, int)]
    if not found or len(found) < len(given):
        raise InvalidArgument(what="seeds", problem="pass whole numbers: range(100), or [17]")
    return found


def _check_seconds(seconds: object) -> None:
    if not (isinstance(seconds, int | float) and 0 < seconds < math.inf):
        raise InvalidArgument(what="storm_seconds", problem="a number of seconds, more than 0")


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
    kinds = check_kinds(faults)
    _check_seconds(storm_seconds)
    if not inspect.iscoroutinefunction(scenario):
        raise InvalidArgument(what="scenario", problem="pass an async function of one argument")
    if asyncio._get_running_loop() is not None:
        problem = "a loop runs here already: await asyncio.to_thread(simulate, scenario)"
        raise InvalidArgument(what="simulate", problem=problem)
    loop = SimulatedLoop(Random(f"{seed}:schedule"), max_steps=_MAX_STEPS)
    world = Simulation(loop, seed, faults=kinds, drains=drains, storm_seconds=storm_seconds)
    loop.set_exception_handler(world.overhear)
    collects = gc.isenabled()
    gc.disable()  # a collected task of a killed process would run its `finally`
    try:
        with _Heard(world.errors):
            loop.run_until_complete(_live(scenario, world))
    except Exception as error:
        raise SimulationFailed(seed, world.watch.verdict or error) from error
    except BaseException as error:
        error.add_note(f"in the simulation of seed {seed}")
        raise
    finally:
        world.lived_seconds, world.fingerprint = loop.time(), loop.fingerprint
        loop.discard()
        if collects:
            gc.enable()
    return world


async def _live(scenario: Scenario, world: Simulation) -> None:
    AMBIENT.set(world.system())
    await scenario(world)
    world.judge()
    if not world.ended:
        world.watch.fail("the scenario returned before `await world.finished()` did")


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
