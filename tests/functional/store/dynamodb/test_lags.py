"""What other processes see while indexes lag and commits are half visible (ST-7, R-26)."""

from collections.abc import Mapping

import pytest

from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import After, Change, HeaderChange, RunFilter
from psych_runtime.store.contract._build import (
    TENANT,
    Text,
    admission,
    change,
    claim,
    claimed,
    enlisted,
    new_id,
    sealed,
    unit,
    write,
)
from psych_runtime.store.dynamodb._client import DynamoClient
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked
from tests.functional.store.dynamodb.unruly import Trouble, UnrulyClient


class Laggards:
    """Two processes over one set of tables, whose indexes show nothing of the last hour."""

    def __init__(self, new_harness: NewHarness) -> None:
        self.trouble = Trouble({}, lag_seconds=0.0)
        self.harness = new_harness(self._wrap)
        self.other = self.harness.elsewhere(self._wrap)

    def _wrap(self, client: DynamoClient) -> DynamoClient:
        return UnrulyClient(client, self.trouble)

    def stand_still(self) -> None:
        """Let the indexes show what they show now, whatever is written."""
        self.trouble.stand_still()


async def test_st_7_what_an_index_shows_too_late_is_not_given(new_harness: NewHarness) -> None:
    """Claimed, settled, parked and handed-over Runs that an index shows as they were."""
    both = Laggards(new_harness)
    async with both.harness.open() as store, both.other.open() as other:
        worker = await enlisted(store)
        taken, ended, parked, kept = [await admission(store) for _ in range(4)]
        held = await claimed(store, worker)
        late = await admission(store, deadline_seconds=-1)
        both.stand_still()
        await write(store, claim(await store.header(TENANT, taken), worker))
        await write(store, unit(change(ended, 1, edit=HeaderChange(state="settled"))))
        await write(store, unit(change(parked, 1, edit=HeaderChange(wake_at=After(50)))))
        back = HeaderChange(state="ready", worker=None)
        await write(store, unit(change(held, 2, fence=1, edit=back)))
        await write(store, unit(change(late, 1, edit=HeaderChange(state="settled"))))
        assert {row.run_id for row in (await other.ready(9)).headers} == {kept}
        assert {row.run_id for row in (await store.ready(9)).headers} == {kept, held}
        assert await other.overdue(9) == []
        assert await other.held_by(worker) == []
        assert [row.run_id for row in await store.held_by(worker)] == [taken]
        listed = await other.list_runs(TENANT, filter=RunFilter(state="settled"))
        assert {row.run_id for row in listed.headers} == {ended, late}


async def test_st_7_a_process_finds_its_own_runs_before_the_index_does(
    new_harness: NewHarness,
) -> None:
    """Ready, overdue and listed, in order; another process finds them when the index does."""
    both = Laggards(new_harness)
    async with both.harness.open() as store, both.other.open() as other:
        old = [await admission(store) for _ in range(3)]
        both.stand_still()
        new = [await admission(store, deadline_seconds=-1) for _ in range(2)]
        wanted = list(reversed(old + new))
        page = await store.list_runs(TENANT, limit=3)
        rest = await store.list_runs(TENANT, limit=3, cursor=page.cursor)
        assert [row.run_id for row in page.headers + rest.headers] == wanted
        assert rest.cursor is None
        assert {row.run_id for row in (await store.ready(9)).headers} == set(wanted)
        assert {row.run_id for row in await store.overdue(9)} == set(new)
        seen = await other.list_runs(TENANT)
        assert [row.run_id for row in seen.headers] == list(reversed(old))
        both.trouble.go_on()
        seen = await other.list_runs(TENANT)
        assert [row.run_id for row in seen.headers] == wanted


async def test_r_5_a_worker_whose_runs_the_index_hides_is_not_forgotten(
    new_harness: NewHarness,
) -> None:
    """Its row goes, its name is kept: when the index shows its Run, somebody can take it."""
    both = Laggards(new_harness)
    async with both.harness.open() as store, both.other.open() as other:
        observer, worker = await enlisted(other), await enlisted(other)
        both.stand_still()
        run_id = await admission(store)
        await write(store, claim(await store.header(TENANT, run_id), worker))
        for _ in range(4):
            await both.other.advance(45)
            await other.renew(observer, lease_seconds=100.0, run_ids=())
        assert await other.bury(observer) == [worker]
        for _ in range(3):
            await other.sweep()
        assert (await other.ready(9)).headers == ()
        both.trouble.go_on()
        assert [row.run_id for row in (await other.ready(9)).headers] == [run_id]
        await both.other.advance(120)
        await other.sweep()
        assert [row.run_id for row in (await other.ready(9)).headers] == [run_id]
        (row,) = (await other.ready(9)).headers
        taken = HeaderChange(worker=observer, epoch=2)
        assert await other.commit(
            [unit(change(run_id, row.head, fence=row.epoch, edit=taken))]
        ) == [Committed()]


async def test_r_26_a_log_with_a_gap_is_read_again(new_harness: NewHarness) -> None:
    """A commit's header may be seen before its records, and one piece of it before another."""
    harness = new_harness()
    hides: list[int] = []

    async def hide(call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        items = answer["Items"]
        if str(arguments["TableName"]).endswith("log") and hides:
            assert isinstance(items, list)
            del items[hides.pop() % len(items)]
        return answer

    async with harness.open() as store:
        run_id = await admission(store)
        await write(store, unit(change(run_id, 1, count=2)))
        large = sealed(run_id, 4, text=Text("b" * 900_000, "c" * 900_000, "0" * 32))
        await write(store, unit(Change(run_id, 3, None, (large,), HeaderChange())))
        wanted = await store.read(TENANT, run_id)
        async with harness.elsewhere(hooked(query=hide)).open() as other:
            for hidden in ([0], [1], [2], [3], [-1], [1, 0, 4, -2]):
                hides[:] = hidden
                assert await other.read(TENANT, run_id) == wanted
                assert hides == []
            hides[:] = [0] * 1000
            patient = harness.elsewhere(hooked(query=hide))
            patient.options = patient.options._replace(patience_seconds=0.3)
            async with patient.open() as impatient:
                with pytest.raises(StoreUnavailable, match="Query"):
                    await impatient.read(TENANT, run_id, after=1)


async def test_r_15_a_run_of_a_worker_without_a_row_is_found_by_another_process(
    harness: DynamoHarness,
) -> None:
    """Its name is noted before it holds anything."""
    async with harness.open() as store, harness.elsewhere().open() as other:
        run_id = await claimed(store, new_id("wrk"))
        assert [row.run_id for row in (await other.ready(9)).headers] == [run_id]
