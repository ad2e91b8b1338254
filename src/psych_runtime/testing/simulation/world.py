"""One simulated world: a store, processes that come and go, and a storm that ends (R-1 to R-9).

A scenario is written against this class as a program is against real workers and a real store;
see `simulate`.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Final, NamedTuple

from psych_runtime._system import AMBIENT, System
from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.signals import Lost
from psych_runtime.store.faults import FaultKind, Faults, FaultyStore
from psych_runtime.testing.simulation.loop import PROCESS, SimulatedLoop
from psych_runtime.testing.simulation.process import Process, SimulatedWorker
from psych_runtime.testing.simulation.system import SeededSystem
from psych_runtime.testing.simulation.watch import Violation, Watch, WatchedStore
from psych_runtime.testing.simulation.weather import Weather
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope

__all__ = ["Simulation"]

_SKEW_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 1.0
_REPLACE_CHANCE: Final = 0.5  # each time, of one that has ended
_DRAIN_CHANCE: Final = 0.02  # each time, of one worker that is told to stop
_PATIENCE_SECONDS: Final = 2000.0  # that Runs have to end in, once nothing goes wrong any more

type Model = ModelClient | Mapping[str, ModelClient]


class _Recipe(NamedTuple):
    """How processes of one kind are made."""

    model: Callable[[], Model]
    registry: Callable[[], ToolRegistry]
    policy: Policy | None
    context: Callable[[Scope | None], None] | None
    concurrency: int
    max_attempts: int
    grace_seconds: float
    poll_seconds: float


class Simulation:
    """A world of one seed.

    `store` is a handle that never fails, for the scenario itself; `random` is its chance. Code
    of the library that is called in a scenario takes clock and ids from the world, too.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: int,
        *,
        faults: frozenset[FaultKind],
        drains: bool,
        storm_seconds: float,
    ) -> None:
        self.seed = seed
        self.random = Random(f"{seed}:world")
        self.watch = Watch(self)
        self.errors: list[str] = []  # what the library logged as an error
        self.processes: list[Process] = []
        self.lived_seconds = 0.0
        self.fingerprint = 0
        self.ended = False  # `finished` has returned
        self._loop = loop
        self._numbers = itertools.count(1)
        self._drains = drains
        self._storm_seconds = storm_seconds
        self._lease_seconds = self.random.choice((2.5, 6.0))
        self._clock = self.system()
        self.store: Store = WatchedStore(self._clock, self.watch)
        self._weather = Weather(
            faults, self.random, self.system(), lease_seconds=self._lease_seconds
        )
        self._recipes: dict[Process, _Recipe] = {}  # how each is replaced
        self._workers = 0

    @property
    def faults(self) -> Faults:
        """What befalls the store's calls, and how often it has."""
        return self._weather.faults

    def now(self) -> datetime:
        """Return the store's clock; `asyncio` knows the seconds since the world began."""
        return self._clock.now()

    def system(self, *, skew_seconds: float = 0.0) -> System:
        """Return clock, ids and chance of another process of this world."""
        chance = Random(self.random.getrandbits(64))
        return SeededSystem(self._loop.time, chance, self._numbers, skew_seconds=skew_seconds)

    def handle(self) -> Store:
        """Return a handle of the store whose calls fail, for a writer that cannot be killed."""
        return FaultyStore(self.store.twin(), self.faults)

    # processes

    def start(
        self,
        *,
        model: Model | Callable[[], Model],
        tools: Iterable[object] | Callable[[], Iterable[object]] = (),
        registry: ToolRegistry | None = None,
        policy: Policy | None = None,
        context: Callable[[Scope | None], None] | None = None,
        workers: int = 2,
        concurrency: int = 4,
        max_attempts: int = 1000,
        grace_seconds: float = 5.0,
        poll_seconds: float = 0.5,
    ) -> None:
        """Start worker processes; one that is killed or ends is replaced after a while.

        The arguments are those of Runtime and Worker. Clocks are up to 30 s apart. Tools and the
        model client run in virtual time: they may sleep, and must do no IO of their own.

        Args:
            model, tools: what all processes share; or functions that are called once for each
                process, so that what one keeps in memory dies with it.
            registry: tools that are registered already; not with a function as `tools`.
        """
        for what, value in (
            ("workers", workers),
            ("concurrency", concurrency),
            ("max_attempts", max_attempts),
        ):
            if value < 1:
                raise InvalidArgument(what=what, problem=f"at least 1, not {value}")
        if callable(tools) and registry is not None:
            problem = "each process makes its own: pass tools=function, or registry="
            raise InvalidArgument(what="registry", problem=problem)
        shared = ToolRegistry() if registry is None else registry
        if not callable(tools):
            shared.register_all(tools)

        def own() -> ToolRegistry:
            if not callable(tools):
                return shared
            made = ToolRegistry()
            made.register_all(tools())
            return made

        recipe = _Recipe(
            model=model if callable(model) else lambda: model,
            registry=own,
            policy=policy,
            context=context,
            concurrency=concurrency,
            max_attempts=max_attempts,
            grace_seconds=grace_seconds,
            poll_seconds=poll_seconds,
        )
        for _ in range(workers):
            self._begin(recipe)

    def _begin(self, recipe: _Recipe) -> None:
        """Start one process."""
        process = Process(self._loop, f"p{self._workers}")
        self._workers += 1
        system = self.system(skew_seconds=self.random.uniform(-_SKEW_SECONDS, _SKEW_SECONDS))

        def place(scope: Scope | None) -> None:
            PROCESS.set(process.name)
            AMBIENT.set(system)
            if recipe.context is not None:
                recipe.context(scope)

        runtime = Runtime(
            store=FaultyStore(self.store.twin(), self.faults, process),
            model=recipe.model(),
            registry=recipe.registry(),
            policy=recipe.policy,
            context=place,
            system=system,
        )
        process.worker = SimulatedWorker(
            runtime,
            process,
            self.watch,
            concurrency=recipe.concurrency,
            lease_seconds=self._lease_seconds,
            max_attempts=recipe.max_attempts,
            grace_seconds=recipe.grace_seconds,
            poll_seconds=recipe.poll_seconds,
        )
        self.processes.append(process)
        self._recipes[process] = recipe
        process.task = self._loop.create_task(
            process.worker.run(), context=process.context(process.name)
        )

    # what the watch asks

    def attempts(self, run_id: str) -> Iterator[Attempt]:
        """Yield the attempts of a Run in processes that were not killed."""
        for process in self.processes:
            for attempt in process.attempts():
                if attempt.run_id == run_id:
                    yield attempt

    def well(self, worker: str) -> str | None:
        """Return the process of a worker id that nothing has befallen for two leases."""
        for process in self.processes:
            used = process.worker is not None and process.worker.lease.worker == worker
            if used and process.well_for(2 * self._lease_seconds + 1.0):
                return process.name
        return None

    def at(self) -> str:
        """Return where and when this happens."""
        return f"seed {self.seed}, {self._loop.time():.3f} s, {PROCESS.get() or 'nobody'}"

    def overhear(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        """Take an error that nobody has taken as a violation; a Run given up is none."""
        error = context.get("exception")
        if not isinstance(error, Lost | asyncio.CancelledError) and self.watch.verdict is None:
            problem = f"{context.get('message')}: {error!r}"
            self.watch.verdict = Violation(f"{problem} ({self.at()})")

    # the storm

    async def finished(self) -> None:
        """Return once every Run has settled; the storm ends then, or when its time is over.

        Raises Violation: an invariant does not hold, a Run does not end, or there is none.
        """
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self.judge()
            self._pass_time()
            unsettled = [one for one in self.watch.headers.values() if one.state != "settled"]
            if not self.watch.headers:
                self.watch.fail("no run was dispatched: there is nothing to simulate")
            if not unsettled:
                self.ended = True
                return
            if self._loop.time() > self._storm_seconds + _PATIENCE_SECONDS:
                one = unsettled[0]
                self.watch.fail(
                    f"not every run ends: {one.run_id} is {one.state} at seq {one.head}, in epoch "
                    f"{one.epoch}, held by {one.worker or 'nobody'}; is a worker started, with "
                    "the tools that its Version needs, and everything answered that it waits for?"
                )

    def judge(self) -> None:
        """Raise what has been seen to go wrong so far."""
        if self.watch.verdict is not None:
            raise self.watch.verdict
        if self._loop.refused:
            self.watch.fail(f"{self._loop.refused[0]}, which cannot be simulated")
        if self.errors:
            self.watch.fail(f"the library logged an error: {self.errors[0]}")

    def _pass_time(self) -> None:
        now = self._loop.time()
        self._weather.turn(now)
        if now > self._storm_seconds:
            self.faults.quiet = True
        elif self._drains and self.processes and self.random.random() < _DRAIN_CHANCE:
            worker = self.random.choice(self.processes).worker
            if worker is not None:
                worker.stop()
        for process in [one for one in self.processes if one.ended]:
            if self.random.random() < _REPLACE_CHANCE:
                self.watch.counts["processes replaced"] += 1
                self.processes.remove(process)
                self._begin(self._recipes.pop(process))
