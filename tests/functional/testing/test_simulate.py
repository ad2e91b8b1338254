"""`simulate`, as a consumer uses it: his mistakes are found, his correct tools are not blamed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from psych_runtime import AgentSpec, AllowAll, CodeTool, ModelRef, Scope, ToolContext, tool
from psych_runtime.api import dispatch, publish
from psych_runtime.testing import FakeModel, Simulation, SimulationFailed, simulate

SCOPE = Scope(tenant="acme")


async def _one_call(world: Simulation, charge: Callable[..., object]) -> None:
    """Have one Run make one call of `charge`."""
    spec = AgentSpec(
        name="shop",
        instructions="Sell.",
        model=ModelRef(model="any"),
        tools=[CodeTool(name="charge")],
    )
    model = FakeModel().turn(tool_calls=[("charge", {"cents": 5})]).turn("Sold.")
    world.start(model=model, tools=[charge], policy=AllowAll())
    version = await publish(world.store, spec, scope=SCOPE)
    await dispatch(world.store, version, scope=SCOPE, input={"message": "Go."})
    await world.finished()


def _selling(*, safe_to_retry: bool, keyed: bool) -> Callable[[Simulation], Awaitable[None]]:
    async def sell(world: Simulation) -> None:
        charged: Counter[str] = Counter()

        @tool(safe_to_retry=safe_to_retry)
        async def charge(cents: int, context: ToolContext) -> str:
            """Charge.

            Args:
                cents: The amount.
            """
            charged[context.idempotency_key] += 1
            await asyncio.sleep(1.0)
            return "charged"

        await _one_call(world, charge)
        times = len(charged) if keyed else charged.total()
        assert times <= 1, f"charged {times} times"

    return sell


def test_run_1_a_double_effect_of_a_tool_is_found() -> None:
    """It says that it may be repeated, and repeats its effect."""
    careless = _selling(safe_to_retry=True, keyed=False)
    with pytest.raises(SimulationFailed, match="charged 2 times") as caught:
        simulate(careless, seeds=range(100))
    with pytest.raises(SimulationFailed) as again:
        simulate(careless, seeds=[caught.value.seed])
    assert str(again.value) == str(caught.value)


@pytest.mark.parametrize(
    ("safe_to_retry", "keyed"), [(True, True), (False, False)], ids=["keyed", "unsafe"]
)
def test_run_1_a_mended_tool_is_not_blamed(safe_to_retry: bool, keyed: bool) -> None:
    """One that passes its key on, and one that does not say that it may be repeated."""
    report = simulate(_selling(safe_to_retry=safe_to_retry, keyed=keyed), seeds=range(60))
    assert report.seeds == 60
    assert report.happened["runs completed"] == 60
    assert report.struck["crash_before"] > 0


def test_only_the_faults_that_are_asked_for_strike() -> None:
    """Without any, nothing goes wrong; of one kind, nothing else."""
    scenario = _selling(safe_to_retry=False, keyed=False)
    calm = simulate(scenario, seeds=range(5), faults=[])
    assert not calm.struck
    assert calm.happened["claims reclaimed"] == 0
    lossy = simulate(scenario, seeds=range(20), faults=["lost"])
    assert set(lossy.struck) == {"lost"}


def test_a_run_that_cannot_end_is_a_failure() -> None:
    """Nobody has the tool that its Version needs."""

    async def scenario(world: Simulation) -> None:
        spec = AgentSpec(
            name="a", instructions="x", model=ModelRef(model="m"), tools=[CodeTool(name="gone")]
        )
        world.start(model=FakeModel().turn("ok"))
        version = await publish(world.store, spec, scope=SCOPE)
        await dispatch(
            world.store, version, scope=SCOPE, input={"message": "x"}, deadline_seconds=1e6
        )
        await world.finished()

    with pytest.raises(SimulationFailed, match="not every run ends"):
        simulate(scenario, seeds=[1])


def test_what_a_scenario_raises_is_told_with_its_seed() -> None:
    """A bug of the scenario itself is no riddle."""

    async def scenario(world: Simulation) -> None:
        raise LookupError("of the scenario")

    with pytest.raises(SimulationFailed, match=r"seed 3: LookupError: of the scenario") as caught:
        simulate(scenario, seeds=[3])
    assert isinstance(caught.value.__cause__, LookupError)
