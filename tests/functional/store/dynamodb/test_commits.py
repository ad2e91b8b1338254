"""Commits where DynamoDB is unlike a database: bounds, lost answers, headers known from before."""

from collections.abc import Mapping

import pytest
from botocore.exceptions import ReadTimeoutError

from psych_runtime.errors import InvalidArgument, PayloadTooLarge
from psych_runtime.ports.answers import Committed, KeyTaken, LeaseLost, RunNotFound, SeqConflict
from psych_runtime.ports.store import Change, HeaderChange, Store
from psych_runtime.store.contract._build import (
    TENANT,
    Text,
    admission,
    admit,
    change,
    claim,
    key_row,
    named,
    sealed,
    unit,
    write,
)
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, Counting, hooked


@pytest.mark.parametrize("token_is_known", [True, False])
async def test_r_20_a_commit_whose_answer_was_lost_is_committed(
    new_harness: NewHarness, token_is_known: bool
) -> None:
    """By its token within ten minutes; without one the own commit id is found in the log."""
    lost: list[str] = []

    async def lose_first(call: Call, arguments: Mapping[str, object]) -> Answer:
        token = str(arguments["ClientRequestToken"])
        if lost and not token_is_known:
            return await call(**{**arguments, "ClientRequestToken": token[::-1]})
        answer = await call(**arguments)
        if not lost:
            lost.append(token)
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    harness = new_harness()
    async with harness.open() as store:
        run_id = await admission(store)
        faulty = harness.elsewhere(hooked(transact_write_items=lose_first))
        async with faulty.open() as lossy:
            sent = named(unit(change(run_id, 1, count=2), keys=[key_row("k", run_id=run_id)]))
            assert await lossy.commit([sent]) == [Committed()]
            assert lost
            assert await lossy.commit([unit(change(run_id, 3))]) == [Committed()]
        assert [row.seq for row in await store.read(TENANT, run_id)] == [1, 2, 3, 4]
        assert await store.commit([sent]) == [SeqConflict(run_id)]


async def test_r_20_a_commit_that_was_lost_and_overtaken_is_refused(
    new_harness: NewHarness,
) -> None:
    """The other's commit stands at the place: its id is not ours."""
    harness = new_harness()
    async with harness.open() as store:
        run_id = await admission(store)
        tries: list[str] = []

        async def overtake(call: Call, arguments: Mapping[str, object]) -> Answer:
            if not tries:
                tries.append("lost")
                await write(store, named(unit(change(run_id, 1))))
                raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
            return await call(**arguments)

        async with harness.elsewhere(hooked(transact_write_items=overtake)).open() as lossy:
            sent = named(unit(change(run_id, 1)))
            assert await lossy.commit([sent]) == [SeqConflict(run_id)]
        assert [row.seq for row in await store.read(TENANT, run_id)] == [1, 2]


async def test_r_1_a_header_that_another_process_changed_is_judged_as_it_is(
    harness: DynamoHarness,
) -> None:
    """What this process knows of a Run is old: nothing is refused or overwritten by that."""
    async with harness.open() as store, harness.elsewhere().open() as other:
        run_id = await admission(store)
        await write(other, unit(change(run_id, 1, edit=HeaderChange(opened={"wait_1": 2}))))
        await write(store, unit(change(run_id, 2, edit=HeaderChange(opened={"wait_2": 3}))))
        await write(other, unit(change(run_id, 3, edit=HeaderChange(referenced=True), count=0)))
        await write(store, unit(change(run_id, 3, edit=HeaderChange(closed=("wait_1",)))))
        await write(other, claim(await other.header(TENANT, run_id), "wrk_2"))
        assert await store.commit([unit(change(run_id, 5, fence=0))]) == [LeaseLost(run_id)]
        assert await store.commit([unit(change(run_id, 4))]) == [SeqConflict(run_id)]
        row = await store.header(TENANT, run_id)
        assert (row.head, row.epoch, row.worker) == (5, 1, "wrk_2")
        assert (dict(row.open), row.referenced) == ({"wait_2": 3}, True)
        assert await other.delete_runs(TENANT, [await other.header(TENANT, run_id)])
        assert await store.commit([unit(change(run_id, 5))]) == [RunNotFound(run_id)]


async def test_r_1_a_run_that_this_process_knows_costs_one_request(new_harness: NewHarness) -> None:
    """Neither a read before the transaction nor one behind it."""
    counting = Counting()
    harness = new_harness(counting.wrap)
    async with harness.open() as store:
        run_id = await admission(store)
        counting.calls.clear()
        for head in range(1, 11):
            await write(store, unit(change(run_id, head)))
        assert counting.calls == {"transact_write_items": 10}


async def test_r_1_units_of_one_call_go_side_by_side_but_not_those_of_one_run(
    new_harness: NewHarness,
) -> None:
    """Eight Runs are written at one time; two units of one Run never are."""
    underway: set[str] = set()
    most = 0

    async def watch(call: Call, arguments: Mapping[str, object]) -> Answer:
        nonlocal most
        token = str(arguments["ClientRequestToken"])
        underway.add(token)
        most = max(most, len(underway))
        answer = await call(**arguments)
        underway.remove(token)
        return answer

    harness = new_harness(hooked(transact_write_items=watch))
    async with harness.open() as store:
        runs = [await admission(store) for _ in range(8)]
        await write(store, *[unit(change(run_id, 1)) for run_id in runs])
        assert 1 < most <= 8
        most = 0
        await write(store, *[unit(change(runs[0], head)) for head in range(2, 6)])
        assert most == 1


def _texts(bytes_each: int, count: int, run_id: str) -> Change:
    records = tuple(
        sealed(run_id, seq, text=Text("b" * bytes_each, None, None)) for seq in range(2, 2 + count)
    )
    return Change(run_id, 1, None, records, HeaderChange())


async def test_log_5_a_unit_of_three_megabytes_is_kept(store: Store) -> None:
    """In one record or in ninety; each log item is below DynamoDB's bound."""
    for count in (1, 90):
        run_id = await admission(store)
        await write(store, unit(_texts(3_000_000 // count, count, run_id)))
        rows = await store.read(TENANT, run_id, after=1)
        assert [len(row.body) for row in rows] == [3_000_000 // count] * count
        assert [row.seq for row in await store.read(TENANT, run_id, after=1, limit=1)] == [2]


async def test_log_5_a_unit_that_no_transaction_takes_is_refused(store: Store) -> None:
    """Before anything is written, also by its neighbours."""
    run_id, other = await admission(store), await admission(store)
    with pytest.raises(PayloadTooLarge) as caught:
        await store.commit([unit(change(other, 1)), unit(_texts(4_100_000, 1, run_id))])
    assert caught.value.bound_bytes == 4_000_000
    with pytest.raises(InvalidArgument, match="writes 102 items"):
        await store.commit([unit(*[admit() for _ in range(34)])])
    assert (await store.header(TENANT, other)).head == 1
    await write(store, unit(*[admit() for _ in range(33)]))


async def test_r_13_a_header_names_128_open_objects(store: Store) -> None:
    """With names as long as ids are."""
    run_id = await admission(store)
    opened = {f"wait_{number:026}": number for number in range(128)}
    await write(store, unit(change(run_id, 1, edit=HeaderChange(opened=opened))))
    assert dict((await store.header(TENANT, run_id)).open) == opened


async def test_adm_2_names_with_separators_do_not_meet(store: Store) -> None:
    """`a#b` with `c` is not `a` with `b#c`, and an escape is not what it stands for."""
    tenants = ["a", "a#b", "a%23b", "a%2523b", "a b", "#", "%", "\U0001f9e0"]
    for tenant in tenants:
        for key in ("k", "b#k", "#", "%23", " ", "\x01"):
            row = key_row(key, tenant=tenant, digest=f"{tenant} {key}")
            place = {"thread": f"{key}#1", "position": 2}
            await write(store, unit(admit(tenant=tenant, columns=place), tenant=tenant, keys=[row]))
            assert await store.key(tenant, "", key) == row
            tail = await store.tail(tenant, f"{key}#1")
            assert tail is not None
            assert (tail.tenant, tail.thread) == (tenant, f"{key}#1")
    found = await store.ready(100)
    assert sorted({row.tenant for row in found.headers}) == sorted(tenants)
    assert len(found.headers) == 48


async def test_adm_2_a_key_that_does_not_fit_is_refused(store: Store) -> None:
    """By its name and the bound, never cut; the longest that the rows allow are kept."""
    tenant, long = "\U0001f9e0" * 128, "\U0001f9e0" * 256
    row = key_row(long, tenant=tenant)
    await write(store, unit(admit(tenant=tenant), tenant=tenant, keys=[row]))
    assert await store.key(tenant, "", long) == row
    assert [found.tenant for found in (await store.ready(1)).headers] == [tenant]
    with pytest.raises(PayloadTooLarge, match="key pk") as caught:
        await store.key(TENANT, "", "k" * 2041)
    assert caught.value.bound_bytes == 2048
    with pytest.raises(PayloadTooLarge, match="key pk"):
        await store.commit([unit(admit(columns={"thread": "t" * 2041}))])


async def test_r_1_a_key_in_two_processes_is_taken_once(harness: DynamoHarness) -> None:
    """The loser learns the winner's digest and receipt."""
    async with harness.open() as store, harness.elsewhere().open() as other:
        first = key_row("k", digest="one", receipt="r")
        await write(store, unit(admit(), keys=[first]))
        answers = await other.commit([unit(admit(), keys=[key_row("k", digest="two")])])
        assert answers == [KeyTaken("k", "one", "r")]


async def test_r_15_a_cap_is_exact_between_processes(harness: DynamoHarness) -> None:
    """Room that one process gives back is the other's; a limit that rises counts at once."""
    async with harness.open() as store, harness.elsewhere().open() as other:
        await store.set_cap(TENANT, 1)
        one, two = [await admission(store) for _ in range(2)]
        await write(store, claim(await store.header(TENANT, one), "wrk_1"))
        full = claim(await other.header(TENANT, two), "wrk_2")
        assert [type(each).__name__ for each in await other.commit([full])] == ["CapReached"]
        await write(store, unit(change(one, 2, fence=1, edit=HeaderChange(state="settled"))))
        assert await other.commit([full]) == [Committed()]
        row = await store.cap(TENANT)
        assert row is not None
        assert (row.running, row.limit) == (1, 1)
