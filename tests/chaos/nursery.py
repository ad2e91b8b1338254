"""Starts worker processes quickly: imports once, forks for each line it reads.

A line is JSON with the fields of `Job`; the answer is the worker's process id. It ends, and its
workers with it, when its input does.
"""

import asyncio
import json
import logging
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

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


def append(folder: Path, name: str, *facts: object) -> None:
    """Write one line to a file that all processes share, in one piece."""
    line = " ".join(map(str, facts)) + "\n"
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


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


def main() -> None:
    """Fork a process for each line of input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    logging.basicConfig(format="%(asctime)s %(process)d %(levelname)s %(message)s")
    children: list[int] = []
    for line in sys.stdin:
        job = Job(**json.loads(line))
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            asyncio.run(live(job))
            os._exit(0)
        children.append(child)
        print(child, flush=True)
    for child in children:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
