"""What a process is that is killed; each line of input is JSON with the fields of `Job`."""

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6

from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.store.open import open_store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.decorator import tool
from psych_runtime.tools.policy import AllowAll
from psych_runtime.tools.reconciled import Reconciled
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.model import ModelEvent, ModelRequest
from tests.functional.engine.harness import admit, agent
from tests.processes.forks import append, fork_each

TURNS = 3
BOOKING_SECONDS = 3.0  # for one call: as long as it may still run when its worker was killed


@dataclass(frozen=True)
class Job:
    """What a process needs to know; effects are lines in `folder`/effects.

    Attributes:
        admits: whether it starts a Run and dies, and is no worker.
    """

    folder: str
    url: str
    prefix: str
    lease_seconds: float
    tools: list[str]
    slow: bool = False
    admits: bool = False


async def while_there(flag: Path) -> None:
    """Wait until nobody holds the flag up."""
    while flag.exists():
        await asyncio.sleep(0.01)


class HeldModel(FakeModel):
    """A scripted model that says nothing while the file hold_model is there."""

    folder = Path()

    async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if (self.folder / "hold_model").exists():
            (self.folder / "model_is_held").touch()
        await while_there(self.folder / "hold_model")
        async for event in super()._play(request):
            yield event


def make_runtime(job: Job) -> Runtime:
    """Return what a worker executes with: each execution of a tool is one line, at once."""
    folder = Path(job.folder)

    async def effect(context: ToolContext, name: str) -> str:
        append(folder, "effects", name, context.idempotency_key, context.epoch)
        await while_there(folder / "hold_tools")
        if job.slow:
            await asyncio.sleep(random.random() * 0.05)
        return f"{name} is done"

    @tool
    async def charge(context: ToolContext) -> str:
        """Charge the card."""
        return await effect(context, "charge")

    @tool(safe_to_retry=True)
    async def put(context: ToolContext) -> str:
        """Put the document."""
        return await effect(context, "put")

    def booked(call: StartedCall) -> Reconciled:
        append(folder, "asked", call.call_id, call.epoch)
        lines = (folder / "effects").read_text().splitlines()
        done = next((one for one in lines if one.split()[1] == call.idempotency_key), None)
        return Reconciled.not_happened() if done is None else Reconciled.happened(done)

    @tool(reconcile=booked, timeout_seconds=BOOKING_SECONDS)
    async def book(context: ToolContext) -> str:
        """Book the flight."""
        return await effect(context, "book")

    @tool(reconcile=booked, timeout_seconds=BOOKING_SECONDS)
    async def reserve(context: ToolContext) -> str:
        """Reserve the seat."""
        await while_there(folder / "hold_tools")
        return await effect(context, "reserve")

    registry = ToolRegistry()
    for function in (charge, put, book, reserve):
        registry.register(function)
    model = HeldModel()
    model.folder = folder
    for _ in range(TURNS if job.slow else 1):
        model.turn(tool_calls=[(name, {}) for name in job.tools])
    for text in ("Done.", "More.", "Again."):  # of these, what is sent meanwhile decides how many
        model.turn(text=text)
    store = open_store(job.url, prefix=job.prefix)
    return Runtime(store=store, model=model, registry=registry, policy=AllowAll())


async def work(job: Job) -> None:
    """Be a worker until killed."""
    made = make_runtime(job)
    async with made.store:
        worker = Worker(made, lease_seconds=job.lease_seconds, poll_seconds=0.02, max_attempts=1000)
        await worker.run()


async def admit_and_die(job: Job) -> None:
    """Start a Run; nothing of this process happens after `dispatch` has returned but its death."""
    async with open_store(job.url, prefix=job.prefix) as store:
        await store.migrate()
        await admit(store, agent(*job.tools))
        os.kill(os.getpid(), signal.SIGKILL)


async def live(job: Job) -> None:
    """Be a process until killed."""
    await (admit_and_die(job) if job.admits else work(job))


if __name__ == "__main__":
    fork_each(lambda line: live(Job(**json.loads(line))))
