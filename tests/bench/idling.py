"""What a worker costs that has nothing to do: parked Runs, and streams that seldom say a word."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from multiprocessing.connection import Connection
from time import monotonic

import asyncpg

from psych_runtime import (
    AgentSpec,
    ModelEvent,
    ModelRef,
    ModelRequest,
    ModelTransient,
    Store,
    TextDelta,
    dispatch,
    publish,
)
from tests.bench.elsewhere import Equipment, published, work
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.processes import another
from tests.bench.running import SCOPE
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.workload import agent, registry

__all__ = ["measure"]

_RETRY_SECONDS = 3600.0
_DELTA_SECONDS = 5.0
_POOL = 8  # connections of a handle, unless the URL says otherwise
_STATES = "SELECT state, count(*) FROM run GROUP BY state"
_HELD = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the processor time, and the connections held."""
    parked, streaming = sizes.idle_runs
    shares: list[float] = []
    connections: list[float] = []
    async with postgresql_database() as url:
        watcher = await asyncpg.connect(url)
        try:
            await _dispatch_all(url, parked, streaming)
            with another(work, url, equip) as worker:
                await worker.hear()
                await _until(watcher, {"suspended": parked, "running": streaming})
                for _ in range(sizes.idle_rounds):
                    guard.look()
                    worker.tell("how much?")
                    before, begun = await worker.seconds(), monotonic()
                    await asyncio.sleep(sizes.idle_seconds)
                    worker.tell("how much?")
                    used = await worker.seconds() - before
                    shares.append(100 * used / (monotonic() - begun))
                    connections.append(float(await watcher.fetchval(_HELD)))
        finally:
            await watcher.close()
    title = f"{parked} Runs parked, {streaming} streaming a word every 5 s"
    return [
        Line(id="idle_cpu", title=title, unit="% of a core", ours=shares, limit=5.0),
        Line(
            id="idle_connections",
            title="held by its worker meanwhile",
            unit="connections",
            ours=connections,
            limit=_POOL + 2.0,
        ),
    ]


async def _dispatch_all(url: str, parked: int, streaming: int) -> None:
    async with published(url) as (store, _):
        await _dispatch(store, "busy", parked)
        await _dispatch(store, "slow", streaming)


async def _dispatch(store: Store, model: str, runs: int) -> None:
    spec: AgentSpec = agent().model_copy(update={"model": ModelRef(model=model)})
    version = await publish(store, spec, scope=SCOPE, check=registry())
    for _ in range(runs):
        await dispatch(store, version, scope=SCOPE, input={"message": "?"}, deltas=True)


async def _until(watcher: asyncpg.Connection, wanted: dict[str, int]) -> None:
    """Wait until as many Runs are in these states."""
    while {row["state"]: row["count"] for row in await watcher.fetch(_STATES)} != wanted:
        await asyncio.sleep(0.1)


def equip(_: Connection) -> Equipment:
    """Return the models that keep a Run from going on."""
    return Equipment(_Idle(), registry())


class _Idle:
    """`busy` has no time for an hour; `slow` says a word every five seconds."""

    def models(self) -> None:
        """Every name will do."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Refuse, or go on and on."""
        if request.model == "busy":
            raise ModelTransient("come back", status=429, retry_after_seconds=_RETRY_SECONDS)
        while True:
            yield TextDelta(text="word ")
            await asyncio.sleep(_DELTA_SECONDS)
