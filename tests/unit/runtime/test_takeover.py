"""Settling a Run that one does not hold: one unit, at the head and epoch that were judged (R-4)."""

from collections.abc import Sequence

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Unit
from psych_runtime.runtime.takeover import Claim, End, claim_unit, take_and_settle
from psych_runtime.store.memory import MemoryStore
from psych_schema.store import RecordRow, RunRow
from tests.unit.runtime.made import SYSTEM, TENANT, Made, advisory, held, steer, types_of, write

TIMED_OUT = End("timed_out", "timed_out")


class Racing(MemoryStore):
    """A store in which somebody else comes before a commit, or whose answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[Unit] = []
        self.lose_after = 0

    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        while self.first:
            assert await super().commit([self.first.pop()]) == [Committed()]
        answers = await super().commit(units)
        if self.lose_after:
            self.lose_after -= 1
            raise StoreUnavailable(problem="the answer was lost")
        return answers


async def settle(made: Made, judged: RunRow) -> bool:
    """Settle as a supervisor does that has read `judged`."""
    return await take_and_settle(
        made.store,
        judged,
        TIMED_OUT,
        worker=SYSTEM.new_id("wrk"),
        crashes=judged.crashes,
        system=SYSTEM,
    )


async def test_r_4_run_is_settled_in_one_unit() -> None:
    """Taken and settled at once: nobody holds it in between."""
    made = await held()
    assert await settle(made, await made.store.header(TENANT, made.run))

    assert (await types_of(made))[2:] == ["attempt.started", "run.settled"]
    rows = await made.store.read(TENANT, made.run, after=2)
    assert len({row.body.split('"commit":"')[1][:30] for row in rows}) == 1
    header = await made.store.header(TENANT, made.run)
    assert (header.state, header.worker, header.epoch) == ("settled", None, 2)


async def test_r_4_run_that_was_claimed_since_is_left_alone() -> None:
    """The fence is the epoch that was judged, never one read later."""
    made = await held()
    judged = await made.store.header(TENANT, made.run)
    claim = Claim(SYSTEM.new_id("wrk"), "reclaimed", 1)
    await made.store.commit([claim_unit(judged, claim, system=SYSTEM)])
    before = await made.store.header(TENANT, made.run)

    assert not await settle(made, judged)
    assert await made.store.header(TENANT, made.run) == before


async def test_r_4_run_that_is_claimed_meanwhile_is_left_alone() -> None:
    """The claim comes between its reading and its commit: the store refuses the fence."""
    store = Racing()
    made = await held(store)
    judged = await store.header(TENANT, made.run)
    claim = Claim(SYSTEM.new_id("wrk"), "reclaimed", 1)
    store.first.append(claim_unit(judged, claim, system=SYSTEM))

    assert not await settle(made, judged)
    assert (await types_of(made))[2:] == ["attempt.started"]


async def test_r_4_messages_that_overtake_are_folded_first() -> None:
    """An outside record does not take the Run: it is read, and listed as unconsumed."""
    store = Racing()
    made = await held(store)
    judged = await store.header(TENANT, made.run)
    await write(made, steer(made.run))

    assert await settle(made, judged)
    kinds = await types_of(made)
    assert kinds[2:] == ["queue.enqueued", "attempt.started", "run.settled"]
    [settled] = await store.read(TENANT, made.run, after=4)
    assert '"unconsumed":["ent_' in settled.body


async def test_r_20_settlement_whose_answer_was_lost_is_not_made_twice() -> None:
    """Its repetition is refused, and recognised."""
    store = Racing()
    made = await held(store)
    store.lose_after = 1

    assert await settle(made, await store.header(TENANT, made.run))
    assert (await types_of(made)).count("run.settled") == 1


async def test_r_4_settled_run_is_left_alone() -> None:
    """Whoever comes second writes nothing."""
    made = await held()
    judged = await made.store.header(TENANT, made.run)
    assert await settle(made, judged)
    before = await made.store.header(TENANT, made.run)

    assert not await settle(made, judged)
    assert not await settle(made, before)
    assert await made.store.header(TENANT, made.run) == before


async def test_log_3_corrupt_run_is_marked_and_not_settled() -> None:
    """No record is added to a log that cannot be."""
    made = await held()
    await write(made, advisory(made.run), epoch=5)

    assert not await settle(made, await made.store.header(TENANT, made.run))
    header = await made.store.header(TENANT, made.run)
    assert (header.state, header.head, header.worker) == ("corrupt", 3, None)


class Short(MemoryStore):
    """A store that has lost the end of its logs."""

    kept = 0

    async def read(
        self, tenant: str, run_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[RecordRow]:
        rows = await super().read(tenant, run_id, after=after, limit=limit)
        return rows[: max(0, self.kept - after)]


@pytest.mark.parametrize("kept", [0, 1, 3])
async def test_log_3_run_whose_log_is_shorter_than_its_header_says_is_corrupt(kept: int) -> None:
    """Nothing is written behind a gap."""
    store = Short()
    store.kept = 99
    made = await held(store)
    await write(made, steer(made.run), steer(made.run))
    store.kept = kept
    judged = await store.header(TENANT, made.run)
    assert not await settle(made, judged)

    header = await store.header(TENANT, made.run)
    assert (header.state, header.head) == ("corrupt", judged.head)
