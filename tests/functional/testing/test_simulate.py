"""`simulate`, as a consumer uses it: his mistakes are found, his correct tools are not blamed."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from psych_runtime import (
    AgentSpec,
    AllowAll,
    CodeTool,
    Deny,
    ModelRef,
    Policy,
    Scope,
    ToolContext,
    tool,
)
from psych_runtime.api import dispatch, publish
from psych_runtime.errors import InvalidArgument
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
    with pytest.raises(SimulationFailed, match=r"charged [2-9] times") as caught:
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


async def _look(world: Simulation, look: Callable[..., object]) -> None:
    """Have one Run call a tool named `look`."""
    spec = AgentSpec(
        name="a", instructions="x", model=ModelRef(model="m"), tools=[CodeTool(name="look")]
    )
    model = FakeModel().turn(tool_calls=[("look", {})]).turn("Done.")
    world.start(model=model, tools=[look])
    version = await publish(world.store, spec, scope=SCOPE)
    await dispatch(world.store, version, scope=SCOPE, input={"message": "Go."})
    await world.finished()


def test_a_seed_gives_the_same_ids_and_instants_again() -> None:
    """What the scenario calls takes clock and ids from the world: nothing of it is real."""
    seen: list[list[str]] = []

    async def scenario(world: Simulation) -> None:
        @tool(annotations={"read-only"})
        async def look() -> str:
            """Look around."""
            return "x"

        await _look(world, look)
        headers = world.watch.headers.values()
        seen.append([f"{one.run_id} {one.created_at} {one.head_hash}" for one in headers])

    simulate(scenario, seeds=[5, 5])
    assert seen[0] == seen[1]
    assert " 2026-01-01 00:00:00" in seen[0][0]


@pytest.mark.parametrize(
    ("reach_out", "what"),
    [
        (lambda: asyncio.to_thread(print), "threads"),
        (lambda: asyncio.open_connection("127.0.0.1", 9), "sockets"),
        (lambda: asyncio.create_subprocess_exec("true"), "processes"),
    ],
    ids=["thread", "socket", "process"],
)
def test_a_tool_that_leaves_the_simulation_is_told(
    reach_out: Callable[[], Awaitable[object]], what: str
) -> None:
    """Also when the tool's error would only be read by the model."""

    async def scenario(world: Simulation) -> None:
        @tool(annotations={"read-only"})
        async def look() -> str:
            """Look around."""
            await reach_out()
            return "x"

        await _look(world, look)

    with pytest.raises(SimulationFailed, match=f"p[0-9]+ uses {what}, which cannot be simulated"):
        simulate(scenario, seeds=[1])


def test_what_the_library_logs_as_an_error_is_a_failure() -> None:
    """A policy that is written wrong does not pass as a Run that times out."""

    class Broken(Policy):
        async def decide_tool(self, *_: object) -> Deny:
            raise LookupError("no such rule")

    async def scenario(world: Simulation) -> None:
        @tool
        async def look() -> str:
            """Look around."""
            return "x"

        spec = AgentSpec(
            name="a", instructions="x", model=ModelRef(model="m"), tools=[CodeTool(name="look")]
        )
        policy: Any = Broken()
        world.start(model=FakeModel().turn(tool_calls=[("look", {})]), tools=[look], policy=policy)
        version = await publish(world.store, spec, scope=SCOPE)
        await dispatch(world.store, version, scope=SCOPE, input={"message": "Go."})
        await world.finished()

    with pytest.raises(SimulationFailed, match="no such rule"):
        simulate(scenario, seeds=[1])


def test_a_scenario_that_does_not_wait_for_the_end_proves_nothing() -> None:
    """It fails, and says what is missing."""

    async def forgets(world: Simulation) -> None:
        world.start(model=FakeModel().turn("ok"))

    with pytest.raises(SimulationFailed, match=r"before `await world\.finished\(\)` did"):
        simulate(forgets, seeds=[1])


def test_a_world_without_runs_proves_nothing() -> None:
    """It fails, too."""

    async def idles(world: Simulation) -> None:
        world.start(model=FakeModel().turn("ok"))
        await world.finished()

    with pytest.raises(SimulationFailed, match="no run was dispatched"):
        simulate(idles, seeds=[1])


async def _fine(world: Simulation) -> None:
    await _look(world, _nothing)


@tool(annotations={"read-only"})
async def _nothing() -> str:
    """Do nothing."""
    return "x"


_nothing.__name__ = "look"


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("seeds", {"seeds": []}),
        ("seeds", {"seeds": "12"}),
        ("seeds", {"seeds": [1.5]}),
        ("faults", {"faults": ["nope"]}),
        ("faults", {"faults": "lost"}),
        ("faults", {"faults": [3]}),
        ("storm_seconds", {"storm_seconds": float("nan")}),
        ("storm_seconds", {"storm_seconds": -1}),
        ("storm_seconds", {"storm_seconds": "40"}),
        ("scenario", {"scenario": print}),
    ],
)
def test_wrong_arguments_are_told_and_not_blamed_on_a_seed(
    what: str, arguments: dict[str, Any]
) -> None:
    """InvalidArgument names the one that is wrong."""
    given: dict[str, Any] = {"scenario": _fine, "seeds": [1], **arguments}
    with pytest.raises(InvalidArgument) as caught:
        simulate(given.pop("scenario"), **given)
    assert caught.value.what == what


@pytest.mark.parametrize("what", ["workers", "concurrency", "max_attempts"])
def test_a_world_that_can_execute_nothing_is_refused(what: str) -> None:
    """None of nothing."""

    async def scenario(world: Simulation) -> None:
        numbers: dict[str, Any] = {what: 0}
        world.start(model=FakeModel().turn("ok"), **numbers)

    with pytest.raises(SimulationFailed, match=f"{what}: at least 1, not 0"):
        simulate(scenario, seeds=[1])


async def test_a_loop_that_runs_already_is_told_what_to_do() -> None:
    """From a coroutine it is called in a thread."""
    with pytest.raises(InvalidArgument, match=r"asyncio\.to_thread"):
        simulate(_fine, seeds=[1])
    report = await asyncio.to_thread(simulate, _fine, seeds=[1])
    assert report.happened["runs completed"] == 1


def test_what_is_no_error_passes_with_its_seed() -> None:
    """pytest's own ways out are no AssertionErrors; the note says where it was."""

    async def scenario(world: Simulation) -> None:
        pytest.fail("my reason")

    with pytest.raises(BaseException, match="my reason") as caught:
        simulate(scenario, seeds=[7])
    assert caught.value.__notes__ == ["in the simulation of seed 7"]


def test_what_a_process_keeps_in_memory_dies_with_it() -> None:
    """Tools that are made for each process lose what a killed one knew."""

    def scenario_with(shared: bool) -> Callable[[Simulation], Awaitable[None]]:
        async def scenario(world: Simulation) -> None:
            lost: list[str] = []

            def tools() -> list[Callable[..., object]]:
                memory: dict[str, str] = {}

                @tool(safe_to_retry=True)
                async def put(context: ToolContext) -> str:
                    """Keep something."""
                    memory[context.run_id] = "x"
                    await asyncio.sleep(2.0)
                    return "ok"

                @tool(safe_to_retry=True)
                async def get(context: ToolContext) -> str:
                    """Return what was kept."""
                    if context.run_id not in memory:
                        lost.append(context.run_id)
                    return memory.get(context.run_id, "lost")

                return [put, get]

            spec = AgentSpec(
                name="a",
                instructions="x",
                model=ModelRef(model="m"),
                tools=[CodeTool(name="put"), CodeTool(name="get")],
            )
            model = FakeModel().turn(tool_calls=[("put", {})]).turn(tool_calls=[("get", {})])
            world.start(
                model=model.turn("Done."), tools=tools() if shared else tools, policy=AllowAll()
            )
            version = await publish(world.store, spec, scope=SCOPE)
            await dispatch(world.store, version, scope=SCOPE, input={"message": "Go."})
            await world.finished()
            assert not lost, "what was kept is lost"

        return scenario

    simulate(scenario_with(shared=True), seeds=range(40))
    with pytest.raises(SimulationFailed, match="what was kept is lost"):
        simulate(scenario_with(shared=False), seeds=range(40))


def test_a_single_kind_of_fault_strikes_in_many_worlds() -> None:
    """Whoever asks for one wants to see it."""
    for kind in ("away", "stalled", "paused", "delayed"):
        report = simulate(
            _selling(safe_to_retry=False, keyed=False), seeds=range(12), faults=[kind]
        )
        assert set(report.struck) == {kind}
        assert report.worlds[kind] >= 3, kind
