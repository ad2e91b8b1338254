"""A store that is away for longer than a lease costs no live worker its Run (ST-9, R-6)."""

import asyncio

import pytest

from psych_runtime import AgentSpec, AllowAll, CodeTool, ModelRef, Scope, tool
from psych_runtime.api import dispatch, publish
from psych_runtime.testing import FakeModel
from psych_runtime.testing.simulation import Simulation, live_through

_SCOPE = Scope(tenant="acme")
_WORKERS, _RUNS = 20, 40


@tool
async def charge(cents: int) -> str:
    """Charge, which takes a while.

    Args:
        cents: The amount.
    """
    await asyncio.sleep(30.0)
    return "charged"


async def _dispatch(world: Simulation) -> None:
    spec = AgentSpec(
        name="shop",
        instructions="Sell.",
        model=ModelRef(model="m"),
        tools=[CodeTool(name="charge")],
    )
    model = FakeModel().turn(tool_calls=[("charge", {"cents": 5})]).turn("Sold.")
    world.start(model=model, tools=[charge], policy=AllowAll(), workers=_WORKERS)
    version = await publish(world.store, spec, scope=_SCOPE)
    for number in range(_RUNS):
        await dispatch(world.store, version, scope=_SCOPE, input={"message": f"{number}"})
    await asyncio.sleep(15.0)  # every worker has its contact, every Run its call


@pytest.mark.parametrize("stalls", [False, True], ids=["refuses", "stalls"])
@pytest.mark.parametrize("seconds", [5.0, 20.0, 90.0])
def test_st_9_no_run_is_taken_from_a_live_worker(seconds: float, stalls: bool) -> None:
    """20 workers hold Runs while the store is away: nobody dies, and each call runs once."""

    async def scenario(world: Simulation) -> None:
        await _dispatch(world)
        world.faults.go_away(seconds, stalls=stalls)
        await world.finished()

    world = live_through(scenario, 1, faults=[], drains=False, storm_seconds=200.0)
    happened = world.watch.counts
    assert world.faults.struck["stalled" if stalls else "away"] > _WORKERS
    assert happened["runs completed"] == _RUNS
    assert happened["effects"] == _RUNS
    assert happened["deaths"] == 0
    assert happened["claims reclaimed"] == 0


def test_r_6_a_worker_that_is_gone_is_found_out_after_the_outage() -> None:
    """Its neighbour: one process is killed while nobody can see it, and only its Runs are taken."""
    gone: list[str] = []

    async def scenario(world: Simulation) -> None:
        await _dispatch(world)
        world.faults.go_away(20.0)
        victim = next(one for one in world.processes if one.attempts())
        gone.extend(attempt.run_id for attempt in victim.attempts())
        victim.crash()
        await world.finished()

    world = live_through(scenario, 1, faults=[], drains=False, storm_seconds=200.0)
    assert gone
    assert world.watch.counts["runs completed"] == _RUNS
    assert world.watch.counts["deaths"] == 1
    assert world.watch.counts["claims reclaimed"] == len(gone)
