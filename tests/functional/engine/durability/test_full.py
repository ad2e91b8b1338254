"""A store without room: a caller hears of it at once, a Run in hand outlives it (ST-3)."""

from collections import Counter
from collections.abc import Sequence

import pytest

from psych_runtime.api import dispatch, publish
from psych_runtime.core.codec import outline_commit
from psych_runtime.errors import StoreFull
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Store, Unit
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import AttemptStarted, ToolCompleted
from tests.functional.engine.durability.crashes import Bench, held_in_a_call
from tests.functional.engine.flaky import Flaky, units_of
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    kinds_of,
    of_type,
    only,
    run_to_end,
    runtime,
)

WRITES = ("commit", "enlist", "renew", "bury", "sweep", "put_version", "put_document")


class Full(MemoryStore):
    """Has no room for any commit."""

    asked = 0

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        self.asked += 1
        raise StoreFull(problem="no room")


async def test_st_3_a_dispatch_to_a_full_store_is_not_tried_again_and_again() -> None:
    """Waiting makes no room."""
    store = Full()
    version = await publish(store, agent(), scope=ACME)
    with pytest.raises(StoreFull, match="make room"):
        await dispatch(store, version, scope=ACME, input={"message": "Go."})
    assert store.asked == 1


async def no_room(_: object) -> None:
    """Refuse a write; a hook for `before`."""
    raise StoreFull(problem="no room")


async def test_st_3_a_run_in_hand_outlives_a_full_store(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Its tool ended while nothing could be written; with room again the result is kept."""
    bench, model, _, _, run = await held_in_a_call(store, crew, through=flaky, lease_seconds=60.0)
    before = await store.header(ACME.tenant, run)
    flaky.faults.before |= dict.fromkeys(WRITES, no_room)
    asked = flaky.faults.calls["commit"]
    bench.release.set()
    await eventually(lambda: flaky.faults.calls["commit"] >= asked + 3)
    assert await store.header(ACME.tenant, run) == before

    flaky.faults.before.clear()
    await run_to_end(store, run)
    assert bench.ran == ["charge"]
    assert len(model.requests) == 2
    assert only(await of_type(store, run, ToolCompleted)).outcome == "ok"
    assert [one.reason for one in await of_type(store, run, AttemptStarted)] == ["fresh"]


async def test_st_3_each_write_of_a_run_may_find_a_full_store(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Claim, calls and end are refused once each, and the same units go in afterwards."""
    refused: set[str] = set()

    async def refuse_once(argument: object) -> None:
        new = {unit.commit_id for unit in units_of(argument)} - refused
        refused.update(new)
        if new:
            raise StoreFull(problem="no room")

    bench = Bench()
    bench.hold = False
    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Done.")
    run = await admit(store, agent("charge"))
    flaky.faults.before["commit"] = refuse_once
    await crew.start(runtime(flaky, model, bench.unsafe()), lease_seconds=60.0)
    await run_to_end(store, run)

    sent = Counter(unit.commit_id for unit in flaky.faults.units)
    assert {sent[commit] for commit in refused} == {2}
    written = {outline_commit(row) for row in await store.read(ACME.tenant, run, after=1)}
    assert written == refused
    assert bench.ran == ["charge"]
    assert len(model.requests) == 2
    types = Counter(await kinds_of(store, run))
    assert types["attempt.started"] == types["tool.started"] == types["tool.completed"] == 1
    assert types["model.started"] == types["model.completed"] == 2
