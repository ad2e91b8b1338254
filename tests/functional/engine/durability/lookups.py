"""Calls that are open when their worker dies, and whoever finds out what became of them."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel, ScriptedCall
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.reconciled import Reconcile
from tests.functional.engine.durability.crashes import Tool, die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import Crew, admit, agent, eventually, run_to_end, runtime

TIMEOUT_SECONDS = 300.0
LEASE_SECONDS = 6.0


class WallClock(System):
    """A wall clock that a test sets forward; everything else is real."""

    def __init__(self, *, ahead_seconds: float = 0.0) -> None:
        super().__init__()
        self.ahead_seconds = ahead_seconds

    def now(self) -> datetime:
        """Return the real time, set forward."""
        return super().now() + timedelta(seconds=self.ahead_seconds)

    def pass_by(self) -> None:
        """Let the time be over in which a call that was open may still run."""
        self.ahead_seconds += TIMEOUT_SECONDS + LEASE_SECONDS


class Office:
    """Tools whose calls begin and do not end; what began, and what was asked about it."""

    def __init__(self) -> None:
        self.began: list[tuple[str, int]] = []
        self.asked: list[StartedCall] = []
        self._for_ever = asyncio.Event()

    def tool(
        self,
        reconcile: Reconcile | None,
        *,
        name: str = "pay",
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Tool:
        """Return a tool that must not run twice."""

        @tool(name=name, reconcile=reconcile, timeout_seconds=timeout_seconds)
        async def pay(number: int) -> str:
            """Pay an invoice.

            Args:
                number: Which one.
            """
            self.began.append((name, number))
            await self._for_ever.wait()
            return f"paid {number}"

        return pay


class Lost(NamedTuple):
    """A Run whose worker died in its calls."""

    run: str
    model: FakeModel


async def lose(
    store: Store,
    flaky: Flaky,
    crew: Crew,
    office: Office,
    calls: Sequence[ScriptedCall],
    *tools: Tool,
) -> Lost:
    """Let a worker begin `calls` in one turn, and die in all of them."""
    model = FakeModel().turn(tool_calls=calls).turn(text="Done.")
    first = await crew.start(runtime(flaky, model, *tools))
    run = await admit(store, agent(*dict.fromkeys(call[0] for call in calls)))
    await eventually(lambda: len(office.began) == len(calls))
    await die(flaky, store, first)
    return Lost(run, model)


async def take_over(
    crew: Crew,
    made: Runtime,
    run: str,
    *,
    waiting: int = 1,
    lease_seconds: float = LEASE_SECONDS,
    grace_seconds: float = 5.0,
) -> Worker:
    """Start a worker and return it once so many calls wait for their time to be asked about."""
    worker = await crew.start(made, lease_seconds=lease_seconds, grace_seconds=grace_seconds)

    def waits() -> bool:
        attempt = worker.holdings().get(run)
        return attempt is not None and len(attempt.preparing) == waiting

    await eventually(waits)
    return worker


async def find_out(store: Store, crew: Crew, lost: Lost, *tools: Tool, waiting: int = 1) -> None:
    """Let another worker take the Run, wait, ask, and finish it."""
    clock = WallClock()
    await take_over(
        crew, runtime(store, lost.model, *tools, system=clock), lost.run, waiting=waiting
    )
    clock.pass_by()
    await run_to_end(store, lost.run)


async def live_on(worker: Worker, seconds: float) -> None:
    """Return when a worker has lived for so long, and looked at its clock more than once."""
    seen = worker.alive_at()
    await eventually(lambda: worker.alive_at() > seen + seconds)
