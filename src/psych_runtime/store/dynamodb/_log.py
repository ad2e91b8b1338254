"""Reading logs, and taking contents off them."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from psych_runtime.errors import RunNotFound
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._failures import Refused
from psych_runtime.store.dynamodb._items import header_of, revision_of, where_run
from psych_runtime.store.dynamodb._names import escaped, fits
from psych_runtime.store.dynamodb._pieces import (
    Entry,
    decode,
    encode,
    grouped,
    is_whole,
    keys_of,
)
from psych_runtime.store.dynamodb._wire import Item, has, integer_of, number, text_of
from psych_runtime.store.dynamodb._write import token_of
from psych_runtime.store.units import check_limit
from psych_schema.dynamodb import record_key
from psych_schema.store import RecordRow, RunRow

__all__ = ["blank", "read_header", "read_log"]

_LAST: Final = 10**12 - 1  # seq that a key has room for
_PAGE: Final = 1000
_FIRST_SECONDS: Final = 0.01
_GAP: Final = "DynamoDB, Query: a log with a gap, a commit is being written"


async def read_header(ask: Ask, tenant: str, run_id: str) -> RunRow:
    """Return the header, consistently. Raises RunNotFound."""
    check_storable(tenant, run_id)
    item = await ask.get(ask.tables.run, where_run(run_id)) if fits(run_id) else None
    header = None if item is None else header_of(item)
    if item is None or header is None or header.tenant != tenant:
        raise RunNotFound(run_id=run_id)
    ask.shared.learn(header, revision_of(item))
    return header


async def read_log(
    ask: Ask, tenant: str, run_id: str, after: int, limit: int | None
) -> list[RecordRow]:
    """Return records behind `after`. Raises RunNotFound.

    A log that is read while a commit is written may have a gap, or end before the head: it is
    read again, before anybody calls it corrupt (R-26).
    """
    if limit is not None:
        check_limit(limit)
    head = (await read_header(ask, tenant, run_id)).head
    after = max(0, after)
    last = head if limit is None else min(head, after + limit)
    pause = _FIRST_SECONDS
    while True:
        rows = await _rows(ask, run_id, after, limit)
        if rows is not None and (rows[-1].seq if rows else after) >= last:
            return rows
        if rows is not None and await _is_shorter(ask, tenant, run_id, head):
            return rows
        await ask.pause(pause, _GAP)
        pause *= 2


async def _is_shorter(ask: Ask, tenant: str, run_id: str, head: int) -> bool:
    """Tell whether a Run is no longer what it was. Raises RunNotFound when it was deleted."""
    return (await read_header(ask, tenant, run_id)).head < head


async def _rows(ask: Ask, run_id: str, after: int, limit: int | None) -> list[RecordRow] | None:
    """Return records behind `after` without a gap, None when there is one."""
    found: list[RecordRow] = []
    if after >= _LAST:
        return found
    async for pieces in _entries(ask, run_id, after, limit):
        if not is_whole(pieces):
            return None
        for row in decode(run_id, pieces):
            if row.seq <= after:
                continue
            if row.seq != after + len(found) + 1:
                return None
            found.append(row)
            if len(found) == limit:
                return found
    return found


async def _entries(
    ask: Ask, run_id: str, after: int, limit: int | None = None
) -> AsyncIterator[list[Item]]:
    """Give the items of each commit behind `after`, in order; for `limit` records few are read."""
    low = record_key(run_id=run_id, last_seq=after)["sk"] + "~"  # behind its other pieces
    within = Range(ask.tables.log, None, escaped(run_id), low)
    held: list[Item] = []  # of the last commit of a page there may be more
    last: Item | None = None
    while True:
        # one more: only then the last commit that is wanted is known to be whole
        few = None if limit is None else min(limit, _PAGE) + 1
        page = await ask.query(within, limit=few, start=last)
        entries = list(grouped([*held, *page.items]))
        last = page.last
        held = entries.pop() if entries and last is not None else []
        for pieces in entries:
            yield pieces
        if last is None:
            return


async def blank(ask: Ask, tenant: str, run_id: str, limit: int) -> bool:
    """Take content and salt off up to `limit` records; True when none has any left.

    Each commit is a transaction: what does not fit into half of the time is left for the next call.
    """
    check_limit(limit)
    await read_header(ask, tenant, run_id)
    left = limit
    async for pieces in _entries(ask, run_id, 0):
        if not has(pieces[0], "salts"):
            continue
        if left == 0 or (left < limit and ask.is_half_over()):
            return False
        taken = await _blank_entry(ask, run_id, text_of(pieces[0], "sk"), left)
        if taken is None:
            return False
        left -= taken
    return True


async def _blank_entry(ask: Ask, run_id: str, sort: str, limit: int) -> int | None:
    """Write a commit's records again without content; return of how many, None if some are left.

    One transaction: a reader who sees pieces of both editions reads again.
    """
    pause = _FIRST_SECONDS
    while True:
        within = Range(ask.tables.log, None, escaped(run_id), sort, sort + "~")
        pieces = await ask.query_all(within)
        if not pieces:
            return 0
        if is_whole(pieces):
            rows, taken, is_over = _without_content(decode(run_id, pieces), limit)
            if taken == 0 or await _rewrite(ask, pieces, rows):
                return taken if is_over else None
        await ask.pause(pause, _GAP)
        pause *= 2


def _without_content(rows: Sequence[RecordRow], limit: int) -> tuple[list[RecordRow], int, bool]:
    """Return the rows with up to `limit` of them bare, of how many, and whether all are then."""
    bare: list[RecordRow] = []
    taken = 0
    for row in rows:
        if (row.content, row.salt) != (None, None):
            if taken == limit:
                return [*bare, *rows[len(bare) :]], taken, False
            taken += 1
        bare.append(row.model_copy(update={"content": None, "salt": None}))
    return bare, taken, True


async def _rewrite(ask: Ask, pieces: Sequence[Item], rows: Sequence[RecordRow]) -> bool:
    """Put `rows` where `pieces` are; False when somebody else did meanwhile."""
    first = pieces[0]
    edition = integer_of(first, "edition")
    entry = Entry(text_of(first, "commit"), keys_of(first), edition + 1)
    items = encode(rows, entry)
    condition = {
        "ConditionExpression": "#edition = :edition",
        "ExpressionAttributeNames": {"#edition": "edition"},
        "ExpressionAttributeValues": {":edition": number(edition)},
    }
    table = ask.tables.log
    requests: list[object] = [
        {"Put": {"TableName": table, "Item": item, **condition}} for item in items
    ]
    requests += [
        {"Delete": {"TableName": table, "Key": {name: piece[name] for name in ("pk", "sk")}}}
        for piece in pieces[len(items) :]
    ]
    token = token_of(entry.commit_id, ask.system.salt(), entry.edition)
    try:
        await ask.transact(requests, token)
    except Refused:
        return False
    return True
