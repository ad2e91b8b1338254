"""What durability costs where models take their time: PostgreSQL beside memory."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from time import perf_counter

from psych_runtime import ModelEvent, ModelRequest
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.rounds import in_turn_async
from tests.bench.running import running
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.throughput import Runner
from tests.bench.workload import Model

__all__ = ["measure"]

_MODEL_SECONDS = 0.1
_BOUNDS = {1: 1.05, 16: None}  # how many at once; sixteen that begin together share one thread


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return a line for one Run and for sixteen at once."""
    found = []
    async with (
        postgresql_database() as url,
        running("memory://", model=_Slow()) as memory,
        running(url, model=_Slow()) as ours,
    ):
        for at_once, bound in _BOUNDS.items():
            both = [partial(_milliseconds, runner, at_once) for runner in (memory, ours)]
            forgetful, durable = await in_turn_async(guard, sizes.lasting_rounds, *both)
            found.append(
                Line(
                    id=f"durability_{at_once}",
                    title=f"Runs on PostgreSQL, models take 100 ms, {at_once} at once",
                    unit="ms",
                    beside="the same in memory",
                    ours=durable,
                    yardstick=forgetful,
                    bound=bound,
                )
            )
    return found


async def _milliseconds(runner: Runner, at_once: int) -> float:
    begun = perf_counter()
    await runner.many(at_once, at_once=at_once)
    return (perf_counter() - begun) * 1e3


class _Slow(Model):
    """A model that thinks before it speaks."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Wait, then say what the model says."""
        await asyncio.sleep(_MODEL_SECONDS)
        async for event in super().stream(request):
            yield event
