"""Keys of DynamoDB: no two rows share one, and they sort as their parts do."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codegen import dynamodb
from codegen.source import Source
from codegen.tree import Json, Node, SchemaError, as_list, as_node, as_text, child, read
from psych_schema.dynamodb import (
    key_key,
    kv_key,
    record_key,
    run_claim_key,
    run_key,
    run_list_key,
    thread_key,
)
from tests.codegen.trees import GENERATED, plant, sound, write

AT = datetime(2026, 11, 29, 20, tzinfo=UTC)
TEXTS = ("a", "a#", "#a", "a%23", "%", "", "##", "a#b", "b")


def test_a_run_is_found_by_its_id() -> None:
    """The plainest key."""
    assert run_key(run_id="run_1") == {"pk": "run_1"}


def test_a_claim_sorts_by_tenant_urgency_and_time() -> None:
    """Integers are padded, instants are their own text, the shard is the partition."""
    assert run_claim_key(shard=7, tenant="acme", urgency=4, wake=AT, run_id="run_1") == {
        "claim_pk": "07",
        "claim_sk": "acme#4#2026-11-29T20:00:00.000000Z#run_1",
    }


def test_a_list_is_read_a_month_at_a_time() -> None:
    """The bucket is a part of the partition."""
    assert run_list_key(tenant="acme", bucket=682, created_at=AT, run_id="run_1") == {
        "list_pk": "acme#00682",
        "list_sk": "2026-11-29T20:00:00.000000Z#run_1",
    }


def test_records_sort_as_numbers_do() -> None:
    """Seq 10 stands after seq 9."""
    keys = [record_key(run_id="run_1", last_seq=seq)["sk"] for seq in (1, 9, 10, 99, 100, 10**11)]
    assert keys == sorted(keys)
    assert keys[0] == "000000000001"


@pytest.mark.parametrize("seq", [-1, 10**12])
def test_a_number_that_does_not_fit_is_refused(seq: int) -> None:
    """It would sort, or be read back, as another."""
    with pytest.raises(ValueError, match=f"{seq} does not fit 12 digits of a key"):
        record_key(run_id="run_1", last_seq=seq)


def test_no_text_holds_the_separator() -> None:
    """Whatever callers choose, two rows never share a key."""
    seen = {
        tuple(key_key(tenant=tenant, run_id=run, key=key).items())
        for tenant, run, key in itertools.product(TEXTS, repeat=3)
    }
    assert len(seen) == len(TEXTS) ** 3
    assert thread_key(tenant="a#b", thread="50%", position=1) == {
        "pk": "thread#a%23b#50%25",
        "sk": "0000000001",
    }
    assert kv_key(tenant="a", kind="b", key="c#d") == {"pk": "kv#a#b", "sk": "c%23d"}


def test_the_layout_says_what_create_table_needs() -> None:
    """Three tables, on demand; each key attribute is declared, nothing else."""
    layout = read(GENERATED / "dynamodb/tables.json")
    tables = [as_node(table) for table in as_list(layout["tables"])]
    assert [child(table, "CreateTable")["TableName"] for table in tables] == ["run", "log", "item"]
    for table in tables:
        create = child(table, "CreateTable")
        assert create["BillingMode"] == "PAY_PER_REQUEST"
        indexes = [as_node(index) for index in as_list(create.get("GlobalSecondaryIndexes", []))]
        used = {name for part in (create, *indexes) for name in _names(part["KeySchema"])}
        assert used == set(_names(create["AttributeDefinitions"]))
        for index in indexes:
            assert child(index, "Projection")["NonKeyAttributes"] == [
                *("tenant", "version", "schema_version")
            ]
    assert tables[2]["TimeToLiveSpecification"] == {"Enabled": True, "AttributeName": "purge_at"}


def _names(value: Json) -> list[str]:
    return [as_text(as_node(item)["AttributeName"]) for item in as_list(value)]


def test_an_integer_without_padding_is_refused(tmp_path: Path) -> None:
    """10 would sort before 9."""
    keys: Node = {"table": "log", "keys": {"pk": "{seq}"}}
    tree = plant(sound(), "store/tables.json", "/$defs/RobotRow/x-psych-dynamodb", keys)
    field: Json = {"type": "integer", "default": 0}
    tree = plant(tree, "store/tables.json", "/$defs/RobotRow/properties/seq", field)
    with pytest.raises(SchemaError, match=r"RobotRow/x-psych-dynamodb: {seq:} is integer; pad"):
        dynamodb.emit(Source.load(write(tree, tmp_path)))
