"""Which tables there must be, making them, and refusing tables that are not ours (ST-4)."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import psych_schema
from psych_runtime.errors import SchemaMissing, UnsupportedStore
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._failures import Exists
from psych_runtime.store.dynamodb._names import LAYOUT, META, RUN_SHARDS, Key, key_of
from psych_runtime.store.dynamodb._wire import integer_of, number

__all__ = ["check", "check_options", "ddl", "migrate"]

_PAUSE_SECONDS: Final = 0.5
_MAX_SHARDS: Final = 64
_REMEDY: Final = "use another prefix"


def ddl(prefix: str = "") -> str:
    """Return the tables as JSON for infrastructure code: CreateTable requests, and their TTL."""
    made = [
        {
            "CreateTable": _create(table, prefix),
            **({"TimeToLiveSpecification": ttl} if (ttl := _ttl(table)) is not None else {}),
        }
        for table in _layout()
    ]
    return json.dumps(made, indent=2)


def _layout() -> Sequence[Mapping[str, object]]:
    """Return the tables: in a wheel inside the package, in a checkout beside it."""
    published: Traversable = files(psych_schema) / "published" / "dynamodb" / "tables.json"
    if not published.is_file():
        published = Path(str(psych_schema.__file__)).parent.parent / "dynamodb" / "tables.json"
    tables: Sequence[Mapping[str, object]] = json.loads(published.read_text("utf-8"))["tables"]
    return tables


def _create(table: Mapping[str, object], prefix: str) -> dict[str, object]:
    create = table["CreateTable"]
    assert isinstance(create, dict)
    return {**create, "TableName": f"{prefix}{create['TableName']}"}


def _ttl(table: Mapping[str, object]) -> object:
    return table.get("TimeToLiveSpecification")


def check_options(shards: int) -> None:
    """Refuse a number of shards that keys cannot be made for."""
    if shards != 1 and (shards % RUN_SHARDS or not 0 < shards <= _MAX_SHARDS):
        raise UnsupportedStore(
            problem=f"shards={shards}", remedy=f"use 1, or a multiple of 4 up to {_MAX_SHARDS}"
        )


def _meta() -> Key:
    return key_of(META)


async def check(ask: Ask) -> int:
    """Return into how many shards the indexes are divided.

    SchemaMissing: there are no tables, or they are not finished. UnsupportedStore: the tables
    have another layout.
    """
    found = await _read_meta(ask)
    if found is None:
        raise SchemaMissing(problem=f"table {ask.tables.item} says no layout")
    return found


async def _read_meta(ask: Ask) -> int | None:
    item = await ask.get(ask.tables.item, _meta())
    if item is None:
        return None
    layout = integer_of(item, "layout")
    if layout != LAYOUT:
        raise UnsupportedStore(
            problem=f"table {ask.tables.item} has layout {layout}, this build knows {LAYOUT}",
            remedy="use a build of psych-runtime that fits the tables"
            if layout > LAYOUT
            else _REMEDY,
        )
    return integer_of(item, "shards")


async def migrate(ask: Ask, prefix: str, shards: int) -> int:
    """Make what is missing and wait until it can be used; return the number of shards.

    Several may do it at once: whoever comes second finds the tables being made.
    """
    tables = [(_create(table, prefix), _ttl(table)) for table in _layout()]
    for create, _ in tables:
        if await _describe(ask, create) is None:
            await _begin(ask, create)
    for create, ttl in tables:
        await _await_active(ask, create)
        if ttl is not None:
            await _expire(ask, str(create["TableName"]), ttl)
    meta = {**_meta(), "layout": number(LAYOUT), "shards": number(shards)}
    await ask.put_new(ask.tables.item, meta)
    return await check(ask)


async def _describe(ask: Ask, create: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return what a table is like, None where there is none. UnsupportedStore: another's."""
    name = str(create["TableName"])
    try:
        answer = await ask.call(
            "DescribeTable", lambda client: client.describe_table(TableName=name)
        )
    except SchemaMissing:
        return None
    table = answer.get("Table")
    if not isinstance(table, Mapping):
        return None
    if _keys(table) != _keys(create):
        raise UnsupportedStore(problem=f"table {name} has other keys than ours", remedy=_REMEDY)
    return table


def _keys(table: Mapping[str, object]) -> object:
    """Return the keys of a table or index, and their types."""
    keys, kinds = table.get("KeySchema"), table.get("AttributeDefinitions", ())
    assert isinstance(keys, Sequence)
    assert isinstance(kinds, Sequence)
    types = {kind["AttributeName"]: kind["AttributeType"] for kind in kinds}
    return {(key["AttributeName"], key["KeyType"], types.get(key["AttributeName"])) for key in keys}


async def _begin(ask: Ask, create: Mapping[str, object]) -> None:
    try:
        await ask.call("CreateTable", lambda client: client.create_table(**create))
    except Exists:  # somebody else makes it
        return


async def _await_active(ask: Ask, create: Mapping[str, object]) -> None:
    """Return once a table and its indexes can be used; indexes that are missing are made."""
    while True:
        table = await _describe(ask, create)
        if table is not None and table.get("TableStatus") == "ACTIVE":
            there = {str(index["IndexName"]): index for index in _indexes(table)}
            missing = [each for each in _indexes(create) if each["IndexName"] not in there]
            busy = [each for each in there.values() if each.get("IndexStatus") != "ACTIVE"]
            if not missing and not busy:
                _check_indexes(create, there)
                return
            if not busy:  # one at a time, as the service wants it
                await _add_index(ask, create, missing[0])
        await ask.pause(_PAUSE_SECONDS, f"table {create['TableName']} is being made")


def _indexes(table: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    found = table.get("GlobalSecondaryIndexes", ())
    return found if isinstance(found, Sequence) else ()


def _check_indexes(create: Mapping[str, object], there: Mapping[str, Mapping[str, object]]) -> None:
    for index in _indexes(create):
        name = str(index["IndexName"])
        if _keys(there[name]) != _keys(index):
            raise UnsupportedStore(
                problem=f"index {name} of table {create['TableName']} has other keys than ours",
                remedy=_REMEDY,
            )


async def _add_index(ask: Ask, create: Mapping[str, object], index: Mapping[str, object]) -> None:
    try:
        await ask.call(
            "UpdateTable",
            lambda client: client.update_table(
                TableName=create["TableName"],
                AttributeDefinitions=create["AttributeDefinitions"],
                GlobalSecondaryIndexUpdates=[{"Create": index}],
            ),
        )
    except Exists:  # somebody else adds it
        return


async def _expire(ask: Ask, name: str, ttl: object) -> None:
    """Let items go at the moment that they name, where that is not so yet."""
    answer = await ask.call(
        "DescribeTimeToLive", lambda client: client.describe_time_to_live(TableName=name)
    )
    told = answer.get("TimeToLiveDescription")
    status = told.get("TimeToLiveStatus") if isinstance(told, Mapping) else None
    if status not in ("ENABLED", "ENABLING"):
        await ask.call(
            "UpdateTimeToLive",
            lambda client: client.update_time_to_live(TableName=name, TimeToLiveSpecification=ttl),
        )
