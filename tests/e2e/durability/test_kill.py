"""Real processes on one store: killed, stopped, woken (RUN-1, RUN-2, ADM-3, D9)."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from psych_runtime._messages import send
from psych_runtime._reads import thread
from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import TextPart
from psych_schema.record import (
    AttemptStarted,
    Failure,
    ModelCompleted,
    QueueConsumed,
    RunSettled,
    ToolCompleted,
    ToolResult,
    ToolStarted,
)
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
from tests.processes.nursery import Nursery, Process
from tests.stores.dynamo import dynamo_place
from tests.stores.kinds import tables_of

LEASE_SECONDS = 1.0
CALM_LEASE_SECONDS = 3.0  # where nobody alive may miss it, with many tests on two processors
SHARED = ("sqlite", "postgresql", "mysql", "mariadb", "dynamodb")
"""The stores that several processes can share."""


class Place(NamedTuple):
    """A store by its name."""

    url: str
    prefix: str


class Hands:
    """Worker processes on one place, and what their tools have done."""

    def __init__(self, folder: Path, place: Place, nursery: Nursery[Job]) -> None:
        self.folder = folder
        self._place = place
        self._nursery = nursery

    def start(self, *tools: str, slow: bool = False, lease: float = LEASE_SECONDS) -> Process:
        """Start a worker whose model asks for `tools`."""
        place = self._place
        job = Job(str(self.folder), place.url, place.prefix, lease, list(tools), slow)
        return self._nursery.start(job)

    def start_who_admits(self, *tools: str) -> Process:
        """Start a process that starts a Run of an agent with `tools`, and is killed at once."""
        place = self._place
        job = Job(str(self.folder), place.url, place.prefix, 0.0, list(tools), admits=True)
        return self._nursery.start(job)

    def effects(self) -> list[str]:
        """Return every execution of a tool: name, call id, epoch."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(params=SHARED)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the Runs are: each store in turn."""
    if request.param == "dynamodb":
        return Place(*dynamo_place())
    if request.param == "sqlite":
        return Place(f"sqlite:///{tmp_path}/runs.db", "")
    tables = tables_of(request.param)
    await tables.empty()
    also = "&" if "?" in tables.url else "?"
    return Place(f"{tables.url}{also}timeout_seconds={LEASE_SECONDS / 2}", tables.prefix)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery[Job]]:
    """The process that all workers are forked from; it takes a second to start."""
    with Nursery[Job]("tests.e2e.durability.nursery") as made:
        yield made


@pytest.fixture
def hands(tmp_path: Path, place: Place, nursery: Nursery[Job]) -> Iterator[Hands]:
    """What starts workers on `place`."""
    yield Hands(tmp_path, place, nursery)
    nursery.empty()


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    """The store that all processes share."""
    opened = open_store(place.url, prefix=place.prefix)
    await opened.migrate()
    async with opened:
        yield opened


async def in_a_tool(
    hands: Hands, store: Store, name: str, *, lease: float = LEASE_SECONDS
) -> tuple[Process, str]:
    """Start a Run whose tool has begun and is held; return its worker's process and the Run."""
    hold = hands.folder / "hold_tools"
    hold.touch()
    process = hands.start(name, lease=lease)
    run = await admit(store, agent(name))
    await eventually(hands.effects)
    return process, run


async def stop_outside_a_write(store: Store, process: Process) -> None:
    """Stop a process, and not inside a write: with SQLite that would block all writers."""
    probe = System()

    async def stopped() -> bool:
        process.stop()
        try:
            await store.enlist(probe.new_id("wrk"), lease_seconds=0.0, build="test", tools=())
        except StoreUnavailable:
            process.go_on()
            return False
        return True

    await eventually(stopped)


async def live_workers(store: Store) -> set[str]:
    """Return the ids of workers that are alive and real."""
    return {row.id for row in await store.workers() if row.build != "test"}


async def are_alive(store: Store, number: int) -> bool:
    """Tell whether so many workers are alive and real."""
    return len(await live_workers(store)) == number


async def test_adm_3_an_admitted_run_outlives_every_process(hands: Hands, place: Place) -> None:
    """Who admits it is killed when `dispatch` has returned, and there is no other process yet."""
    admitting = hands.start_who_admits("put")
    await eventually(admitting.has_ended)
    async with open_store(place.url, prefix=place.prefix) as store:
        assert await store.workers() == []
        admitted = only((await store.list_runs(ACME.tenant)).headers)
        assert (admitted.state, admitted.epoch) == ("ready", 0)
        hands.start("put")
        await run_to_end(store, admitted.run_id)

        attempt = only(await of_type(store, admitted.run_id, AttemptStarted))
        assert (attempt.epoch, attempt.reason) == (1, "fresh")
        assert only(await of_type(store, admitted.run_id, RunSettled)).output == "Done."
    assert len(hands.effects()) == 1


async def test_r_5_a_run_of_a_killed_worker_is_taken_by_another(hands: Hands, store: Store) -> None:
    """By one that was there already, in the next attempt, once the killed one is called dead."""
    worker, run = await in_a_tool(hands, store, "charge", lease=CALM_LEASE_SECONDS)
    killed = only(await live_workers(store))
    hands.start("charge", lease=CALM_LEASE_SECONDS)
    await eventually(partial(are_alive, store, 2))
    other = only(await live_workers(store) - {killed})
    worker.kill()
    header = await run_to_end(store, run)

    assert [
        (one.worker, one.epoch, one.reason) for one in await of_type(store, run, AttemptStarted)
    ] == [(killed, 1, "fresh"), (other, 2, "reclaimed")]
    assert header.epoch == 2
    assert await live_workers(store) == {other}


async def test_r_5_a_run_of_a_live_worker_is_left_to_it(hands: Hands, store: Store) -> None:
    """Its neighbour: an idle worker is killed and called dead, and the held Run is not taken."""
    _, run = await in_a_tool(hands, store, "charge", lease=CALM_LEASE_SECONDS)
    holder = only(await live_workers(store))
    hands.start("charge", lease=CALM_LEASE_SECONDS)
    await eventually(partial(are_alive, store, 2))
    other = only(await live_workers(store) - {holder})
    idle = hands.start("charge", lease=CALM_LEASE_SECONDS)
    await eventually(partial(are_alive, store, 3))
    idle.kill()
    await eventually(partial(are_alive, store, 2))
    assert await live_workers(store) == {holder, other}
    (hands.folder / "hold_tools").unlink()
    await run_to_end(store, run)

    attempt = only(await of_type(store, run, AttemptStarted))
    assert (attempt.worker, attempt.epoch, attempt.reason) == (holder, 1, "fresh")


async def test_run_1_killed_in_an_unsafe_call(hands: Hands, store: Store) -> None:
    """The second process finishes; the call was executed once and its outcome is unknown."""
    worker, run = await in_a_tool(hands, store, "charge")
    worker.kill()
    (hands.folder / "hold_tools").unlink()
    hands.start("charge")
    await run_to_end(store, run)

    done = only(await of_type(store, run, ToolCompleted))
    assert done.outcome == "unknown"
    assert hands.effects() == [f"charge {done.call_id} 1"]
    assert only(await of_type(store, run, RunSettled)).output == "Done."


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
async def test_run_1_killed_in_calls_that_can_be_looked_up(hands: Hands, store: Store) -> None:
    """One has done its work, one has not: the second process finds out, and does neither again."""
    hold = hands.folder / "hold_tools"
    hold.touch()
    worker = hands.start("book", "reserve")
    run = await admit(store, agent("book", "reserve"))

    async def both_began() -> bool:
        return len(await of_type(store, run, ToolStarted)) == 2 and bool(hands.effects())

    await eventually(both_began)
    worker.kill()
    worker.wait()
    hold.unlink()
    hands.start("book", "reserve")
    await run_to_end(store, run)

    book, reserve = [one.call_id for one in await of_type(store, run, ToolStarted)]
    done = {one.call_id: one for one in await of_type(store, run, ToolCompleted)}
    assert {one.source for one in done.values()} == {"reconciled"}
    assert hands.effects() == [f"book {book} 1"]
    assert done[book].result == ToolResult(parts=(TextPart(text=f"book {book} 1"),))
    assert done[reserve].failure == Failure(code="not_happened", transient=True)
    asked = (hands.folder / "asked").read_text().splitlines()
    assert sorted(asked) == sorted([f"{book} 2", f"{reserve} 2"])
    assert only(await of_type(store, run, RunSettled)).output == "Done."


async def test_run_1_killed_in_a_safe_call(hands: Hands, store: Store) -> None:
    """The second process executes it again, under the same idempotency key."""
    worker, run = await in_a_tool(hands, store, "put")
    worker.kill()
    (hands.folder / "hold_tools").unlink()
    hands.start("put")
    await run_to_end(store, run)

    done = only(await of_type(store, run, ToolCompleted))
    assert done.outcome == "ok"
    assert hands.effects() == [f"put {done.call_id} 1", f"put {done.call_id} 2"]
    assert [one.tries for one in await of_type(store, run, ToolStarted)] == [1, 2]


async def test_run_2_stopped_past_its_lease_in_a_tool(hands: Hands, store: Store) -> None:
    """Taken over while it slept; awake again it writes nothing and comes back as another."""
    worker, run = await in_a_tool(hands, store, "charge")
    await stop_outside_a_write(store, worker)
    hands.start("charge")
    header = await run_to_end(store, run)
    before = await live_workers(store)
    (hands.folder / "hold_tools").unlink()
    worker.go_on()

    async def is_back() -> bool:
        return bool(await live_workers(store) - before)

    await eventually(is_back)
    assert await store.header(ACME.tenant, run) == header
    assert header.epoch == 2
    assert len(hands.effects()) == 1


async def test_run_2_stopped_past_its_lease_before_a_tool(hands: Hands, store: Store) -> None:
    """It slept in a model call that asks for a tool: awake again it does not start the tool."""
    hold = hands.folder / "hold_model"
    hold.touch()
    worker = hands.start("charge")
    run = await admit(store, agent("charge"))
    await eventually((hands.folder / "model_is_held").exists)
    await stop_outside_a_write(store, worker)
    hold.unlink()
    hands.start("charge")
    header = await run_to_end(store, run)
    before = await live_workers(store)
    worker.go_on()

    async def is_back() -> bool:
        return bool(await live_workers(store) - before)

    await eventually(is_back)
    assert await store.header(ACME.tenant, run) == header
    done = only(await of_type(store, run, ToolCompleted))
    assert hands.effects() == [f"charge {done.call_id} 2"]


async def test_run_2_stopped_for_a_moment_goes_on(hands: Hands, store: Store) -> None:
    """Woken before anybody judged it: the same attempt ends, nothing ran twice."""
    worker, run = await in_a_tool(hands, store, "charge")
    await stop_outside_a_write(store, worker)
    worker.go_on()
    (hands.folder / "hold_tools").unlink()
    header = await run_to_end(store, run)

    assert header.epoch == 1
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert len(hands.effects()) == 1


async def said(store: Store, run: str) -> list[str]:
    """Return what was said in a thread and is no call, in the order in which the model met it."""
    page = await thread(store, run, scope=ACME)
    return [one.text or "" for each in page.runs for one in each.said if hasattr(one, "text")]


async def test_run_6_killed_with_messages_in_every_queue(hands: Hands, store: Store) -> None:
    """Sent while its tool ran: another process reads each, once, at its moment (C11)."""
    worker, run = await in_a_tool(hands, store, "put")
    await send(store, run, scope=ACME, message="N", queue="next_run")
    await send(store, run, scope=ACME, message="F", queue="follow_up")
    await send(store, run, scope=ACME, message="S", queue="steer")
    worker.kill()
    (hands.folder / "hold_tools").unlink()
    hands.start("put")
    await run_to_end(store, run)
    following = only(await of_type(store, run, RunSettled)).next_run
    assert following is not None
    await run_to_end(store, following)

    assert await said(store, run) == ["Go.", "S", "Done.", "F", "More.", "N", "Again."]
    assert len(await of_type(store, run, QueueConsumed)) == 2


async def test_run_6_killed_in_the_model_call_that_reads_a_message(
    hands: Hands, store: Store
) -> None:
    """It is made again with it, and the message is not read a second time."""
    (hands.folder / "hold_model").touch()
    run = await admit(store, agent("put"))
    await send(store, run, scope=ACME, message="F", queue="follow_up")
    await send(store, run, scope=ACME, message="S")
    worker = hands.start("put")
    await eventually((hands.folder / "model_is_held").exists)
    worker.kill()
    (hands.folder / "hold_model").unlink()
    hands.start("put")
    await run_to_end(store, run)

    assert await said(store, run) == ["Go.", "S", "Done.", "F", "More."]
    assert len(await of_type(store, run, QueueConsumed)) == 2


@pytest.mark.parametrize("place", [*SHARED, "pooled"], indirect=True)
async def test_run_1_killed_at_twenty_random_instants(hands: Hands, store: Store) -> None:
    """Six Runs, one worker after another killed: each Run ends, exactly as its log says."""
    chance = random.Random(20)
    crew = Crew()
    # has no tools: it executes nothing, but declares the dead dead
    await crew.start(runtime(store, FakeModel()), lease_seconds=LEASE_SECONDS)
    runs = [await admit(store, agent("put", "charge")) for _ in range(6)]
    try:
        for _ in range(20):
            worker = hands.start("put", "charge", slow=True)
            await asyncio.sleep(0.05 + chance.random() * 0.35)
            worker.kill()
        hands.start("put", "charge", slow=True)
        for run in runs:
            await eventually(partial(is_settled, store, run), 60)
            await run_to_end(store, run)
    finally:
        await crew.close()

    executed = Counter(tuple(line.split()[:2]) for line in hands.effects())
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
