"""One simulated world: a store, processes that come and go, and a storm that ends (R-1 to R-9).

A scenario is written against this class as a program is against real workers and a real store;
see `simulate`.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Final

from psych_runtime._system import System
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.policy import Policy
from psych_runtime.ports.store import Store
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.signals import Lost
from psych_runtime.store.faults import FAULT_KINDS, FaultKind, Faults, FaultyStore
from psych_runtime.testing.simulation.loop import PROCESS, SimulatedLoop
from psych_runtime.testing.simulation.process import Process, SimulatedWorker
from psych_runtime.testing.simulation.system import SeededSystem
from psych_runtime.testing.simulation.watch import Violation, Watch, WatchedStore
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope

__all__ = ["Simulation"]

_CHANCES: Final = (0.0, 0.005, 0.02, 0.06)  # of a fault, for each kind drawn anew per seed
_RARER: Final[Mapping[FaultKind, float]] = {
    "crash_after": 0.25,
    "crash_before": 0.25,
    "hung": 0.33,
    "paused": 0.33,
    "torn": 8.0,  # of the few commits that carry several units
}
_LATENCIES_SECONDS: Final = (0.002, 0.02, 0.15, 0.4)
_SKEW_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 1.0
_REPLACE_CHANCE: Final = 0.5  # each time, of one that has ended
_DRAIN_CHANCE: Final = 0.02  # each time, of one worker that is told to stop
_PATIENCE_SECONDS: Final = 2000.0  # that Runs have to end in, once nothing goes wrong any more


class Simulation:
    """A world of one seed.

    `store` is a handle that never fails, for the scenario itself; `random` is its chance.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: int,
        *,
        faults: Iterable[FaultKind] = tuple(FAULT_KINDS),
        drains: bool = True,
        storm_seconds: float = 40.0,
    ) -> None:
        self.seed = seed
        self.random = Random(f"{seed}:world")
        self.watch = Watch(self)
        self.errors: list[str] = []  # what the library logged as an error
        self.processes: list[Process] = []
        self._loop = loop
        self._numbers = itertools.count(1)
        self._kinds = frozenset(faults)
        self._drains = drains
        self._storm_seconds = storm_seconds
        self._lease_seconds = self.random.choice((2.5, 6.0))
        self.store: Store = WatchedStore(self.system(), self.watch)
        self.faults = self._draw_faults()
        self._stand_ins: dict[Process, Callable[[], None]] = {}  # by whom each is replaced
        self._outage = self._draw_outage()
        self._workers = 0
        self.lived_seconds = 0.0
        self.fingerprint = 0

    def _draw_faults(self) -> Faults:
        chances: dict[FaultKind, float] = {
            kind: self.random.choice(_CHANCES) * _RARER.get(kind, 1.0)
            for kind in sorted(self._kinds - {"away", "stalled"})
        }
        return Faults(
            self.system(), chances, latency_seconds=self.random.choice(_LATENCIES_SECONDS)
        )

    def _draw_outage(self) -> tuple[float, float, bool] | None:
        """Draw when the store goes away, for how long, and whether it stalls."""
        kinds = sorted(self._kinds & {"away", "stalled"})
        if not kinds or self.random.random() < 0.4:
            return None
        begins = self.random.uniform(2.0, self._storm_seconds)
        lasts = self.random.uniform(1.0, 5.0 * self._lease_seconds)
        return begins, lasts, self.random.choice(kinds) == "stalled"

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
        model: ModelClient | Mapping[str, ModelClient],
        tools: Iterable[object] = (),
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
        """
        registry = ToolRegistry() if registry is None else registry
        registry.register_all(tools)

        def stand_in() -> None:
            process = Process(self._loop, f"p{self._workers}")
            self._workers += 1

            def place(scope: Scope | None) -> None:
                PROCESS.set(process.name)
                if context is not None:
                    context(scope)

            skew = self.random.uniform(-_SKEW_SECONDS, _SKEW_SECONDS)
            runtime = Runtime(
                store=FaultyStore(self.store.twin(), self.faults, process),
                model=model,
                registry=registry,
                policy=policy,
                context=place,
                system=self.system(skew_seconds=skew),
            )
            process.worker = SimulatedWorker(
                runtime,
                process,
                self.watch,
                concurrency=concurrency,
                lease_seconds=self._lease_seconds,
                max_attempts=max_attempts,
                grace_seconds=grace_seconds,
                poll_seconds=poll_seconds,
            )
            self.processes.append(process)
            self._stand_ins[process] = stand_in
            process.task = self._loop.create_task(
                process.worker.run(), context=process.context(process.name)
            )

        for _ in range(workers):
            stand_in()

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
        """Return once the storm is over and every Run has settled. Raises Violation."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if self.watch.verdict is not None:
                raise self.watch.verdict
            self._weather()
            self._replace()
            unsettled = [one for one in self.watch.headers.values() if one.state != "settled"]
            if not unsettled:
                return
            if self._loop.time() > self._storm_seconds + _PATIENCE_SECONDS:
                self.watch.fail(f"not every run ends: {unsettled[0]!r}")

    def _weather(self) -> None:
        now = self._loop.time()
        if now > self._storm_seconds:
            self.faults.quiet = True
        elif self._outage is not None and now > self._outage[0]:
            _, lasts, stalls = self._outage
            self._outage = None
            self.faults.go_away(lasts, stalls=stalls)
        elif self._drains and self.processes and self.random.random() < _DRAIN_CHANCE:
            worker = self.random.choice(self.processes).worker
            if worker is not None:
                worker.stop()

    def _replace(self) -> None:
        for process in [one for one in self.processes if one.ended]:
            if self.random.random() < _REPLACE_CHANCE:
                self.watch.counts["processes replaced"] += 1
                self.processes.remove(process)
                self._stand_ins.pop(process)()
