"""A tool that blocks the executor's loop: what goes on, and who takes over (RUN-8, R-21)."""

import asyncio
import threading

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.record import AttemptStarted, RunSettled, ToolCompleted
from tests.functional.engine.durability.crashes import Tool
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    of_type,
    only,
    run_to_end,
    runtime,
)


class Blocker:
    """A tool that holds whatever loop it runs on until the test lets go."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.runs = 0

    def tool(self) -> Tool:
        """Return the tool."""

        @tool(name="charge", safe_to_retry=True)
        async def charge() -> str:
            """Charge the card."""
            self.runs += 1
            if self.runs == 1:
                self.started.set()
                self.release.wait(60)
            return "charged"

        return charge


class OwnLoop:
    """A worker on a thread and loop of its own, with a handle of its own, so that only it hangs."""

    def __init__(self, made: Runtime, *, lease_seconds: float = 6.0) -> None:
        self._store = made.store
        self.worker = Worker(
            made, poll_seconds=0.02, grace_seconds=2.0, lease_seconds=lease_seconds
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),))
        self._thread.start()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.worker.run()
        await self._store.close()

    async def stop(self) -> None:
        """End the worker and its thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.worker.stop)
        await asyncio.to_thread(self._thread.join)


async def test_run_8_blocked_loop_does_not_stop_renewals(
    store: Store, flaky: Flaky, crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease runs on, the log names tool and line, and the Run ends in its attempt."""
    blocker = Blocker()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    hung = OwnLoop(runtime(flaky.twin(), model, blocker.tool()))
    try:
        run = await admit(store, agent("charge"))
        await eventually(blocker.started.is_set)
        before = flaky.faults.calls["renew"]
        await eventually(lambda: "has stood still" in caplog.text)
        await eventually(lambda: flaky.faults.calls["renew"] >= before + 2)
        assert "tools running: charge" in caplog.text
        assert "self.release.wait(60)" in caplog.text
        blocker.release.set()
        header = await run_to_end(store, run)
    finally:
        blocker.release.set()
        await hung.stop()

    assert header.epoch == 1
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert caplog.text.count("has stood still") == 1


async def test_run_8_other_workers_go_on_beside_a_hung_one(store: Store, crew: Crew) -> None:
    """What the hung one does not hold is executed by the others."""
    blocker = Blocker()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    hung = OwnLoop(runtime(store.twin(), model, blocker.tool()))
    try:
        await admit(store, agent("charge"))
        await eventually(blocker.started.is_set)
        other = await admit(store, agent())
        await crew.start(runtime(store, FakeModel().turn(text="Hello.")))
        await run_to_end(store, other)
        assert not blocker.release.is_set()
    finally:
        blocker.release.set()
        await hung.stop()


async def test_run_8_hung_run_past_its_deadline_is_settled_by_its_supervisor(
    store: Store, clock: ShiftedSystem
) -> None:
    """The only worker is the hung one; what its tool brings later is discarded."""
    blocker = Blocker()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="never")
    hung = OwnLoop(runtime(store.twin(), model, blocker.tool()), lease_seconds=30.0)
    try:
        run = await admit(store, agent("charge"), deadline_seconds=40.0)
        await eventually(blocker.started.is_set)
        clock.shift_seconds += 40.0
        header = await run_to_end(store, run)
        assert not blocker.release.is_set()
    finally:
        blocker.release.set()
        await hung.stop()

    settled = only(await of_type(store, run, RunSettled))
    assert (settled.state, settled.epoch) == ("timed_out", 2)
    assert only(await of_type(store, run, ToolCompleted)).outcome == "unknown"
    assert await store.header(ACME.tenant, run) == header
    assert blocker.runs == 1


async def test_run_8_hung_executor_loses_its_lease(store: Store, crew: Crew) -> None:
    """Past the lease nobody renews: another worker takes the Run; the woken one writes nothing."""
    blocker = Blocker()
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    hung = OwnLoop(runtime(store.twin(), model, blocker.tool()), lease_seconds=0.8)
    try:
        run = await admit(store, agent("charge"))
        await eventually(blocker.started.is_set)
        dead = hung.worker.lease.worker
        made = runtime(store, model, blocker.tool())
        await crew.start(made, lease_seconds=0.8)
        header = await run_to_end(store, run)
        blocker.release.set()
        await eventually(lambda: hung.worker.lease.worker not in (None, dead))
    finally:
        blocker.release.set()
        await hung.stop()

    assert await store.header(ACME.tenant, run) == header
    assert [a.epoch for a in await of_type(store, run, AttemptStarted)] == [1, 2]
    assert blocker.runs == 2
