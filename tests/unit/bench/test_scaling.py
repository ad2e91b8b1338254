"""How cost grows, where counting is cheap: logs in memory, workers and waits in virtual time.

What the model says of DynamoDB is checked on the emulator: tests/functional/store/dynamodb.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import ExitStack
from itertools import count
from random import Random
from typing import Protocol, override
from unittest.mock import patch

import pytest

from psych_runtime import ModelEvent, ModelRequest, Runtime, Worker
from psych_runtime.store._notices import News, Notices
from psych_runtime.store.dynamodb import _watch as on_dynamodb
from psych_runtime.store.memory import MemoryStore
from psych_runtime.store.sql import _watch as on_sql
from psych_runtime.testing.simulation.loop import SimulatedLoop
from psych_runtime.testing.simulation.system import SeededSystem
from tests.bench.running import SCOPE, running
from tests.bench.scaling import (
    Commit,
    calls,
    commits_of,
    ends,
    idle,
    most_workers,
    paper_shape,
    run_cost,
    shape_of,
)
from tests.bench.workload import Model, registry

SECONDS = 60.0


class Calling(Model):
    """A model that takes a moment: what was noted before it is on its way by then."""

    @override
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        for _ in range(4):  # steps of the loop
            await asyncio.sleep(0)
        async for event in super().stream(request):
            yield event


async def _shape(turns: int) -> list[Commit]:
    async with running("memory://", model=Calling(turns), turns=turns) as system:
        run_id = await system.one()
        return shape_of(await system.store.read(SCOPE.tenant, run_id))


def _live[T](main: Callable[[SimulatedLoop], Coroutine[None, None, T]]) -> T:
    """Return what `main` returns, in virtual time."""
    loop = SimulatedLoop(Random(1), max_steps=1_000_000)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.discard()


@pytest.mark.parametrize("turns", [1, 2, 10])
async def test_scale_a_log_is_what_the_paper_says(turns: int) -> None:
    """The same commits of the same records; their bytes within 10 %."""
    paper, log = paper_shape(turns), await _shape(turns)
    assert len(log) == commits_of(turns)
    assert [(each.types, each.contents) for each in log] == [
        (each.types, each.contents) for each in paper
    ]
    assert [each.bytes for each in log] == pytest.approx([each.bytes for each in paper], rel=0.1)


async def test_scale_turns_a_log_grows_by_as_much_with_each() -> None:
    """The last of a thousand turns adds what the tenth adds, but for longer numbers."""
    sizes = {turns: sum(each.bytes for each in await _shape(turns)) for turns in (10, 100, 1000)}
    early, late = (sizes[100] - sizes[10]) / 90, (sizes[1000] - sizes[100]) / 900
    assert early == pytest.approx(2840, rel=0.1)
    assert late == pytest.approx(early, rel=0.02)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_scale_workers_idle_calls_grow_with_their_number(workers: int) -> None:
    """Each looks, beats and judges for itself, as often as the model says, within 5 %."""
    counted: Counter[str] = Counter()

    async def main(loop: SimulatedLoop) -> None:
        system = SeededSystem(loop.time, Random(1), count(1))
        store = MemoryStore(system)
        runtime = Runtime(store=store, model=Model(), registry=registry(), system=system)
        idle_ones = [Worker(runtime, threads=False) for _ in range(workers)]
        running_ones = [loop.create_task(worker.run()) for worker in idle_ones]
        await asyncio.sleep(1.0)
        counted.clear()
        await asyncio.sleep(SECONDS)
        seen.update(counted)
        for worker in idle_ones:
            worker.stop()
        await asyncio.gather(*running_ones)

    seen: Counter[str] = Counter()
    wanted = {name: workers * rate * SECONDS for name, rate in calls().items()}
    with ExitStack() as patches:
        for name in wanted:
            patches.enter_context(patch.object(MemoryStore, name, _counted(counted, name)))
        _live(main)
    assert seen == pytest.approx(wanted, rel=0.05)


def _counted(counted: Counter[str], name: str) -> Callable[..., Awaitable[object]]:
    method = getattr(MemoryStore, name)

    async def call(store: MemoryStore, *args: object, **options: object) -> object:
        counted[name] += 1
        answer: object = await method(store, *args, **options)
        return answer

    return call


class Waits(Protocol):
    """The waits of one store handle."""

    async def wait(
        self, tenant: str, heads: dict[str, int], seconds: float, *, over: bool
    ) -> frozenset[str]:
        """Return Runs that may have moved."""


def _looks(watchers: int, open_waits: Callable[[list[int]], Waits]) -> list[int]:
    """Return how many Runs each poll of fifty steady seconds asked for; each watcher has one."""

    async def main(loop: SimulatedLoop) -> list[int]:
        asked: list[int] = []
        waits = open_waits(asked)
        async with asyncio.TaskGroup() as group:
            for number in range(watchers):
                group.create_task(waits.wait("acme", {f"run_{number}": 1}, SECONDS, over=False))
            await asyncio.sleep(5)  # they all wait, and polls are as rare as they become
            asked.clear()
            await asyncio.sleep(50)
            return list(asked)

    return _live(main)


def _sql_waits(*, hears: bool) -> Callable[[list[int]], Waits]:
    def make(asked: list[int]) -> Waits:
        async def look(run_ids: Iterable[str]) -> News:
            asked.append(len(list(run_ids)))
            return News({})

        watcher = on_sql.Watcher(look, Notices())
        watcher.hears(hears)
        return watcher

    return make


def _dynamodb_waits(asked: list[int]) -> Waits:
    async def look(run_ids: Iterable[str], consistent: bool) -> News:
        asked.append(len(list(run_ids)))
        return News({})

    return on_dynamodb.Watch(look, Notices())


@pytest.mark.parametrize("watchers", [1, 10, 100])
@pytest.mark.parametrize(
    ("open_waits", "polls"),
    [(_sql_waits(hears=True), 50), (_sql_waits(hears=False), 50), (_dynamodb_waits, 25)],
    ids=["postgresql", "mysql", "dynamodb"],
)
def test_scale_watchers_of_one_handle_share_their_polls(
    watchers: int, open_waits: Callable[[list[int]], Waits], polls: int
) -> None:
    """A hundred make no more polls than one does; each poll asks for all of them."""
    looks = _looks(watchers, open_waits)
    assert len(looks) == pytest.approx(polls, abs=1)
    assert set(looks) == {watchers}


def test_scale_units_follow_the_published_rules() -> None:
    """Counted by hand: an admission and a claim below 1 KB, a commit of 2.5 KB that settles."""
    shape = [
        Commit(("run.admitted",), 1, 600),
        Commit(("attempt.started",), 0, 350),
        Commit(("model.completed", "run.settled"), 2, 2500),
    ]
    cost = run_cost(shape, found=False)
    assert cost.writes == 2 * (1 + 1 + 1) + 3 + 2 * (1 + 1) + 2 + 2 * (1 + 3) + 2
    assert cost.reads == 1 + 3 + 1 + 1 + 1  # the Version, headers, the log, a wait, the cap's row
    assert run_cost(shape, found=False, capped=True, keyed=True).writes == cost.writes + 2 + 4
    assert sum(run_cost(shape, waits=2.0).requests.values()) == 3 + 6 + 2 + 4


def test_scale_partitions_end_where_the_published_rules_say() -> None:
    """With four shards and with 64; workers end where each reads the rows of all."""
    assert ends(4).claims == 2000.0
    assert ends(64)._replace(claims=0.0) == ends(4)._replace(claims=0.0)
    assert ends(64).claims == 32_000.0
    most = most_workers()
    assert 110 <= most <= 120
    assert idle(2 * most).reads > 3 * idle(most).reads
    assert idle(2 * most).writes == 2 * idle(most).writes
