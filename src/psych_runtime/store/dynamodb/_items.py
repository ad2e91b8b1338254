"""Between DynamoDB's items and the generated models; instants are texts, as in every store."""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from psych_runtime.errors import CorruptRow
from psych_runtime.store._order import Position, cursor_behind
from psych_runtime.store.dynamodb._names import Key, bounded, key_of, month_of, shard_of
from psych_runtime.store.dynamodb._wire import (
    Attribute,
    Item,
    boolean,
    flag_of,
    instant,
    integer_of,
    number,
    number_of,
    text,
    text_of,
)
from psych_schema.base import parse_instant
from psych_schema.dynamodb import (
    run_claim_key,
    run_due_key,
    run_key,
    run_list_key,
    run_root_key,
    run_worker_key,
)
from psych_schema.store import CapRow, KeyRow, KvRow, RunRow, WorkerRow

__all__ = [
    "INDEXED",
    "attribute_of",
    "cap_of",
    "claim_sort",
    "due_of",
    "dump_open",
    "header_item",
    "header_of",
    "index_keys",
    "key_item",
    "key_row_of",
    "kv_item",
    "kv_of",
    "revision_of",
    "where_run",
    "worker_item",
    "worker_of",
]

INDEXED: Final = frozenset({"state", "worker", "wake_at", "deadline_at", "abort"})
"""Columns whose change moves a Run in an index."""

_TEXTS: Final = ("tenant", "run_id", "version", "state", "head_hash", "thread", "root")
_MAYBE_TEXTS: Final = ("worker", "abort", "previous", "parent")
_NUMBERS: Final = ("head", "epoch", "crashes", "priority", "schema_version", "position")
_INSTANTS: Final = ("head_at", "created_at")
_MAYBE_INSTANTS: Final = ("wake_at", "deadline_at")
_FLAGS: Final = ("referenced", "capped")
_OPEN: Final = ("ready", "running", "suspended")
_INDEX_NAMES: Final = tuple(
    f"{index}_{part}"
    for index in ("claim", "due", "worker", "list", "root")
    for part in ("pk", "sk")
)


def where_run(run_id: str) -> Key:
    """Return where a header is."""
    return key_of(run_key(run_id=run_id))


def attribute_of(value: object) -> Attribute | None:
    """Return a column's value as an attribute; None has none."""
    match value:
        case None:
            return None
        case bool():
            return boolean(value)
        case int() | float():
            return number(value)
        case datetime():
            return instant(value)
        case Mapping():
            return text(dump_open(value))
        case _:
            return text(str(value))


def dump_open(opened: Mapping[str, int]) -> str:
    """Return the text of the column `open`."""
    return json.dumps(dict(opened), separators=(",", ":"))


def header_item(header: RunRow, shards: int, revision: int) -> dict[str, Attribute]:
    """Return a header as an item, with its places in the indexes."""
    values: dict[str, object] = dict(vars(header))
    item = {name: value for name in values if (value := attribute_of(values[name])) is not None}
    item |= where_run(header.run_id)
    item |= {name: text(key) for name, key in index_keys(header, shards).items() if key is not None}
    item["rev"] = number(revision)
    return item


def index_keys(header: RunRow, shards: int) -> dict[str, str | None]:
    """Return where a Run is in each index; None: it is not in that one."""
    run_id = header.run_id
    shard = shard_of(header.tenant, run_id, shards)
    keys: dict[str, str | None] = dict.fromkeys(_INDEX_NAMES)
    if header.state == "ready" or (header.state == "suspended" and header.wake_at is not None):
        keys |= run_claim_key(
            shard=shard,
            tenant=header.tenant,
            urgency=9 - min(9, header.priority),
            wake=header.wake_at or header.created_at,
            run_id=run_id,
        )
    due = due_of(header)
    if due is not None:
        keys |= run_due_key(shard=shard, due=due, run_id=run_id)
    if header.state == "running" and header.worker:
        keys |= run_worker_key(worker=header.worker, run_id=run_id)
    keys |= run_list_key(
        tenant=header.tenant,
        bucket=month_of(header.created_at),
        created_at=header.created_at,
        run_id=run_id,
    )
    if header.parent is not None and header.root:
        keys |= run_root_key(root=header.root, run_id=run_id)
    return {name: None if value is None else bounded(name, value) for name, value in keys.items()}


def claim_sort(header: RunRow) -> str:
    """Return the place that a claimable Run has among all of them."""
    keys = run_claim_key(
        shard=0,
        tenant=header.tenant,
        urgency=9 - min(9, header.priority),
        wake=header.wake_at or header.created_at,
        run_id=header.run_id,
    )
    return keys["claim_sk"]


def due_of(header: RunRow) -> datetime | None:
    """Return when somebody must settle a Run: an aborted one at once, which is since it began."""
    if header.state not in _OPEN:
        return None
    return header.deadline_at if header.abort is None else header.created_at


def revision_of(item: Item) -> int:
    """Return how often a header has been written."""
    return integer_of(item, "rev")


def header_of(item: Item) -> RunRow:
    """Return a header. Raises CorruptRow."""
    try:
        return _header_of(item)
    except (ValueError, ValidationError, RecursionError) as error:
        key = _told(item, "run_id", "pk")
        problem = _problem(error)
        raise CorruptRow(table="run", key=key, problem=problem, cursor=_cursor(item)) from None


def _header_of(item: Item) -> RunRow:
    values: dict[str, object] = {name: text_of(item, name) for name in _TEXTS}
    values |= {name: text_of(item, name) for name in _MAYBE_TEXTS if name in item}
    values |= {name: integer_of(item, name) for name in _NUMBERS}
    values |= {name: parse_instant(text_of(item, name)) for name in _INSTANTS}
    values |= {name: parse_instant(text_of(item, name)) for name in _MAYBE_INSTANTS if name in item}
    values |= {name: flag_of(item, name) for name in _FLAGS}
    if "remaining_seconds" in item:
        values["remaining_seconds"] = number_of(item, "remaining_seconds")
    values["open"] = json.loads(text_of(item, "open"))
    return RunRow.model_validate(values)


def _cursor(item: Item) -> str | None:
    """Return the cursor behind a header that cannot be read, None when its place is not one."""
    try:
        created_at = parse_instant(text_of(item, "created_at"))
        return cursor_behind(Position(created_at, text_of(item, "run_id")))
    except ValueError:
        return None


def _problem(error: Exception) -> str:
    """Return what is wrong, in one line, and where: of a model's errors the first."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _told(item: Item, *names: str) -> str:
    for name in names:
        try:
            return text_of(item, name)
        except ValueError:
            continue
    return "?"


def _made[T](table: str, item: Item, name: str, make: Callable[[Item], T]) -> T:
    try:
        return make(item)
    except (ValueError, ValidationError, RecursionError) as error:
        key = _told(item, name, "sk")
        raise CorruptRow(table=table, key=key, problem=_problem(error)) from None


def key_item(where: Key, row: KeyRow, commit_id: str) -> dict[str, Attribute]:
    """Return a key's row as an item; it names the commit that it came with."""
    columns = {name: text(getattr(row, name)) for name in KeyRow.model_fields}
    return {**where, **columns, "commit": text(commit_id)}


def key_row_of(item: Item) -> KeyRow:
    """Return a key's row. Raises CorruptRow."""
    return _made("key", item, "key", _key_of)


def _key_of(item: Item) -> KeyRow:
    return KeyRow(
        tenant=text_of(item, "tenant"),
        run_id=text_of(item, "run_id"),
        key=text_of(item, "key"),
        digest=text_of(item, "digest"),
        receipt=text_of(item, "receipt"),
    )


def kv_item(where: Key, row: KvRow, stamp: str) -> dict[str, Attribute]:
    """Return a small value's row as an item; `stamp` tells which request wrote it."""
    columns: dict[str, Attribute] = {
        "tenant": text(row.tenant),
        "kind": text(row.kind),
        "key": text(row.key),
        "revision": number(row.revision),
        "value": text(row.value),
    }
    return {**where, **columns, "stamp": text(stamp)}


def kv_of(item: Item) -> KvRow:
    """Return a small value's row. Raises CorruptRow."""
    return _made("kv", item, "key", _kv_of)


def _kv_of(item: Item) -> KvRow:
    return KvRow(
        tenant=text_of(item, "tenant"),
        kind=text_of(item, "kind"),
        key=text_of(item, "key"),
        revision=integer_of(item, "revision"),
        value=text_of(item, "value"),
    )


def cap_of(item: Item) -> CapRow:
    """Return a cap's row. Raises CorruptRow."""
    return _made("cap", item, "tenant", _cap_of)


def _cap_of(item: Item) -> CapRow:
    return CapRow(
        tenant=text_of(item, "tenant"),
        running=integer_of(item, "running"),
        limit=integer_of(item, "limit"),
    )


def worker_item(where: Key, row: WorkerRow, good_until: datetime) -> dict[str, Attribute]:
    """Return a worker's row as an item; `good_until` is when its contact breaks."""
    return {
        **where,
        "id": text(row.id),
        "lease_until": instant(row.lease_until),
        "lease_seconds": number(row.lease_seconds),
        "good_until": instant(good_until),
        "beat": number(row.beat),
        "since": instant(row.since),
        "dead": boolean(row.dead),
        "build": text(row.build),
        "tools": text(json.dumps(list(row.tools), separators=(",", ":"))),
    }


def worker_of(item: Item) -> WorkerRow:
    """Return a worker's row. Raises CorruptRow."""
    return _made("worker", item, "id", _worker_of)


def _worker_of(item: Item) -> WorkerRow:
    tools: Collection[str] = json.loads(text_of(item, "tools"))
    return WorkerRow(
        id=text_of(item, "id"),
        lease_until=parse_instant(text_of(item, "lease_until")),
        lease_seconds=number_of(item, "lease_seconds"),
        beat=integer_of(item, "beat"),
        since=parse_instant(text_of(item, "since")),
        dead=flag_of(item, "dead"),
        build=text_of(item, "build"),
        tools=tuple(tools),
    )
