"""How soon a worker in another process picks up a Run of an idle store, beside NOTIFY alone.

From the return of `dispatch` to the call of the model: the claim and the first records lie
between. Both moments are of the monotonic clock that all processes of a machine share.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from multiprocessing.connection import Connection
from statistics import median
from time import monotonic

from psych_runtime import ModelEvent, ModelRequest, dispatch, wait
from tests.bench.elsewhere import Equipment, published, work
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.notifying import BESIDE, notifier
from tests.bench.processes import another
from tests.bench.rounds import in_turn_async
from tests.bench.running import SCOPE
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.workload import Model, registry

__all__ = ["measure"]

_IDLE_SECONDS = (0.05, 0.3)  # at random: no poll is to be met


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the line of the pickup."""
    async with (
        postgresql_database() as url,
        published(url) as (store, version),
        notifier(url) as notifying,
    ):
        with another(work, url, equip) as worker:
            await worker.hear()

            async def picked_up() -> float:
                found = []
                for _ in range(sizes.pickups):
                    await asyncio.sleep(random.uniform(*_IDLE_SECONDS))
                    run = await dispatch(store, version, scope=SCOPE, input={"message": "?"})
                    returned = monotonic()
                    found.append((await worker.seconds() - returned) * 1e3)
                    await wait(store, run.run_id, scope=SCOPE)
                return median(found)

            async def notified() -> float:
                return median(await notifying.times(sizes.pickups))

            alone, ours = await in_turn_async(guard, sizes.wake_rounds, notified, picked_up)
    return [
        Line(
            id="pickup",
            title="an idle worker elsewhere gets a Run",
            unit="ms",
            beside=BESIDE,
            ours=ours,
            yardstick=alone,
            limit=10.0,
        )
    ]


def equip(pipe: Connection) -> Equipment:
    """Return a model that says when it is called first, and the tool."""
    return Equipment(_Telling(pipe), registry())


class _Telling(Model):
    """Says when the first turn's call came."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Tell the time, then say what the model says."""
        if len(request.messages) == 1:
            self._pipe.send(monotonic())
        async for event in super().stream(request):
            yield event
