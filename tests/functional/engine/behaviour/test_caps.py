"""Workers keep to the cap of a tenant, and do not run hot when it is full (R-15)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import pytest

from psych_runtime import Cap, administrator
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import ModelEvent, ModelRequest
from tests.functional.engine.durability.crashes import Bench
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    Crew,
    admit,
    agent,
    eventually,
    run_to_end,
    runtime,
)
from tests.functional.store.broken import OffersWithoutRoom
from tests.stores.kinds import EVERY_STORE

_RUNS: Final = 50
_LONG_SECONDS: Final = 100.0  # two at once of fifty take their time on a slow machine


class Crowd(FakeModel):
    """Sees how many of its calls are under way at once; none is answered before there are two."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.most = 0
        self._inside = 0
        self._to_come = calls
        self._company = asyncio.Event()
        for _ in range(calls):
            self.turn(text="Done.")

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        return self._counted(super().stream(request))

    async def _counted(self, events: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
        self._inside += 1
        self._to_come -= 1
        self.most = max(self.most, self._inside)
        if self._inside > 1 or not self._to_come:
            self._company.set()
        await self._company.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        async for event in events:
            yield event
        self._inside -= 1
        if self._to_come:
            self._company.clear()


@pytest.mark.parametrize("kind", EVERY_STORE)
async def test_r_15_workers_keep_to_the_cap_of_a_tenant(store: Store, crew: Crew) -> None:
    """Four workers with room for all: never three at once of one tenant, and all of them settle."""
    model = Crowd(_RUNS)
    await administrator(store).set_cap("acme", 2)
    runs = await asyncio.gather(*[admit(store, agent()) for _ in range(_RUNS)])
    for _ in range(4):
        await crew.start(runtime(store, model), concurrency=_RUNS)
    await eventually(lambda: len(model.requests) == _RUNS, bound_seconds=_LONG_SECONDS)
    for run_id in runs:
        await run_to_end(store, run_id)
    assert model.most == 2
    assert await administrator(store).cap("acme") == Cap(running=0, limit=2)


async def test_r_15_a_worker_whose_claim_met_the_cap_rests(crew: Crew) -> None:
    """Though the store offers the Run again and again: it looks once, and when it is woken."""
    store = OffersWithoutRoom()
    await store.set_cap("acme", 1)
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.").turn(text="Done.")
    await crew.start(runtime(store, model, bench.unsafe()))
    first = await admit(store, agent("charge"))
    await eventually(lambda: bench.ran)
    second = await admit(store, agent("charge"))
    watched = Flaky(store)
    idle: Worker = await crew.start(runtime(watched, model, bench.unsafe()), poll_seconds=3600.0)
    await eventually(lambda: watched.faults.units)
    for _ in range(100):
        await asyncio.sleep(0)
    looked = watched.faults.calls["ready"]
    for _ in range(100):
        await asyncio.sleep(0)
    assert (watched.faults.calls["ready"], looked) == (1, 1)
    assert (await store.header("acme", second)).state == "ready"
    bench.release.set()
    await run_to_end(store, first)
    idle.nudge()
    await run_to_end(store, second)
