"""The engine on DynamoDB: Runs from dispatch to settled, by workers of two processes."""

import asyncio
from collections import Counter

from psych_runtime import AgentSpec, ModelRef, Runtime, Scope, Worker, dispatch, publish, wait
from psych_runtime._system import System
from psych_runtime.store.dynamodb.store import DynamoStore
from psych_runtime.testing import FakeModel
from psych_runtime.tools.registry import ToolRegistry
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.unruly import Kind, Trouble, troubled

ACME = Scope(tenant="acme")
SPEC = AgentSpec(name="one", instructions="Say a.", model=ModelRef(model="scripted"))
RUNS = 6


async def test_run_1_runs_end_on_an_unruly_dynamodb(new_harness: NewHarness) -> None:
    """Two workers, each with a supervisor in a thread of its own; each Run is executed once."""
    chances: dict[Kind, float] = {
        "conflict": 0.1,
        "throttled": 0.05,
        "unanswered": 0.05,
        "unprocessed": 0.3,
    }
    trouble = Trouble(chances)
    harness = new_harness(troubled(trouble))
    models = [FakeModel() for _ in range(2)]
    for model in models:
        for _ in range(RUNS):
            model.turn(text="a")
    stores = [
        DynamoStore(harness.options, System(), make_client=harness.make_client) for _ in models
    ]
    async with stores[0] as store, stores[1]:
        await store.migrate()
        runtimes = [
            Runtime(store=each, model=model, registry=ToolRegistry())
            for each, model in zip(stores, models, strict=True)
        ]
        version = await publish(store, SPEC, scope=ACME, check=runtimes[0])
        workers = [Worker(runtime) for runtime in runtimes]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        runs = [
            await dispatch(store, version, scope=ACME, input={"message": "x"}) for _ in range(RUNS)
        ]
        ends = [await wait(store, run.run_id, scope=ACME) for run in runs]
        assert Counter(end.lifecycle for end in ends) == {"done": RUNS}
        for run in runs:
            rows = await store.read("acme", run.run_id)
            assert [row.type for row in rows].count("run.settled") == 1
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
    assert trouble.struck["lag"] > 0


async def test_pub_1_a_spec_that_is_longer_than_an_item_runs(new_harness: NewHarness) -> None:
    """Published, dispatched, and told to the model: as on every other store."""
    instructions = "Say a. " * 64_286
    model = FakeModel().turn(text="a")
    async with new_harness().open() as store:
        runtime = Runtime(store=store, model=model, registry=ToolRegistry())
        spec = SPEC.model_copy(update={"instructions": instructions})
        version = await publish(store, spec, scope=ACME, check=runtime)
        run = await dispatch(store, version, scope=ACME, input={"message": "x"})
        worker = Worker(runtime)
        running = asyncio.create_task(worker.run())
        end = await wait(store, run.run_id, scope=ACME)
        worker.stop()
        await running
    assert end.lifecycle == "done"
    assert [request.system for request in model.requests] == [instructions]
