"""Caps: how many Runs of a tenant may be running at once (R-15)."""

from psych_runtime.ports.store import UNCAPPED
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._failures import Refused
from psych_runtime.store.dynamodb._items import cap_of
from psych_runtime.store.dynamodb._names import key_of
from psych_runtime.store.dynamodb._wire import number, text
from psych_runtime.store.units import check_cap
from psych_schema.dynamodb import cap_key
from psych_schema.store import CapRow

__all__ = ["read_cap", "set_cap"]


async def set_cap(ask: Ask, tenant: str, limit: int | None) -> None:
    """Set or lift a bound; what is counted stays counted."""
    check_cap(limit)
    check_storable(tenant)
    names = {"#limit": "limit"}
    values = {":limit": number(UNCAPPED if limit is None else limit)}
    arguments: dict[str, object] = {"UpdateExpression": "SET #limit = :limit"}
    if limit is None:
        arguments["ConditionExpression"] = "attribute_exists(pk)"
    else:
        names |= {"#running": "running", "#tenant": "tenant"}
        values |= {":none": number(0), ":tenant": text(tenant)}
        rest = "#running = if_not_exists(#running, :none), #tenant = :tenant"
        arguments["UpdateExpression"] = f"SET #limit = :limit, {rest}"
    try:
        await ask.update(
            ask.tables.item,
            key_of(cap_key(tenant=tenant)),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            **arguments,
        )
    except Refused:  # it never had one: nothing is to be lifted
        return


async def read_cap(ask: Ask, tenant: str) -> CapRow | None:
    """Return a tenant's cap, None when it never had one."""
    check_storable(tenant)
    item = await ask.get(ask.tables.item, key_of(cap_key(tenant=tenant)))
    return None if item is None else cap_of(item)
