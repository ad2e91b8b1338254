"""What HTTP tools leave open ends with the Runtime that a program made (TOOL-4)."""

import asyncio

import pytest

from psych_runtime import AllowAll, Runtime, Worker, dispatch, open_store, publish, wait
from psych_runtime.egress import EgressRules
from psych_runtime.ports.store import Store
from psych_runtime.testing import FakeModel
from tests.functional.egress.loopback import ACME, LOOPBACK, Loopback, reply
from tests.functional.tools.http_service import agent

BOUND_SECONDS = 20.0


def made(store: Store) -> Runtime:
    """Return a Runtime whose model calls the tool once."""
    model = FakeModel().turn(tool_calls=[("ask", {})]).turn(text="Done.")
    return Runtime(store=store, model=model, policy=AllowAll(), egress=EgressRules(LOOPBACK))


async def run_once(runtime: Runtime, url: str) -> None:
    """Execute one Run in a worker, which ends behind it."""
    worker = Worker(runtime, poll_seconds=0.02)
    working = asyncio.create_task(worker.run())
    version = await publish(runtime.store, agent(url), scope=ACME)
    run = await dispatch(runtime.store, version, scope=ACME, input={"message": "Go."})
    await wait(runtime.store, run.run_id, scope=ACME, timeout_seconds=BOUND_SECONDS)
    worker.stop()
    await working


async def test_tool_4_a_runtime_by_async_with_leaves_no_connection() -> None:
    """It is kept for the next call until then, whichever worker makes it."""
    async with Loopback(reply(b"ok", "Content-Type: text/plain")) as there:
        async with open_store("memory://") as store, made(store) as runtime:
            await run_once(runtime, there.url(""))
            assert (len(there.asked), there.open) == (1, 1)
        async with asyncio.timeout(BOUND_SECONDS):
            await there.until_closed()


async def test_tool_4_a_program_that_fails_leaves_none_either() -> None:
    """What it raises is what its caller sees."""

    async def fail(url: str) -> None:
        async with open_store("memory://") as store, made(store) as runtime:
            await run_once(runtime, url)
            raise ZeroDivisionError

    async with Loopback(reply(b"ok", "Content-Type: text/plain")) as there:
        with pytest.raises(ZeroDivisionError):
            await fail(there.url(""))
        async with asyncio.timeout(BOUND_SECONDS):
            await there.until_closed()


async def test_tool_4_a_runtime_may_be_used_again_after_it_was_closed() -> None:
    """Whether there was anything to close or not."""
    async with (
        Loopback(reply(b"ok", "Content-Type: text/plain")) as there,
        open_store("memory://") as store,
    ):
        async with made(store) as runtime:
            assert there.connections == 0
        async with runtime:
            await run_once(runtime, there.url(""))
        assert len(there.asked) == 1
