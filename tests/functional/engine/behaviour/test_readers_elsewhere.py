"""Readers that go on in another process, while workers die and the Run is stopped (STR-1)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import cycle
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import pytest

from psych_runtime._reads import stream
from psych_runtime.api import interrupt
from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import ModelDelta
from tests.functional.engine.behaviour.test_readers import Holding
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    BOUND_SECONDS,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    records_of,
    run_to_end,
    runtime,
)
from tests.processes.tasks import next_line, started, tell
from tests.stores.dynamo import dynamo_place
from tests.stores.kinds import EVERY_STORE, tables_of


class Place(NamedTuple):
    """A store by its name."""

    url: str
    prefix: str


@pytest.fixture(params=[kind for kind in EVERY_STORE if kind != "memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """Every store that processes can share."""
    name: str = request.param
    return name


@pytest.fixture
async def place(kind: str, tmp_path: Path) -> Place:
    """Where the Runs are."""
    if kind == "dynamodb":
        return Place(*dynamo_place())
    if kind == "sqlite":
        return Place(f"sqlite:///{tmp_path}/runs.db", "")
    tables = tables_of(kind)
    await tables.empty()
    return Place(tables.url, tables.prefix)


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    """This process's handle."""
    async with open_store(place.url, prefix=place.prefix) as opened:
        await opened.migrate()
        yield opened


async def test_str_1_readers_take_turns_in_two_processes_and_here(
    place: Place, store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Three records there, three in another process, three here: across a crash and a stop."""
    holding = Holding()
    model = FakeModel().turn(text="I look.", tool_calls=[("slow", {})]).stalls(text="It is half a")
    program = "tests.functional.engine.behaviour.reading"
    with started(program, *place) as one, started(program, *place) as other:
        for process in (one, other):
            assert await asyncio.to_thread(next_line, process) == "ready"
        first = await crew.start(runtime(flaky, model, holding.tool()))
        run = await admit(store, agent("slow"), deltas=True)
        seen: list[str] = []
        reader = asyncio.create_task(read_in_turns(store, run, seen, [one, other, None]))
        await holding.began.wait()
        await eventually(lambda: len(seen) >= 3)
        await die(flaky, store, first)
        await crew.start(runtime(store, model, holding.tool()))

        async def speaks_again() -> bool:
            return len({one.call for one in await of_type(store, run, ModelDelta)}) == 2

        await eventually(speaks_again)
        await interrupt(store, run, scope=ACME)
        await run_to_end(store, run)
        async with asyncio.timeout(BOUND_SECONDS):
            await reader
    holding.release.set()
    log = await records_of(store, run)
    assert {record.epoch for record in log} == {0, 1, 2}
    assert log[-1].type == "run.settled"
    assert seen == [record.model_dump_json() for record in log]


async def read_in_turns(
    store: Store, run: str, seen: list[str], readers: Sequence[Popen[str] | None]
) -> None:
    """Read a Run to its end, three records by each reader in turn; None is this process."""
    for process in readers:
        if process is not None:
            tell(process, run)
    for process in cycle(readers):
        if process is None:
            async for record in stream(store, run, scope=ACME, after=len(seen)):
                seen.append(record.model_dump_json())
                if len(seen) % 3 == 0 or is_over(seen):
                    break
        else:
            tell(process, f"{len(seen)} 3")
            for _ in range(3):
                seen.append(await asyncio.to_thread(next_line, process))
                if is_over(seen):
                    break
        if is_over(seen):
            return


def is_over(seen: Sequence[str]) -> bool:
    """Tell whether the last record is the end."""
    return '"type":"run.settled"' in seen[-1]
