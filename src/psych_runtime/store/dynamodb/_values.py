"""Small values, each written where its revision is as expected."""

from typing import Final

from psych_runtime.errors import StoreUnavailable
from psych_runtime.store._values import check_range, check_value, first_revision
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._failures import Refused
from psych_runtime.store.dynamodb._items import kv_item, kv_of
from psych_runtime.store.dynamodb._names import Key, key_of, value_key
from psych_runtime.store.dynamodb._wire import Attribute, Item, number
from psych_schema.store import KvRow

__all__ = ["delete_value", "list_values", "put_value", "read_value"]

_QUERIED: Final = 1000
_DOUBT: Final = "a request got no answer, and it is not known whether it was done"


async def read_value(ask: Ask, tenant: str, kind: str, key: str) -> KvRow | None:
    """Return a row."""
    check_value(tenant, kind, key)
    item = await ask.get(ask.tables.item, _where(tenant, kind, key))
    return None if item is None else kv_of(item)


def _where(tenant: str, kind: str, key: str) -> Key:
    return key_of(value_key(tenant=tenant, kind=kind, key=key))


async def put_value(
    ask: Ask, tenant: str, kind: str, key: str, value: str, expect: int | None
) -> KvRow | None:
    """Write a row where `expect` is the revision of what is there."""
    check_value(tenant, kind, key, value)
    revision = first_revision(ask.system) if expect is None else expect + 1
    row = KvRow(tenant=tenant, kind=kind, key=key, revision=revision, value=value)
    item = kv_item(_where(tenant, kind, key), row, ask.system.salt())
    condition = _at(expect)
    try:
        await ask.call(
            "PutItem",
            lambda client: client.put_item(
                TableName=ask.tables.item,
                Item=item,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **condition,
            ),
        )
    except Refused as refused:
        if not refused.doubtful:
            return None
        there = refused.reasons[0].item
        if there is None or there.get("stamp") != item["stamp"]:
            raise StoreUnavailable(problem=_DOUBT) from None
    return row


def _at(revision: int | None) -> dict[str, object]:
    """Return the condition that a row has a revision, or that there is no row."""
    if revision is None:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    values: dict[str, Attribute] = {":revision": number(revision)}
    return {"ConditionExpression": "revision = :revision", "ExpressionAttributeValues": values}


async def delete_value(ask: Ask, tenant: str, kind: str, key: str, expect: int | None) -> bool:
    """Delete a row that is there, at `expect` only.

    It is read first: what is not there needs no request that could be in doubt.
    """
    check_value(tenant, kind, key)
    where = _where(tenant, kind, key)
    while True:
        item = await ask.get(ask.tables.item, where)
        if item is None or expect not in (None, kv_of(item).revision):
            return False
        if await _is_deleted(ask, where, kv_of(item).revision):
            return True


async def _is_deleted(ask: Ask, where: Key, revision: int) -> bool:
    condition = _at(revision)
    try:
        await ask.call(
            "DeleteItem",
            lambda client: client.delete_item(TableName=ask.tables.item, Key=where, **condition),
        )
    except Refused as refused:
        if refused.doubtful:
            raise StoreUnavailable(problem=_DOUBT) from None
        return False
    return True


async def list_values(
    ask: Ask, tenant: str, kind: str, prefix: str, after: str, limit: int
) -> list[KvRow]:
    """Return rows in the order of their keys."""
    check_range(tenant, kind, prefix, after, limit)
    names = value_key(tenant=tenant, kind=kind, key=prefix)
    key_of(names)
    within = Range(ask.tables.item, None, names["pk"], low=max(prefix, after) or None)
    found: list[KvRow] = []
    last: Item | None = None
    while True:
        wanted = min(_QUERIED, limit + 1 - len(found))  # one may be `after` itself
        page = await ask.query(within, limit=wanted, start=last)
        for row in map(kv_of, page.items):
            if not row.key.startswith(prefix) or len(found) == limit:
                return found
            if row.key > after:
                found.append(row)
        last = page.last
        if last is None or len(found) == limit:
            return found
