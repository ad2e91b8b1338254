"""Small values in DynamoDB: answers that are lost, lists of many pages, items of nobody's."""

from collections.abc import Awaitable, Callable, Mapping

import pytest
from botocore.exceptions import ReadTimeoutError

from psych_runtime.errors import CorruptRow, StoreUnavailable
from psych_runtime.ports.store import MAX_VALUE_BYTES, Store
from psych_runtime.store.contract._build import TENANT
from psych_runtime.store.dynamodb._client import DynamoClient, opener
from psych_runtime.store.dynamodb._names import key_of, value_key
from psych_schema.store import KvRow
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.unruly import Trouble, UnrulyClient

KIND = "test"


class Losses:
    """Whether the next write is answered, and what happens before it is sent again."""

    def __init__(self) -> None:
        self.next = False
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def lose(self) -> None:
        """Lose this answer, if it is to be lost."""
        if self.next:
            self.next = False
            if self.meanwhile is not None:
                await self.meanwhile()
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")


class LossyClient(UnrulyClient):
    """Does a write, and may lose its answer."""

    def __init__(self, inner: DynamoClient, losses: Losses) -> None:
        super().__init__(inner, Trouble({}), lags=False)
        self._losses = losses

    async def put_item(self, **arguments: object) -> Mapping[str, object]:
        answer = await super().put_item(**arguments)
        await self._losses.lose()
        return answer

    async def delete_item(self, **arguments: object) -> Mapping[str, object]:
        answer = await super().delete_item(**arguments)
        await self._losses.lose()
        return answer


async def _put(store: Store, key: str, value: str, expect: int | None = None) -> KvRow:
    row = await store.put_value(TENANT, KIND, key, value, expect=expect)
    assert row is not None
    return row


async def test_r_20_a_put_that_is_sent_again_knows_itself(new_harness: NewHarness) -> None:
    """A new row and a changed one; it was written once."""
    losses = Losses()
    async with new_harness(lambda client: LossyClient(client, losses)).open() as store:
        expect: int | None = None
        for value in ("one", "two"):
            losses.next = True
            row = await _put(store, "k", value, expect)
            assert not losses.next
            assert expect is None or row.revision == expect + 1
            assert await store.value(TENANT, KIND, "k") == row
            expect = row.revision


async def test_r_20_a_put_that_was_written_over_is_in_doubt(new_harness: NewHarness) -> None:
    """Neither "somebody was first" nor "it stands" would be true."""
    losses = Losses()
    async with new_harness(lambda client: LossyClient(client, losses)).open() as store:
        one = await _put(store, "k", "one")

        async def overwrites() -> None:
            await _put(store, "k", "three", one.revision + 1)

        losses.next, losses.meanwhile = True, overwrites
        with pytest.raises(StoreUnavailable, match="not known"):
            await store.put_value(TENANT, KIND, "k", "two", expect=one.revision)
        now = await store.value(TENANT, KIND, "k")
        assert now is not None
        assert (now.value, now.revision) == ("three", one.revision + 2)


async def test_r_20_a_delete_without_an_answer_is_in_doubt(new_harness: NewHarness) -> None:
    """It is gone, and nobody can tell whether another call has taken it."""
    losses = Losses()
    async with new_harness(lambda client: LossyClient(client, losses)).open() as store:
        row = await _put(store, "k", "one")
        losses.next = True
        with pytest.raises(StoreUnavailable, match="not known"):
            await store.delete_value(TENANT, KIND, "k", expect=row.revision)
        assert await store.value(TENANT, KIND, "k") is None
        assert not await store.delete_value(TENANT, KIND, "k", expect=row.revision)


async def test_st_3_a_list_goes_on_where_a_page_is_full(harness: DynamoHarness) -> None:
    """DynamoDB gives a megabyte at once, which is four of the largest values."""
    async with harness.open() as store:
        rows = [await _put(store, f"k{n:02}", f"{n}" * (MAX_VALUE_BYTES // 2)) for n in range(12)]
        await _put(store, "l", "other")
        assert await store.list_values(TENANT, KIND, prefix="k") == rows
        assert await store.list_values(TENANT, KIND, after="k02", limit=9) == rows[3:]
        assert await store.list_values(TENANT, KIND, prefix="k", after="k02", limit=7) == rows[3:10]


async def test_log_1_a_value_that_no_build_writes_is_named(harness: DynamoHarness) -> None:
    """With its key, whichever way it is read."""
    async with harness.open() as store, await opener(harness.options)() as client:
        await _put(store, "k", "one")
        await client.update_item(
            TableName=f"{harness.options.prefix}item",
            Key=key_of(value_key(tenant=TENANT, kind=KIND, key="k")),
            UpdateExpression="SET revision = :v",
            ExpressionAttributeValues={":v": {"S": "first"}},
        )
        for read in (store.value(TENANT, KIND, "k"), store.list_values(TENANT, KIND)):
            with pytest.raises(CorruptRow, match="revision") as caught:
                await read
            assert (caught.value.table, caught.value.key) == ("kv", "k")
