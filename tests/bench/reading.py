"""How soon a reader in another process has a record, while many Runs go on, beside NOTIFY alone.

Runs are dispatched at an even pace, of which the machine can do twice as many; every tenth is
followed. A record says when it happened, by the wall clock of the same machine; it is committed
after that, so a reader is a little faster than it looks.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from math import ceil
from multiprocessing.connection import Connection
from statistics import median, quantiles
from time import monotonic
from typing import Final

from psych_runtime import Store, Version, dispatch, open_store, stream, wait
from tests.bench.elsewhere import Equipment, published, work
from tests.bench.figures import Line
from tests.bench.guard import Guard
from tests.bench.notifying import BESIDE, Notifier, notifier
from tests.bench.processes import Other, another
from tests.bench.rounds import in_turn_async
from tests.bench.running import SCOPE
from tests.bench.servers import postgresql_database
from tests.bench.sizes import Sizes
from tests.bench.workload import Model, registry

__all__ = ["measure"]

_MOST_PER_SECOND: Final = 200.0
_FOLLOWED: Final = 10  # of so many Runs one
_AT_ONCE: Final = 64


async def measure(sizes: Sizes, guard: Guard) -> Sequence[Line]:
    """Return the middle and the late records."""
    async with (
        postgresql_database() as url,
        published(url) as (store, version),
        notifier(url) as notifying,
    ):
        with another(work, url, equip) as worker, another(_read, url) as reader:
            await worker.hear()
            await reader.hear()
            rate = min(_MOST_PER_SECOND, await _rate(store, version, sizes.burst_runs) / 2)
            alone, ours = await in_turn_async(
                guard,
                sizes.wake_rounds,
                partial(_notified, notifying, 5 * sizes.pickups),
                partial(_followed, store, version, reader, rate, sizes.paced_seconds),
            )
    return list(_lines(rate, ours, alone))


def _lines(
    rate: float, ours: Sequence[tuple[float, float]], alone: Sequence[tuple[float, float]]
) -> Sequence[Line]:
    named = (
        ("reader", "a reader elsewhere has a record", 10.0),
        ("reader_p95", "19 of 20 are sooner", 30.0),
    )
    return [
        Line(
            id=id,
            title=f"{title}, at {rate:.0f} Runs/s",
            unit="ms",
            beside=BESIDE,
            ours=[round[place] for round in ours],
            yardstick=[round[place] for round in alone],
            limit=limit,
        )
        for place, (id, title, limit) in enumerate(named)
    ]


def equip(_: Connection) -> Equipment:
    """Return the model and the tool."""
    return Equipment(Model(), registry())


def _middle_and_late(times: Sequence[float]) -> tuple[float, float]:
    """Return the median and what 19 of 20 stay below."""
    if len(times) < 2:
        return times[0], times[0]
    return median(times), quantiles(times, n=20, method="inclusive")[-1]


async def _notified(notifying: Notifier, count: int) -> tuple[float, float]:
    return _middle_and_late(await notifying.times(count))


async def _rate(store: Store, version: Version, runs: int) -> float:
    """Return how many Runs a second the worker does when it is never without."""
    todo, begun = repeat(None, runs), monotonic()

    async def caller() -> None:
        for _ in todo:
            run = await dispatch(store, version, scope=SCOPE, input={"message": "?"})
            await wait(store, run.run_id, scope=SCOPE)

    async with asyncio.TaskGroup() as callers:
        for _ in range(_AT_ONCE):
            callers.create_task(caller())
    return runs / (monotonic() - begun)


async def _followed(
    store: Store, version: Version, reader: Other, rate: float, seconds: float
) -> tuple[float, float]:
    """Dispatch Runs at an even pace; return what the reader says of every tenth."""

    async def one(number: int) -> str:
        run = await dispatch(store, version, scope=SCOPE, input={"message": "?"})
        if number % _FOLLOWED == 0:
            reader.tell(run.run_id)
        return run.run_id

    begun, dispatched = monotonic(), []
    for number in range(ceil(rate * seconds)):
        await asyncio.sleep(begun + number / rate - monotonic())
        dispatched.append(asyncio.create_task(one(number)))
    for run_id in await asyncio.gather(*dispatched):
        await wait(store, run_id, scope=SCOPE)
    reader.tell(_ALL)
    times = await reader.hear()
    if not isinstance(times, list):
        raise TypeError(times)
    return _middle_and_late(times)


_ALL: Final = ""


async def _read(pipe: Connection, url: str) -> None:
    """Follow the Runs that are named; on _ALL say how long their records took, in ms."""
    found: list[float] = []
    async with open_store(url) as store:
        pipe.send("reading")
        following: list[asyncio.Task[None]] = []
        while (run_id := await asyncio.to_thread(pipe.recv)) is not None:
            if run_id != _ALL:
                following.append(asyncio.create_task(_follow(store, run_id, found)))
                continue
            await asyncio.gather(*following)
            pipe.send(found)
            found.clear()
            following.clear()


async def _follow(store: Store, run_id: str, found: list[float]) -> None:
    """Note how long each record took that was written since we came."""
    came = datetime.now(UTC)
    times = [
        (datetime.now(UTC) - record.at).total_seconds() * 1e3
        async for record in stream(store, run_id, scope=SCOPE)
        if record.at > came
    ]
    found.extend(times)
