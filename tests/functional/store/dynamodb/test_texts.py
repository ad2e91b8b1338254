"""Texts that are longer than an item: whole, or not there (R-1, ST-7)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from botocore.exceptions import ReadTimeoutError

from psych_runtime.errors import CorruptRow, StoreDenied
from psych_runtime.store.contract._build import TENANT
from psych_runtime.store.dynamodb._client import DynamoClient, opener
from psych_runtime.store.dynamodb._wire import items_of, text, text_of
from psych_schema.dynamodb import version_key
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness
from tests.functional.store.dynamodb.probes import Answer, Call, hooked
from tests.functional.store.dynamodb.test_failures import answer as refusal

HASH: Final = "a" * 64
ONE: Final = "\U0001f9e0" * 200_000  # 800,000 bytes: three pieces, cut inside of letters
TWO: Final = "x" * 1_000_000
WHERE: Final = version_key(tenant=TENANT, hash=HASH)


class Writing:
    """Lets so many writes of a text through, and notes where they went."""

    def __init__(self, left: int = 100) -> None:
        self.left = left
        self.places: list[str] = []

    def wrap(self, client: DynamoClient) -> DynamoClient:
        return hooked(put_item=self._put)(client)

    async def _put(self, call: Call, arguments: Mapping[str, object]) -> Answer:
        item = arguments["Item"]
        assert isinstance(item, Mapping)
        if item["pk"]["S"] == WHERE["pk"]:
            if not self.left:
                raise refusal("AccessDeniedException")
            self.left -= 1
            self.places.append(str(item["sk"]["S"]))
        return await call(**arguments)


async def places_of(harness: DynamoHarness) -> list[str]:
    """Return what stands in the text's partition: a page of it has a megabyte."""
    places: list[str] = []
    more: dict[str, object] = {}
    async with await opener(harness.options)() as client:
        while True:
            found = await client.query(
                TableName=f"{harness.options.prefix}item",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": text(WHERE["pk"])},
                ConsistentRead=True,
                **more,
            )
            places += [text_of(item, "sk") for item in items_of(found["Items"])]
            if "LastEvaluatedKey" not in found:
                return places
            more = {"ExclusiveStartKey": found["LastEvaluatedKey"]}


@pytest.mark.parametrize("written", [0, 1, 2, 3])
async def test_r_1_a_long_text_is_there_with_all_its_pieces_or_not_at_all(
    new_harness: NewHarness, written: int
) -> None:
    """Whichever of its writes was the last that came through; kept again, it is whole."""
    writing = Writing(written)
    harness = new_harness(writing.wrap)
    async with harness.open() as store, harness.elsewhere().open() as reader:
        with pytest.raises(StoreDenied):
            await store.put_version(TENANT, HASH, ONE)
        assert "-" not in writing.places
        assert await reader.version(TENANT, HASH) is None
        writing.left = 100
        await store.put_version(TENANT, HASH, ONE)
        assert writing.places[-1] == "-"
        assert await reader.version(TENANT, HASH) == ONE
        assert len(await places_of(harness)) == 4


async def test_r_1_of_two_long_texts_with_one_hash_one_is_kept_whole(
    new_harness: NewHarness,
) -> None:
    """However their pieces come between each other, and nothing of the other one is left."""
    barrier = asyncio.Barrier(2)

    async def meet(call: Call, arguments: Mapping[str, object]) -> Answer:
        item = arguments["Item"]
        assert isinstance(item, Mapping)
        if (item["pk"]["S"], item["sk"]["S"]) == (WHERE["pk"], "-"):
            await barrier.wait()
        return await call(**arguments)

    harness = new_harness(hooked(put_item=meet))
    async with harness.open() as store:
        await asyncio.gather(*[store.put_version(TENANT, HASH, each) for each in (ONE, TWO)])
        assert await store.version(TENANT, HASH) in (ONE, TWO)
        assert len(await places_of(harness)) == 4


async def test_r_20_a_long_text_whose_answer_is_lost_stays(new_harness: NewHarness) -> None:
    """The item that is found there is its own, which names its pieces."""
    lost: list[str] = []

    async def lose(call: Call, arguments: Mapping[str, object]) -> Answer:
        answer = await call(**arguments)
        item = arguments["Item"]
        assert isinstance(item, Mapping)
        place = str(item["sk"]["S"])
        if item["pk"]["S"] == WHERE["pk"] and place not in lost:
            lost.append(place)
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    harness = new_harness(hooked(put_item=lose))
    async with harness.open() as store:
        await store.put_version(TENANT, HASH, ONE)
        assert len(lost) == 4
        assert await store.version(TENANT, HASH) == ONE


async def test_st_7_a_long_text_is_read_consistently(new_harness: NewHarness) -> None:
    """The item that names the pieces, and each of them."""
    asked: list[bool] = []

    async def get(call: Call, arguments: Mapping[str, object]) -> Answer:
        asked.append(arguments["ConsistentRead"] is True)
        return await call(**arguments)

    async def batch(call: Call, arguments: Mapping[str, object]) -> Answer:
        tables = arguments["RequestItems"]
        assert isinstance(tables, Mapping)
        asked.extend(request["ConsistentRead"] is True for request in tables.values())
        return await call(**arguments)

    async with new_harness(hooked(get_item=get, batch_get_item=batch)).open() as store:
        await store.put_version(TENANT, HASH, ONE)
        asked.clear()
        assert await store.version(TENANT, HASH) == ONE
        assert asked == [True, True]


@pytest.mark.parametrize("what", ["a piece", "the text"])
async def test_log_1_a_text_that_no_build_writes_is_named(
    harness: DynamoHarness, what: str
) -> None:
    """Nothing deletes a piece, and no item is without a text: whoever did is told which one."""
    async with harness.open() as store, await opener(harness.options)() as client:
        await store.put_version(TENANT, HASH, ONE)
        places: Sequence[str] = await places_of(harness)
        place = places[1] if what == "a piece" else "-"
        table = f"{harness.options.prefix}item"
        where = {"pk": text(WHERE["pk"]), "sk": text(place)}
        await client.delete_item(TableName=table, Key=where)
        if what == "the text":
            await client.put_item(TableName=table, Item=where)
        with pytest.raises(CorruptRow, match="missing") as caught:
            await store.version(TENANT, HASH)
        assert (caught.value.table, caught.value.key) == ("version", HASH)
