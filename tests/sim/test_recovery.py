"""The Runs of a process that dies go on within a lease and a second (RUN-1, R-5)."""

import asyncio

import pytest

from psych_runtime import AgentSpec, AllowAll, CodeTool, ModelRef, Scope, interrupt, tool
from psych_runtime.api import dispatch, publish
from psych_runtime.runtime import supervisor
from psych_runtime.testing import FakeModel
from psych_runtime.testing.simulation import Simulation, live_through

_SCOPE = Scope(tenant="acme")
_RUNS = 6
_SEEDS = range(40)
_MORE_SECONDS = 1.0  # than the rest of the lease
_EACH_SECONDS = 0.02  # how often is looked whether a Run goes on


@tool
async def charge(cents: int) -> str:
    """Charge, which takes a while.

    Args:
        cents: The amount.
    """
    await asyncio.sleep(18.0)
    return "charged"


async def _begin(world: Simulation) -> None:
    """Let Runs sit in their calls on two to four workers, any of which has room for all."""
    world.faults._latency_seconds = world.random.choice((0.0, 0.02))  # the store is well
    spec = AgentSpec(
        name="shop",
        instructions="Sell.",
        model=ModelRef(model="m"),
        tools=[CodeTool(name="charge")],
    )
    model = FakeModel().turn(tool_calls=[("charge", {"cents": 5})]).turn("Sold.")
    workers = world.random.randint(2, 4)
    world.start(model=model, tools=[charge], policy=AllowAll(), workers=workers, concurrency=_RUNS)
    version = await publish(world.store, spec, scope=_SCOPE)
    for number in range(_RUNS):
        await asyncio.sleep(world.random.uniform(0.0, 0.5))
        await dispatch(world.store, version, scope=_SCOPE, input={"message": f"{number}"})
    await asyncio.sleep(world.random.uniform(8.0, 12.0))  # then all may judge a death


async def _kill(world: Simulation) -> list[float]:
    """Kill a worker; return how long after the end of its lease each of its Runs goes on.

    Some of them were told to stop: those need not go on, but must be settled by then.
    """
    victim = world.random.choice([one for one in world.processes if one.attempts()])
    epochs = {one.run_id: one.epoch for one in victim.attempts()}
    for run_id in epochs:
        if world.random.random() < 0.3:
            await interrupt(world.store, run_id, scope=_SCOPE)
    victim.crash()
    holders = {world.watch.headers[run_id].worker for run_id in epochs}
    [row] = [one for one in await world.store.workers() if one.id in holders]
    late: list[float] = []
    while epochs:
        await asyncio.sleep(_EACH_SECONDS)
        for run_id, epoch in list(epochs.items()):
            header = world.watch.headers[run_id]
            if header.epoch > epoch or header.state == "settled":
                late.append((world.now() - row.lease_until).total_seconds())
                del epochs[run_id]
    return late


def _late_seconds(seed: int) -> list[float]:
    """Return how long after the end of a lease each Run went on, in one world."""
    late: list[float] = []

    async def scenario(world: Simulation) -> None:
        await _begin(world)
        late.extend(await _kill(world))
        await world.finished()

    live_through(scenario, seed, faults=[], drains=False)
    return late


def test_run_1_runs_of_a_dead_worker_go_on_within_its_lease_and_a_second() -> None:
    """Whenever it dies, and however many others there are; by the clock of the store."""
    found = {seed: _late_seconds(seed) for seed in _SEEDS}
    assert all(found.values())
    assert {seed: late for seed, late in found.items() if max(late) > _MORE_SECONDS} == {}


def test_run_1_supervisors_that_look_too_seldom_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its neighbour: with a look in two seconds, some seed says so."""
    monkeypatch.setattr(supervisor, "_LOOK_SECONDS", 2.0)
    assert any(max(_late_seconds(seed)) > _MORE_SECONDS for seed in _SEEDS)
