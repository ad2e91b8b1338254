"""Taking contents off and deleting Runs, where both need more than one transaction holds."""

from collections.abc import Mapping

import pytest
from botocore.exceptions import ReadTimeoutError

from psych_runtime.errors import RunNotFound, StoreUnavailable
from psych_runtime.ports.answers import Committed, KeyTaken
from psych_runtime.ports.store import Change, HeaderChange, Store
from psych_runtime.store.contract._build import (
    TENANT,
    Text,
    admission,
    admit,
    change,
    key_row,
    sealed,
    unit,
    write,
)
from psych_runtime.store.dynamodb._client import opener
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked


async def _large(store: Store, *, count: int, size: int) -> str:
    run_id = await admission(store)
    records = tuple(
        sealed(run_id, seq, text=Text("b" * size, "c" * size, "0" * 32))
        for seq in range(2, 2 + count)
    )
    await write(store, unit(Change(run_id, 1, None, records, HeaderChange())))
    return run_id


async def test_r_11_contents_of_a_large_commit_are_taken_off_in_steps(store: Store) -> None:
    """A record after the other, whatever items they are in; bodies stay as they are."""
    run_id = await _large(store, count=3, size=450_000)
    before = await store.read(TENANT, run_id)
    for left in (2, 1, 0):
        assert await store.blank(TENANT, run_id, limit=1) == (left == 0)
        rows = await store.read(TENANT, run_id)
        assert [row.body for row in rows] == [row.body for row in before]
        assert [row.content is None for row in rows[1:]] == [True] * (3 - left) + [False] * left
        assert [row.salt for row in rows[1:]] == [None] * (3 - left) + ["0" * 32] * left
    assert await store.blank(TENANT, run_id)


async def _items(harness: DynamoHarness) -> dict[str, int]:
    """Return how many items each table has, without those that are about no Run."""
    found: dict[str, int] = {}
    async with await opener(harness.options)() as client:
        for name in ("run", "log", "item"):
            scan = getattr(client, "scan")  # noqa: B009
            items = (await scan(TableName=f"{harness.options.prefix}{name}"))["Items"]
            kept = [item for item in items if item["pk"]["S"].partition("#")[0] not in _KEPT]
            found[name] = len(kept)
    return found


_KEPT = ("meta", "months", "holder", "worker")


async def test_st_6_nothing_of_ninety_deleted_runs_is_left(harness: DynamoHarness) -> None:
    """Headers, records, places and keys: more than one transaction holds."""
    async with harness.open() as store:
        admits = [admit() for _ in range(90)]
        names = [f"k{place}" for place in range(90)]
        for made, name in zip(admits, names, strict=True):
            await write(store, unit(made, keys=[key_row(name)]))
        for made in admits[:5]:
            keys = [key_row("own", run_id=made.run_id), key_row("x", run_id=admits[7].run_id)]
            await write(store, unit(change(made.run_id, 1), keys=keys[: 1 + (made is admits[0])]))
        kept = await _large(store, count=1, size=10)
        headers = [await store.header(TENANT, made.run_id) for made in admits]
        assert await store.delete_runs(TENANT, headers, names)
        assert await _items(harness) == {"run": 1, "log": 2, "item": 1}
        assert await store.delete_runs(TENANT, headers, names) is False
        assert (await store.list_runs(TENANT)).headers == (await store.header(TENANT, kept),)


async def test_st_6_what_a_deletion_leaves_is_in_nobodys_way_and_is_swept(
    new_harness: NewHarness,
) -> None:
    """The process ends behind the transaction: the Runs are gone, the next sweep does the rest."""

    async def fail(call: Call, arguments: Mapping[str, object]) -> Answer:
        raise ReadTimeoutError(endpoint_url="http://127.0.0.1")

    harness = new_harness()
    dying = harness.elsewhere(hooked(batch_write_item=fail, delete_item=fail))
    dying.options = dying.options._replace(patience_seconds=0.3)
    async with harness.open() as store, dying.open() as other:
        place = {"thread": "line", "position": 1}
        made = [admit(columns=place), *[admit() for _ in range(60)]]
        await write(store, unit(made[0], keys=[key_row("first")]))
        await write(store, *[unit(each) for each in made[1:]])
        headers = [await store.header(TENANT, each.run_id) for each in made]
        with pytest.raises(StoreUnavailable):
            await other.delete_runs(TENANT, headers, ["first"])
        with pytest.raises(RunNotFound):
            await store.read(TENANT, made[0].run_id)
        assert await store.tail(TENANT, "line") is None
        assert (await store.ready(9)).headers == ()
        await write(store, unit(admit(columns=place)))
        again = unit(admit(), keys=[key_row("first", digest="d2")])
        assert await store.commit([again]) == [KeyTaken("first", "d", "{}")]
        assert (await _items(harness))["log"] == 62
        await store.sweep()
        assert await _items(harness) == {"run": 1, "log": 1, "item": 1}
        assert await store.commit([again]) == [Committed()]
        tail = await store.tail(TENANT, "line")
        assert tail is not None
