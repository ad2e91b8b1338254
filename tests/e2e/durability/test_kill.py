"""Real processes on one store: killed, stopped, woken (RUN-1, RUN-2, D9)."""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import NamedTuple

import pytest

from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import ModelCompleted, RunSettled, ToolCompleted, ToolStarted
from tests.e2e.durability.nursery import TURNS, Job
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    only,
    run_to_end,
    runtime,
)
from tests.stores.dynamo import CREDENTIALS, dynamo_place
from tests.stores.kinds import tables_of

LEASE_SECONDS = 1.0


class Place(NamedTuple):
    """A store by its name."""

    url: str
    prefix: str


class Nursery:
    """The process that starts workers."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.folder = folder
        self._place = place
        command = [sys.executable, "-m", "tests.e2e.durability.nursery"]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)
        self._live: set[int] = set()

    def start(self, *tools: str, slow: bool = False) -> int:
        """Start a worker whose model asks for `tools`; return its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        place = self._place
        job = Job(str(self.folder), place.url, place.prefix, LEASE_SECONDS, list(tools), slow)
        self._process.stdin.write(json.dumps(vars(job)) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        self._live.add(pid)
        return pid

    def kill(self, pid: int) -> None:
        """Kill a worker with -9."""
        self._live.discard(pid)
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End it and its workers."""
        for pid in self._live:
            os.kill(pid, signal.SIGKILL)
        self._process.communicate()

    def effects(self) -> list[str]:
        """Return every execution of a tool: name, call id, epoch."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "mariadb", "dynamodb"])
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """Where the Runs are: each store that several processes can share, in turn."""
    if request.param == "dynamodb":
        for name, value in CREDENTIALS.items():
            monkeypatch.setenv(name, value)
        return Place(*dynamo_place())
    if request.param == "sqlite":
        return Place(f"sqlite:///{tmp_path}/runs.db", "")
    tables = tables_of(request.param)
    await tables.empty()
    return Place(f"{tables.url}?timeout_seconds={LEASE_SECONDS / 2}", tables.prefix)


@pytest.fixture
def nursery(tmp_path: Path, place: Place) -> Iterator[Nursery]:
    """A process that starts workers on `place`."""
    made = Nursery(tmp_path, place)
    yield made
    made.close()


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    """The store that all processes share."""
    opened = open_store(place.url, prefix=place.prefix)
    await opened.migrate()
    async with opened:
        yield opened


async def in_a_tool(nursery: Nursery, store: Store, name: str) -> tuple[int, str]:
    """Start a Run whose tool has begun and is held; return its worker's pid and the Run."""
    hold = nursery.folder / "hold_tools"
    hold.touch()
    pid = nursery.start(name)
    run = await admit(store, agent(name))
    await eventually(nursery.effects)
    return pid, run


async def stop_outside_a_write(store: Store, pid: int) -> None:
    """Stop a process, and not inside a write: with SQLite that would block all writers."""
    probe = System()

    async def stopped() -> bool:
        os.kill(pid, signal.SIGSTOP)
        try:
            await store.enlist(probe.new_id("wrk"), lease_seconds=0.0, build="test", tools=())
        except StoreUnavailable:
            os.kill(pid, signal.SIGCONT)
            return False
        return True

    await eventually(stopped)


async def live_workers(store: Store) -> set[str]:
    """Return the ids of workers that are alive and real."""
    return {row.id for row in await store.workers() if row.build != "test"}


async def test_run_1_killed_in_an_unsafe_call(nursery: Nursery, store: Store) -> None:
    """The second process finishes; the call was executed once and its outcome is unknown."""
    pid, run = await in_a_tool(nursery, store, "charge")
    nursery.kill(pid)
    (nursery.folder / "hold_tools").unlink()
    nursery.start("charge")
    await run_to_end(store, run)

    done = only(await of_type(store, run, ToolCompleted))
    assert done.outcome == "unknown"
    assert nursery.effects() == [f"charge {done.call_id} 1"]
    assert only(await of_type(store, run, RunSettled)).output == "Done."


async def test_run_1_killed_in_a_safe_call(nursery: Nursery, store: Store) -> None:
    """The second process executes it again, under the same idempotency key."""
    pid, run = await in_a_tool(nursery, store, "put")
    nursery.kill(pid)
    (nursery.folder / "hold_tools").unlink()
    nursery.start("put")
    await run_to_end(store, run)

    done = only(await of_type(store, run, ToolCompleted))
    assert done.outcome == "ok"
    assert nursery.effects() == [f"put {done.call_id} 1", f"put {done.call_id} 2"]
    assert [one.tries for one in await of_type(store, run, ToolStarted)] == [1, 2]


async def test_run_2_stopped_past_its_lease_in_a_tool(nursery: Nursery, store: Store) -> None:
    """Taken over while it slept; awake again it writes nothing and comes back as another."""
    pid, run = await in_a_tool(nursery, store, "charge")
    await stop_outside_a_write(store, pid)
    nursery.start("charge")
    header = await run_to_end(store, run)
    before = await live_workers(store)
    (nursery.folder / "hold_tools").unlink()
    os.kill(pid, signal.SIGCONT)

    async def is_back() -> bool:
        return bool(await live_workers(store) - before)

    await eventually(is_back)
    assert await store.header(ACME.tenant, run) == header
    assert header.epoch == 2
    assert len(nursery.effects()) == 1


async def test_run_2_stopped_past_its_lease_before_a_tool(nursery: Nursery, store: Store) -> None:
    """It slept in a model call that asks for a tool: awake again it does not start the tool."""
    hold = nursery.folder / "hold_model"
    hold.touch()
    pid = nursery.start("charge")
    run = await admit(store, agent("charge"))
    await eventually((nursery.folder / "model_is_held").exists)
    await stop_outside_a_write(store, pid)
    hold.unlink()
    nursery.start("charge")
    header = await run_to_end(store, run)
    before = await live_workers(store)
    os.kill(pid, signal.SIGCONT)

    async def is_back() -> bool:
        return bool(await live_workers(store) - before)

    await eventually(is_back)
    assert await store.header(ACME.tenant, run) == header
    done = only(await of_type(store, run, ToolCompleted))
    assert nursery.effects() == [f"charge {done.call_id} 2"]


async def test_run_2_stopped_for_a_moment_goes_on(nursery: Nursery, store: Store) -> None:
    """Woken before anybody judged it: the same attempt ends, nothing ran twice."""
    pid, run = await in_a_tool(nursery, store, "charge")
    await stop_outside_a_write(store, pid)
    os.kill(pid, signal.SIGCONT)
    (nursery.folder / "hold_tools").unlink()
    header = await run_to_end(store, run)

    assert header.epoch == 1
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert len(nursery.effects()) == 1


async def test_run_1_killed_at_twenty_random_instants(nursery: Nursery, store: Store) -> None:
    """Six Runs, one worker after another killed: each Run ends, exactly as its log says."""
    chance = random.Random(20)
    crew = Crew()
    # has no tools: it executes nothing, but declares the dead dead
    await crew.start(runtime(store, FakeModel()), lease_seconds=LEASE_SECONDS)
    runs = [await admit(store, agent("put", "charge")) for _ in range(6)]
    try:
        for _ in range(20):
            pid = nursery.start("put", "charge", slow=True)
            await asyncio.sleep(0.05 + chance.random() * 0.35)
            nursery.kill(pid)
        nursery.start("put", "charge", slow=True)
        for run in runs:
            await eventually(partial(is_settled, store, run), 60)
            await run_to_end(store, run)
    finally:
        await crew.close()

    executed = Counter(tuple(line.split()[:2]) for line in nursery.effects())
    for run in runs:
        assert only(await of_type(store, run, RunSettled)).output == "Done."
        assert len(await of_type(store, run, ModelCompleted)) == TURNS + 1
        started = Counter(one.call_id for one in await of_type(store, run, ToolStarted))
        done = {one.call_id: one for one in await of_type(store, run, ToolCompleted)}
        assert len(done) == 2 * TURNS
        for asked in await of_type(store, run, ModelCompleted):
            for call in asked.said.calls if asked.said else ():
                times = executed.pop((call.name, call.call_id), 0)
                outcome = done[call.call_id].outcome
                if call.name == "put":
                    assert outcome == "ok"
                    assert 1 <= times <= started[call.call_id]
                else:
                    assert started[call.call_id] == 1
                    assert (outcome, times) in {("ok", 1), ("unknown", 1), ("unknown", 0)}
    assert not executed  # nothing ran that no log knows


async def is_settled(store: Store, run: str) -> bool:
    """Tell whether a Run has ended."""
    return (await store.header(ACME.tenant, run)).state == "settled"
