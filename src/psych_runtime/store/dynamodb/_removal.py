"""Deleting Runs (ST-6): gone in one transaction, then what hangs on them is taken away.

A transaction takes 100 items, and a Run has more. So the headers are deleted together, with a
note of what is left; without its header nothing of a Run is found any more. Whoever sweeps next
finishes what a process left that ended in between.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._failures import Refused
from psych_runtime.store.dynamodb._items import where_run
from psych_runtime.store.dynamodb._names import Key, escaped, fits, key_of, purge_key
from psych_runtime.store.dynamodb._pieces import keys_of
from psych_runtime.store.dynamodb._wire import Item, boolean, number, text, text_of
from psych_runtime.store.dynamodb._write import MAX_WRITES, token_of
from psych_runtime.store.units import check_deletion
from psych_schema.dynamodb import key_key, thread_key
from psych_schema.store import RunRow

__all__ = ["delete_runs", "finish"]

_NOTES: Final = 2  # that one sweep finishes


class _Gone(NamedTuple):
    """What is left of deleted Runs."""

    tenant: str
    runs: Sequence[tuple[str, str, int]]  # id, thread, position
    keys: Sequence[tuple[str, str]]  # of admissions, and with which commit each came

    def names(self) -> list[tuple[Key, str, str]]:
        """Return where places and keys are, and the attribute by which they are those.

        Somebody may have taken the place or the key anew by the time they are deleted.
        """
        found = [
            (thread_key(tenant=self.tenant, thread=thread, position=position), "run_id", run_id)
            for run_id, thread, position in self.runs
        ]
        found += [
            (key_key(tenant=self.tenant, run_id="", key=key), "commit", commit_id)
            for key, commit_id in self.keys
        ]
        return [(key_of(names), column, value) for names, column, value in found]


async def delete_runs(
    ask: Ask, tenant: str, headers: Sequence[RunRow], keys: Sequence[str]
) -> bool:
    """Delete Runs that are as they were seen, all or none."""
    check_deletion(headers)
    check_storable(tenant, *[header.run_id for header in headers], *keys)
    if not all(fits(header.run_id) for header in headers):
        return False
    rows = (await ask.headers(header.run_id for header in headers)).rows
    if any(header.run_id not in rows for header in headers):
        return False
    runs = [(row.run_id, row.thread, row.position) for row in rows.values()]
    gone = _Gone(tenant, runs, await _commits(ask, tenant, keys))
    purge = ask.system.new_id("pur")
    note = {**key_of(purge_key(purge=purge)), "gone": text(json.dumps(gone))}
    requests: list[object] = [
        {"Put": {"TableName": ask.tables.item, "Item": note}},
        *(_deletion(ask, tenant, header) for header in headers),
    ]
    names = gone.names()
    if len(requests) + len(names) <= MAX_WRITES:
        item = ask.tables.item
        requests += [{"Delete": {"TableName": item, "Key": key}} for key, _, _ in names]
    token = token_of(purge, ask.system.salt(), 0)
    ask.shared.forget(header.run_id for header in headers)
    try:
        await ask.transact(requests, token)
    except Refused as refused:
        if not (
            refused.doubtful and await ask.get(ask.tables.item, key_of(purge_key(purge=purge)))
        ):
            return False
    await _take_away(ask, purge, gone)
    return True


async def _commits(ask: Ask, tenant: str, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Return the admission keys that are there, each with the commit that it came with."""
    where = [key_of(key_key(tenant=tenant, run_id="", key=key)) for key in dict.fromkeys(keys)]
    found = await ask.get_many([(ask.tables.item, key) for key in where])
    items = found.get(ask.tables.item, ())
    return [(text_of(item, "key"), text_of(item, "commit")) for item in items]


def _deletion(ask: Ask, tenant: str, header: RunRow) -> dict[str, object]:
    values = {
        ":tenant": text(tenant),
        ":head": number(header.head),
        ":state": text(header.state),
        ":referenced": boolean(header.referenced),
    }
    names = {f"#{name[1:]}": name[1:] for name in values}
    condition = " AND ".join(f"#{name[1:]} = {name}" for name in values)
    return {
        "Delete": {
            "TableName": ask.tables.run,
            "Key": where_run(header.run_id),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
    }


async def finish(ask: Ask) -> None:
    """Take away what deletions have left that were not finished."""
    within = Range(ask.tables.item, None, purge_key(purge="")["pk"])
    page = await ask.query(within, limit=_NOTES)
    for item in page.items:
        gone = _Gone._make(json.loads(text_of(item, "gone")))
        await _take_away(ask, text_of(item, "sk"), gone)


async def _take_away(ask: Ask, purge: str, gone: _Gone) -> None:
    """Delete places, keys and logs, then the note of them; a log's keys are known by its items."""
    await asyncio.gather(*[_delete(ask, *name) for name in gone.names()])
    for run_id, _, _ in gone.runs:
        within = Range(ask.tables.log, None, escaped(run_id))
        items = await ask.query_all(within, columns=("pk", "sk", "keys"))
        keys = dict.fromkeys(pair for item in items for pair in keys_of(item))
        named = [key_key(tenant=gone.tenant, run_id=run, key=key) for run, key in keys]
        await ask.delete_many((ask.tables.item, key_of(names)) for names in named)
        await ask.delete_many((ask.tables.log, _where(item)) for item in items)
    await ask.delete(ask.tables.item, key_of(purge_key(purge=purge)))


async def _delete(ask: Ask, key: Key, column: str, value: str) -> None:
    await ask.delete(
        ask.tables.item,
        key,
        ConditionExpression="#column = :value",
        ExpressionAttributeNames={"#column": column},
        ExpressionAttributeValues={":value": text(value)},
    )


def _where(item: Item) -> Key:
    return {name: item[name] for name in ("pk", "sk")}
