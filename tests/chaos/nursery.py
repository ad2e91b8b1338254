"""What a worker process of a chaos run is; each line of input is JSON with the fields of `Job`."""

import asyncio
import json
import logging
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6

from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.store.open import open_store
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.policy import AllowAll
from psych_runtime.tools.registry import ToolRegistry
from tests.chaos.work import OrderModel, answer_of
from tests.processes.forks import append, fork_each

__all__ = ["Job"]

type Turn = Annotated[int, "Which turn asks."]
type Held = Annotated[bool, "Whether to wait until the hold is over."]

_LONG_PAUSE_SECONDS = 0.5
_MAX_ATTEMPTS = 1000  # nobody's Run fails for our killing


@dataclass(frozen=True)
class Job:
    """What a process needs to know; what happens in it is lines in files of `folder`.

    Attributes:
        workers: how many the process has, each with a store handle of its own.
    """

    folder: str
    url: str
    prefix: str
    lease_seconds: float
    concurrency: int
    workers: int = 1


class TellingSystem(System):
    """Says which worker of which process has which id, before the id is used."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__()
        self._folder = folder
        self._number = number

    def new_id(self, prefix: str) -> str:
        """Return a new id."""
        made = super().new_id(prefix)
        if prefix == "wrk":
            append(self._folder, "workers", made, os.getpid(), self._number, time.time())
        return made


def make_registry(folder: Path) -> ToolRegistry:
    """Return the tools; each execution is one line, written in the middle of the call."""
    hold = folder / "hold"

    async def effect(context: ToolContext, name: str, turn: int, held: bool) -> str:
        await asyncio.sleep(random.random() * 0.1)
        append(
            folder,
            "effects",
            name,
            context.run_id,
            turn,
            context.call_id,
            context.epoch,
            os.getpid(),
        )
        await asyncio.sleep(random.random() * 0.4)
        while held and hold.exists():
            await asyncio.sleep(0.02)
        return answer_of(name, turn, context.run_id)

    @tool(safe_to_retry=True)
    async def put(context: ToolContext, turn: Turn, held: Held) -> str:
        """Put the document."""
        return await effect(context, "put", turn, held)

    @tool
    async def charge(context: ToolContext, turn: Turn, held: Held) -> str:
        """Charge the card."""
        return await effect(context, "charge", turn, held)

    @tool(safe_to_retry=True, annotations={"read-only"})
    async def look(context: ToolContext, turn: Turn, held: Held) -> str:
        """Look at the stock."""
        return await effect(context, "look", turn, held)

    registry = ToolRegistry()
    for function in (put, charge, look):
        registry.register(function)
    return registry


async def opened(job: Job) -> Store:
    """Return the store once it can be reached: a process may be started while it is away."""
    while True:
        try:
            return await open_store(job.url, prefix=job.prefix).__aenter__()
        except StoreUnavailable:
            await asyncio.sleep(0.1)


async def work(job: Job, number: int) -> None:
    """Be one worker until killed."""
    folder = Path(job.folder)
    made = Runtime(
        store=await opened(job),
        model=OrderModel(),
        registry=make_registry(folder),
        policy=AllowAll(),
        system=TellingSystem(folder, number),
    )
    await Worker(
        made,
        lease_seconds=job.lease_seconds,
        concurrency=job.concurrency,
        poll_seconds=0.1,
        max_attempts=_MAX_ATTEMPTS,
    ).run()


async def watch_the_loop(folder: Path) -> None:
    """Write down each time for which the process had no turn; being stopped is one, too."""
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(0.05)
        pause = loop.time() - before - 0.05
        if pause > _LONG_PAUSE_SECONDS:
            append(folder, "pauses", os.getpid(), time.time(), f"{pause:.2f}")


async def live(job: Job) -> None:
    """Be a process with workers."""
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch_the_loop(Path(job.folder)))
        working = [group.create_task(work(job, number)) for number in range(job.workers)]
        await asyncio.wait(working)
        watching.cancel()


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
    fork_each(lambda line: live(Job(**json.loads(line))))
