"""A simulated process: one worker, its supervisor as a process beside it, and what befalls them."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import override

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.lease import Lease
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.supervisor import Supervisor
from psych_runtime.runtime.worker import Worker
from psych_runtime.store.faults import FaultKind
from psych_runtime.testing.simulation.loop import PROCESS, SimulatedLoop
from psych_runtime.testing.simulation.watch import Watch
from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.code import CodeExecutor
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.registered import RegisteredTool

__all__ = ["Process", "SimulatedWorker"]

_HARMLESS: frozenset[FaultKind] = frozenset(
    {"away", "delayed", "doubled", "late", "stalled", "torn", "unanswered", "unheard"}
)
"""Faults after which a worker must not be declared dead: they take no renewal away."""


class Process:
    """What can be killed, stopped and hung; hears of faults that hit its calls."""

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.name = name
        self.worker: SimulatedWorker | None = None
        self.task: asyncio.Task[None] | None = None
        self._loop = loop
        self._hit_at = -1e9

    @property
    def supervisor(self) -> str:
        """The name under which its supervisor runs: a thread beside the executor's."""
        return f"{self.name}/supervisor"

    @property
    def ended(self) -> bool:
        """Tell whether it was killed, or its worker has returned."""
        return self._loop.is_dead(self.name) or (self.task is not None and self.task.done())

    def attempts(self) -> list[Attempt]:
        """Return what its worker holds; nothing once it was killed."""
        if self.worker is None or self.ended:
            return []
        return list(self.worker.holdings().values())

    def well_for(self, seconds: float) -> bool:
        """Tell whether it runs, and nothing that matters has hit it for `seconds`."""
        still = self._loop.is_paused(self.name) or self._loop.is_paused(self.supervisor)
        return not self.ended and not still and self._loop.time() - self._hit_at > seconds

    def crash(self) -> None:
        """End it as kill -9 does."""
        self._loop.kill(self.name)
        self._loop.kill(self.supervisor)

    def pause(self, seconds: float) -> None:
        """Stop it as SIGSTOP does."""
        self._suffer(seconds)
        self._loop.pause(self.name, seconds)
        self._loop.pause(self.supervisor, seconds)

    def hang(self, seconds: float) -> None:
        """Stop the executor's loop only."""
        self._suffer(seconds)
        self._loop.pause(self.name, seconds)

    def struck(self, kind: FaultKind) -> None:
        """Remember when something last went wrong."""
        if kind not in _HARMLESS:
            self._suffer(0.0)

    def _suffer(self, seconds: float) -> None:
        """Remember until when it is hit; what lasts longer is not cut short by what comes after."""
        self._hit_at = max(self._hit_at, self._loop.time() + seconds)

    def context(self, name: str) -> Context:
        """Return an empty context of this process, or of its supervisor."""
        context = Context()
        context.run(PROCESS.set, name)
        return context


class SimulatedWorker(Worker):
    """The real worker; its supervisor is a simulated process of its own, its effects are seen."""

    def __init__(
        self,
        runtime: Runtime,
        process: Process,
        watch: Watch,
        *,
        concurrency: int,
        lease_seconds: float,
        max_attempts: int,
        grace_seconds: float,
        poll_seconds: float,
    ) -> None:
        super().__init__(
            runtime,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            max_attempts=max_attempts,
            grace_seconds=grace_seconds,
            poll_seconds=poll_seconds,
            threads=False,
        )
        self._process = process
        self._host.tools = _WatchedExecutor(watch, self.lease, runtime.system)

    @override
    def _supervise(self, supervisor: Supervisor, twin: Store) -> asyncio.Future[None]:
        async def work() -> None:
            try:
                await supervisor.run()
            finally:
                await twin.close()

        context = self._process.context(self._process.supervisor)
        return asyncio.get_running_loop().create_task(work(), context=context)


class _WatchedExecutor(CodeExecutor):
    """Shows each execution to the watch right before it begins, and each that is asked about."""

    def __init__(self, watch: Watch, lease: Lease, system: System) -> None:
        super().__init__(None)
        self._watch = watch
        self._lease = lease
        self._system = system

    @override
    async def execute(
        self,
        tool: RegisteredTool,
        arguments: Arguments,
        context: ToolContext,
        *,
        may_start: Callable[[], bool] = lambda: True,
    ) -> Executed | None:
        if isinstance(context, StartedCall):
            lookups = self._watch.lookups
            lookups.asks(tool, context, now=self._system.now(), lease_seconds=self._lease.seconds)
            executed = await super().execute(tool, arguments, context, may_start=may_start)
            lookups.answered(context, executed)
            return executed

        def begins() -> bool:
            if not may_start():
                return False
            self._watch.begins(tool, context, self._lease.worker)
            return True

        return await super().execute(tool, arguments, context, may_start=begins)
