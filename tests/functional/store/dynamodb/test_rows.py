"""Items that no build writes, URLs, and a library that is missing."""

import sys

import pytest

from psych_runtime.errors import CorruptRow, MissingExtra, UnsupportedStore
from psych_runtime.store.contract._build import (
    START,
    TENANT,
    admission,
    key_row,
    sealed,
    unit,
    write,
)
from psych_runtime.store.contract._build import admit as admit_unit
from psych_runtime.store.dynamodb._client import DynamoOptions, opener
from psych_runtime.store.dynamodb._items import where_run
from psych_runtime.store.dynamodb._pieces import Entry, decode, encode, grouped, is_whole
from psych_runtime.store.dynamodb._url import options_of
from psych_runtime.store.dynamodb._wire import size_of
from psych_runtime.store.dynamodb.store import DynamoStore
from psych_schema.store import RecordRow
from tests.functional.store.dynamodb.harness import DynamoHarness


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("state", {"S": "asleep"}, "state"),
        ("head", {"S": "1"}, "head"),
        ("created_at", {"S": "yesterday"}, "instant"),
        ("open", {"S": "[["}, "Expecting"),
        ("referenced", {"S": "no"}, "referenced"),
    ],
)
async def test_log_1_a_header_that_no_build_writes_is_named(
    harness: DynamoHarness, column: str, value: dict[str, str], told: str
) -> None:
    """Which Run it is, what is wrong, and where a list goes on behind it."""
    async with harness.open() as store, await opener(harness.options)() as client:
        run_id = await admission(store)
        await client.update_item(
            TableName=f"{harness.options.prefix}run",
            Key=where_run(run_id),
            UpdateExpression="SET #c = :v",
            ExpressionAttributeNames={"#c": column},
            ExpressionAttributeValues={":v": value},
        )
        with pytest.raises(CorruptRow, match=told) as caught:
            await store.header(TENANT, run_id)
        assert (caught.value.table, caught.value.key) == ("run", run_id)
        with pytest.raises(CorruptRow) as caught:
            await store.list_runs(TENANT)
        if column != "created_at":
            assert caught.value.cursor is not None
            assert (await store.list_runs(TENANT, cursor=caught.value.cursor)).headers == ()


async def test_log_1_records_that_no_build_writes_are_named(harness: DynamoHarness) -> None:
    """A log item whose lengths are not those of its texts; a key without a digest."""
    async with harness.open() as store, await opener(harness.options)() as client:
        run_id = await admission(store)
        await write(store, unit(admit_unit(), keys=[key_row("k")]))
        await client.update_item(
            TableName=f"{harness.options.prefix}log",
            Key={**where_run(run_id), "sk": {"S": f"{1:012}"}},
            UpdateExpression="SET body = :v",
            ExpressionAttributeValues={":v": {"B": b"{}"}},
        )
        with pytest.raises(CorruptRow, match="cut short") as caught:
            await store.read(TENANT, run_id)
        assert caught.value.table == "record"
        await client.put_item(
            TableName=f"{harness.options.prefix}item",
            Item={"pk": {"S": f"key#{TENANT}##k"}, "sk": {"S": "-"}, "key": {"S": "k"}},
        )
        with pytest.raises(CorruptRow, match="missing") as caught:
            await store.key(TENANT, "", "k")
        assert (caught.value.table, caught.value.key) == ("key", "k")


def _rows(sizes: list[tuple[int, int | None]]) -> list[RecordRow]:
    made = [sealed(f"run_{1:026}", seq).row for seq in range(7, 7 + len(sizes))]
    return [
        row.model_copy(
            update={
                "body": "\U0001f9e0" * body,
                "content": None if content is None else "c" * content,
                "salt": None if content is None else "0" * 32,
            }
        )
        for row, (body, content) in zip(made, sizes, strict=True)
    ]


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([(0, 0)], 1),
        ([(10, None)] * 90, 1),
        ([(90_000, 10_000)], 1),
        ([(95_000, 0)], 2),
        ([(95_000, 380_000)], 3),
        ([(1, None), (300_000, 5), (0, 700_000), (7, 7)], 6),
    ],
)
def test_log_5_a_commit_is_cut_where_items_are_full(
    sizes: list[tuple[int, int | None]], count: int
) -> None:
    """Also within a letter of several bytes; put together it is what it was."""
    rows = _rows(sizes)
    items = encode(rows, Entry("com_1", [("run_1", "k")]))
    assert len(items) == count
    assert all(size_of(item) < 400_000 for item in items)
    (pieces,) = grouped(items)
    assert is_whole(pieces)
    assert not is_whole(pieces[1:] or [{**pieces[0], "parts": {"N": "2"}}])
    assert decode(rows[0].run_id, pieces) == rows


def test_st_3_a_url_names_region_endpoint_and_shards() -> None:
    """Nothing of it is a credential."""
    assert options_of("dynamodb://eu-west-1", "p_") == DynamoOptions(
        region="eu-west-1", prefix="p_"
    )
    assert options_of("dynamodb://", "") == DynamoOptions()
    url = "dynamodb://us-east-1?endpoint_url=http://127.0.0.1:8000&shards=64&patience_seconds=1.5"
    assert options_of(url, "") == DynamoOptions(
        region="us-east-1",
        endpoint_url="http://127.0.0.1:8000",
        shards=64,
        patience_seconds=1.5,
    )


@pytest.mark.parametrize(
    "url",
    [
        "dynamodb://key:s3cret@eu-west-1",
        "dynamodb://eu-west-1/table",
        "dynamodb://eu-west-1?endpoint=http://127.0.0.1",
        "dynamodb://eu-west-1?endpoint_url=http://user:s3cret@127.0.0.1",
        "dynamodb://eu-west-1?endpoint_url=ftp://127.0.0.1",
        "dynamodb://eu-west-1?shards=many",
        "dynamodb://eu-west-1?patience_seconds=0",
    ],
)
def test_st_3_a_url_that_says_something_else_is_refused(url: str) -> None:
    """With what can be said, and without repeating a password."""
    with pytest.raises(UnsupportedStore) as caught:
        options_of(url, "")
    assert "s3cret" not in str(caught.value)


async def test_dep_1_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    monkeypatch.setitem(sys.modules, "aioboto3", None)
    with pytest.raises(MissingExtra, match=r"psych-runtime\[dynamodb\]"):
        async with DynamoStore(DynamoOptions(region="us-east-1")):
            raise AssertionError(START)
