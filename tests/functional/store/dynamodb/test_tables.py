"""The tables: made once, on demand, and refused when they are not ours (ST-4)."""

import asyncio
import json

import pytest

from psych_runtime.errors import SchemaMissing, UnsupportedStore
from psych_runtime.store.contract._build import TENANT, admission
from psych_runtime.store.dynamodb._client import DynamoClient, DynamoOptions, opener
from psych_runtime.store.dynamodb._ledger import ddl
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.functional.store.dynamodb.harness import DynamoHarness, NewHarness, drop_table


async def test_st_4_a_store_without_tables_says_so(harness: DynamoHarness) -> None:
    """It opens, and each call says what to run."""
    async with DynamoStore(harness.options, harness.system) as store:
        with pytest.raises(SchemaMissing, match="migrate"):
            await store.workers()
        with pytest.raises(SchemaMissing):
            await store.commit([])
        await store.migrate()
        assert await store.workers() == []


async def test_st_4_three_processes_make_the_tables_at_once(new_harness: NewHarness) -> None:
    """Each finds them finished, with one number of shards."""
    harness = new_harness()
    stores = [DynamoStore(harness.options._replace(shards=n)) for n in (4, 8, 16)]
    await asyncio.gather(*[store.migrate() for store in stores])
    run_id = await admission(stores[0])
    for store in stores:
        found = await store.ready(9)
        assert [row.run_id for row in found.headers] == [run_id]
        await store.close()


async def test_st_4_a_missing_index_and_the_expiry_are_made_later(
    harness: DynamoHarness, endpoint_url: str
) -> None:
    """A table that was made by hand without them becomes whole."""
    name = f"{harness.options.prefix}run"
    async with await opener(harness.options)() as client:
        made = json.loads(ddl(harness.options.prefix))[0]["CreateTable"]
        indexes = made["GlobalSecondaryIndexes"]
        kept = [index for index in indexes if index["IndexName"] in ("claim", "list")]
        named = {key["AttributeName"] for index in kept for key in index["KeySchema"]} | {"pk"}
        types = [each for each in made["AttributeDefinitions"] if each["AttributeName"] in named]
        await client.create_table(
            **{**made, "GlobalSecondaryIndexes": kept, "AttributeDefinitions": types}
        )
        async with harness.open() as store:
            await admission(store)
            assert await store.overdue(1) == []
        assert await _index_names(client, name) == {"claim", "due", "list", "root", "worker"}
        item = f"{harness.options.prefix}item"
        told = await client.describe_time_to_live(TableName=item)
        assert told["TimeToLiveDescription"] == {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": "purge_at",
        }


async def _index_names(client: DynamoClient, table: str) -> set[str]:
    described = await client.describe_table(TableName=table)
    found = described["Table"]
    assert isinstance(found, dict)
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    return {index["IndexName"] for index in found["GlobalSecondaryIndexes"]}


async def test_st_3_tables_of_another_layout_are_refused(harness: DynamoHarness) -> None:
    """A later layout, by its number; somebody else's table, by its keys."""
    item = f"{harness.options.prefix}item"
    async with harness.open() as store, await opener(harness.options)() as client:
        await store.migrate()
        where = {"pk": {"S": "meta"}, "sk": {"S": "-"}}
        await client.put_item(
            TableName=item, Item={**where, "layout": {"N": "2"}, "shards": {"N": "4"}}
        )
        later = DynamoStore(harness.options)
        with pytest.raises(UnsupportedStore, match="has layout 2"):
            await later.migrate()
        with pytest.raises(UnsupportedStore, match="has layout 2"):
            await later.header(TENANT, "run_1")
        await later.close()
        await drop_table(client, item)
        await client.create_table(
            TableName=item,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )
        foreign = DynamoStore(harness.options)
        with pytest.raises(UnsupportedStore, match="other keys"):
            await foreign.migrate()
        with pytest.raises(UnsupportedStore, match="other keys"):
            await foreign.workers()
        await foreign.close()


def test_st_3_a_number_of_shards_that_keys_cannot_have_is_refused() -> None:
    """One, or four for each group of tenants."""
    for shards in (0, 2, 6, 68, -4):
        with pytest.raises(UnsupportedStore, match=f"shards={shards}"):
            DynamoStore(DynamoOptions(shards=shards))


def test_st_4_the_ddl_is_what_infrastructure_code_needs() -> None:
    """Three CreateTable requests under the prefix, one with an expiry."""
    made = json.loads(ddl("psych_"))
    assert [each["CreateTable"]["TableName"] for each in made] == [
        "psych_run",
        "psych_log",
        "psych_item",
    ]
    assert {each["CreateTable"]["BillingMode"] for each in made} == {"PAY_PER_REQUEST"}
    assert [each.get("TimeToLiveSpecification") for each in made] == [
        None,
        None,
        {"AttributeName": "purge_at", "Enabled": True},
    ]
