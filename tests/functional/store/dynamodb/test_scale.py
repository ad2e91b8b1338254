"""Whether the model on paper (tests/bench/scaling.py) says what the store asks of DynamoDB."""

import asyncio
import threading
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from math import ceil
from typing import Final, Self, override

import pytest

from psych_runtime import ModelEvent, ModelRequest, Runtime, Store, Version, Worker, publish
from psych_runtime._system import System
from psych_runtime.store.contract._build import admission, admit, unit, write
from psych_runtime.store.dynamodb._client import DynamoClient, opener
from psych_runtime.store.dynamodb._wire import item_of, items_of, size_of
from psych_runtime.store.dynamodb.store import DynamoStore
from psych_schema.dynamodb import worker_key
from tests.bench.running import SCOPE, Running
from tests.bench.scaling import asked, commits_of, paper_shape, run_cost
from tests.bench.workload import Model, agent, registry
from tests.functional.store.dynamodb.harness import NewHarness, wrapping
from tests.functional.store.dynamodb.probes import Answer, Call, Hook, hooked

WITHIN: Final = 0.1
LEASE_SECONDS: Final = 60.0
WORKERS: Final = worker_key(id="")["pk"]


class Calling(Model):
    """A model that takes a moment: what was noted before it is on its way by then."""

    @override
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        for _ in range(4):  # steps of the loop
            await asyncio.sleep(0)
        async for event in super().stream(request):
            yield event


class Tally:
    """Requests and units of one process: of its Runs, apart from what goes by the clock.

    What the supervisor asks comes from another thread; what a look for work or a poll asks is
    told by what it reads, or by being inconsistent.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()  # by the clock: an index, a partition, an operation
        self.writes = 0.0
        self.reads = 0
        self.headers = 0  # of the reads, those in batches
        self.caps = 0
        self._thread = threading.get_ident()

    def clear(self) -> Self:
        """Begin anew."""
        self.requests.clear()
        self.asked.clear()
        self.writes, self.reads, self.headers, self.caps = 0.0, 0, 0, 0
        return self

    def wrap(self, client: DynamoClient) -> DynamoClient:
        """Return the client with everything counted that goes through it."""
        hooks: dict[str, Hook] = {
            "transact_write_items": self._transact,
            "get_item": self._get,
            "query": self._query,
            "batch_get_item": self._batch,
            "update_item": self._update,
        }
        return hooked(**hooks)(client)

    def _is_of_runs(self, operation: str, by_clock: str = "") -> bool:
        if by_clock or threading.get_ident() != self._thread:
            self.asked[by_clock or operation] += 1
            return False
        self.requests[operation] += 1
        return True

    async def _transact(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments, ReturnConsumedCapacity="TOTAL")
        if self._is_of_runs("TransactWriteItems"):
            consumed = answer["ConsumedCapacity"]
            assert isinstance(consumed, Sequence)
            self.writes += sum(each["CapacityUnits"] for each in consumed)
        return answer

    async def _get(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        if self._is_of_runs("GetItem"):
            self.reads += _units([answer.get("Item")])
        return answer

    async def _query(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        if self._is_of_runs("Query", _by_clock(arguments)):
            self.reads += _units(items_of(answer.get("Items")))
        return answer

    async def _batch(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        tables = arguments["RequestItems"]
        assert isinstance(tables, Mapping)
        is_poll = not all(request["ConsistentRead"] for request in tables.values())
        if self._is_of_runs("BatchGetItem", "polls" if is_poll else ""):
            counts = {name[-4:]: len(request["Keys"]) for name, request in tables.items()}
            self.headers += counts.get("_run", 0)
            self.caps += counts.get("item", 0)
            self.reads += sum(counts.values())  # each is below 4 KB
        return answer

    async def _update(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        self._is_of_runs("UpdateItem", "UpdateItem")
        return await call(**arguments)


def _by_clock(query: Mapping[str, object]) -> str:
    """Return what a query reads, if it is an index or workers' rows; empty for a log."""
    index = query.get("IndexName")
    if index is not None:
        return str(index)
    if str(query["TableName"]).endswith("log"):
        return ""
    values = query["ExpressionAttributeValues"]
    assert isinstance(values, Mapping)
    partition = str(values[":p"]["S"])
    return "worker rows" if partition == WORKERS else partition


def _units(items: Sequence[object]) -> int:
    """Return the read units of what was read consistently: the emulator's own are not by size."""
    size = sum(size_of(item) for each in items if (item := item_of(each)) is not None)
    return max(1, ceil(size / 4096))


class Apart(Running):
    """A caller and a worker in two processes, as far as the store can tell."""

    def __init__(
        self, store: Store, worker: Worker, version: Version, callers: Tally, workers: Tally
    ) -> None:
        super().__init__(store, worker, version)
        self.callers = callers
        self.workers = workers


@asynccontextmanager
async def _apart(new_harness: NewHarness, turns: int, *, found: bool) -> AsyncIterator[Apart]:
    """Open two handles that share nothing but the tables, and start a worker on one of them.

    Not `found`: on that of the callers, whose Runs it is told of and never looks for.
    """
    tallies = Tally(), Tally()
    options = new_harness().options
    async with AsyncExitStack() as opened:
        callers, workers = [
            await opened.enter_async_context(
                DynamoStore(options, System(), make_client=wrapping(opener(options), tally.wrap))
            )
            for tally in tallies
        ]
        await callers.migrate()
        store = workers if found else callers
        runtime = Runtime(store=store, model=Calling(turns), registry=registry())
        version = await publish(callers, agent(turns), scope=SCOPE, check=runtime)
        poll_seconds = 0.2 if found else 3600.0
        worker = Worker(runtime, lease_seconds=LEASE_SECONDS, poll_seconds=poll_seconds)
        task = asyncio.create_task(worker.run())
        try:
            yield Apart(callers, worker, version, *tallies)
        finally:
            worker.stop()
            await task


@pytest.mark.parametrize(
    ("turns", "at_once", "runs", "found"),
    [
        (2, 1, 6, True),
        (2, 1, 6, False),
        (2, 64, 64, True),
        (10, 1, 2, True),
        (10, 64, 64, True),
    ],
)
async def test_scale_a_run_costs_what_the_model_says(
    new_harness: NewHarness, turns: int, at_once: int, runs: int, found: bool
) -> None:
    """Within 10 %: requests and units of writes, and of the reads that grow with Runs.

    How often callers begin to wait, and how many Runs share a look, depends on time: both are
    counted, and told to the model.
    """
    async with _apart(new_harness, turns, found=found) as system:
        await system.one()  # what a process notes, or keeps, once
        callers, workers = system.callers.clear(), system.workers.clear()
        await system.many(runs, at_once=at_once)
    waits, together = callers.headers / runs, (1 + found) * runs / (callers.caps + workers.caps)
    model = run_cost(paper_shape(turns), found=found, waits=waits, together=together)
    requests = callers.requests + workers.requests
    assert requests["TransactWriteItems"] == runs * commits_of(turns)
    if at_once > 1:  # a hundred headers may be one request
        assert requests.pop("BatchGetItem") < runs * model.requests["BatchGetItem"]
    counted = {operation: count / runs for operation, count in requests.items()}
    assert counted == pytest.approx({name: model.requests[name] for name in counted}, rel=WITHIN)
    assert callers.writes + workers.writes == pytest.approx(runs * model.writes, rel=WITHIN)
    assert callers.reads + workers.reads == pytest.approx(runs * model.reads, rel=WITHIN)


@pytest.mark.parametrize("shards", [4, 8])
async def test_scale_an_idle_worker_asks_what_the_model_says(
    new_harness: NewHarness, shards: int
) -> None:
    """Each call that it makes by the clock, counted by itself: exactly as many requests."""
    tally = Tally()
    async with new_harness(tally.wrap, shards=shards).open() as store:
        await store.enlist("wrk_1", lease_seconds=6.0, build="1", tools=["look_up"])
        acts: Mapping[str, Callable[[], Awaitable[object]]] = {
            "ready": lambda: store.ready(64, after_tenant="m"),
            "renew": lambda: store.renew("wrk_1", lease_seconds=6.0, run_ids=()),
            "bury": lambda: store.bury("wrk_1"),
            "overdue": lambda: store.overdue(8),
            "held_by": lambda: store.held_by("wrk_1"),
            "sweep": store.sweep,
        }
        for name, act in acts.items():
            tally.clear()
            await act()
            if name in ("ready", "overdue"):  # they look who is dead, once a second
                del tally.asked["holder"], tally.asked["worker rows"]
            assert (name, tally.asked) == (name, asked(shards)[name])
        held = [await admission(store) for _ in range(3)]
        tally.clear()
        await store.renew("wrk_1", lease_seconds=6.0, run_ids=held)
        assert (tally.requests, tally.reads) == ({"BatchGetItem": 1}, len(held))


@pytest.mark.parametrize("tenants", [1, 16, 64])
async def test_scale_tenants_share_the_requests_of_a_look(
    new_harness: NewHarness, tenants: int
) -> None:
    """A page of each shard shows fifty Runs; headers and caps are read a hundred together."""
    tally = Tally()
    harness = new_harness()
    async with harness.open() as store, harness.elsewhere(tally.wrap).open() as other:
        for number in range(tenants):
            name = f"tenant{number:03}"
            await write(store, unit(admit(tenant=name), tenant=name))
        tally.clear()
        assert len((await other.ready(64)).headers) == tenants
        assert tally.asked["claim"] <= 8
        assert tally.requests["BatchGetItem"] <= 1 + tenants // 32
        assert tally.reads == 2 * tenants  # a header and a cap's row of each
