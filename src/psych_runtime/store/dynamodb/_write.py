"""A unit as one transaction: what it writes, and under which conditions (R-1)."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from psych_runtime.errors import InvalidArgument, PayloadTooLarge
from psych_runtime.ports.store import Admit, Change, Unit
from psych_runtime.store.dynamodb._items import (
    INDEXED,
    attribute_of,
    header_item,
    index_keys,
    key_item,
    where_run,
)
from psych_runtime.store.dynamodb._names import Key, Tables, key_of
from psych_runtime.store.dynamodb._pieces import Entry, encode
from psych_runtime.store.dynamodb._shared import Known
from psych_runtime.store.dynamodb._wire import Attribute, Item, number, size_of, text
from psych_runtime.store.units import admitted, changed, enters, leaves
from psych_schema.dynamodb import cap_key, key_key, thread_key
from psych_schema.store import CapRow, RunRow

__all__ = ["MAX_WRITES", "Plan", "Write", "build", "check_bounds", "token_of"]

MAX_WRITES: Final = 100  # of one transaction
_UNIT_BYTES: Final = 4_000_000
_ITEM_BYTES: Final = 400_000
_ABSENT: Final = "attribute_not_exists(pk)"

type _Kind = Literal["change", "admit", "log", "key", "place", "cap"]


class Write(NamedTuple):
    """One write of a transaction; `place` is that of its change or key in the unit."""

    kind: _Kind
    place: int
    request: Mapping[str, object]
    size: int


class Plan(NamedTuple):
    """A unit's writes, and the headers that there are after them, with their revisions."""

    writes: Sequence[Write]
    after: Sequence[Known]
    moved: frozenset[str]  # Runs that change their place in an index


class _Builder:
    def __init__(self, unit: Unit, tables: Tables, shards: int) -> None:
        self._unit = unit
        self._tables = tables
        self._shards = shards
        self.writes: list[Write] = []
        self.after: list[Known] = []
        self.moved: set[str] = set()

    def _put(self, kind: _Kind, place: int, table: str, item: Item) -> None:
        request = {
            "Put": {
                "TableName": table,
                "Item": item,
                "ConditionExpression": _ABSENT,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }
        self.writes.append(Write(kind, place, request, size_of(item)))

    def admit(self, place: int, admit: Admit, now: datetime) -> None:
        header = admitted(admit, now)
        item = header_item(header, self._shards, 1)
        self._put("admit", place, self._tables.run, item)
        names = thread_key(tenant=header.tenant, thread=header.thread, position=header.position)
        taken = {**key_of(names), "run_id": text(header.run_id)}
        self._put("place", place, self._tables.item, taken)
        self.after.append(Known(header, 1))
        self.moved.add(header.run_id)

    def change(self, place: int, change: Change, before: Known, now: datetime, cap: bool) -> None:
        columns = changed(before.header, change, now)
        if cap and enters(before.header.state, change.header):
            columns["capped"] = True
        elif leaves(before.header.capped, change.header):
            columns["capped"] = False
        after = before.header.model_copy(update=columns)
        attributes = {name: attribute_of(value) for name, value in columns.items()}
        if not INDEXED.isdisjoint(columns):
            attributes |= _moves(before.header, after, self._shards)
            self.moved.add(after.run_id)
        attributes["rev"] = number(before.revision + 1)
        self.writes.append(self._update(place, change, before, attributes))
        self.after.append(Known(after, before.revision + 1))

    def _update(
        self,
        place: int,
        change: Change,
        before: Known,
        attributes: Mapping[str, Attribute | None],
    ) -> Write:
        """Change the header that was seen, and no other: its revision says which it is."""
        names = {"#tenant": "tenant", "#head": "head", "#rev": "rev"}
        values: dict[str, Attribute] = {
            ":tenant": text(self._unit.tenant),
            ":head": number(change.expect_head),
            ":rev": number(before.revision),
        }
        condition = "#tenant = :tenant AND #head = :head AND #rev = :rev"
        if change.fence is not None:
            names["#epoch"] = "epoch"
            values[":epoch"] = number(change.fence)
            condition += " AND #epoch = :epoch"
        request = {
            "TableName": self._tables.run,
            "Key": where_run(change.run_id),
            "UpdateExpression": _assignments(attributes, names, values),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return Write("change", place, {"Update": request}, size_of(values))

    def log(self, place: int, change: Change | Admit, keys: Sequence[tuple[str, str]]) -> None:
        rows = [sealed.row for sealed in change.records]
        for item in encode(rows, Entry(self._unit.commit_id, keys)):
            self._put("log", place, self._tables.log, item)

    def keys(self) -> None:
        for place, row in enumerate(self._unit.keys):
            names = key_key(tenant=row.tenant, run_id=row.run_id, key=row.key)
            item = key_item(key_of(names), row, self._unit.commit_id)
            self._put("key", place, self._tables.item, item)

    def cap(self, row: CapRow, entering: int, leaving: int) -> None:
        """Count Runs in and out; there must be room for those that enter."""
        names = {"#running": "running"}
        values: dict[str, Attribute] = {":net": number(entering - leaving)}
        request: dict[str, object] = {
            "TableName": self._tables.item,
            "Key": _where_cap(row.tenant),
            "UpdateExpression": "SET #running = #running + :net",
            "ConditionExpression": "attribute_exists(pk)",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if entering:
            names["#limit"] = "limit"
            values[":limit"] = number(row.limit)
            values[":most"] = number(row.limit - entering)
            request["ConditionExpression"] = "#limit = :limit AND #running <= :most"
        self.writes.append(Write("cap", 0, {"Update": request}, size_of(values)))


def _where_cap(tenant: str) -> Key:
    return key_of(cap_key(tenant=tenant))


def _moves(before: RunRow, after: RunRow, shards: int) -> dict[str, Attribute | None]:
    """Return the keys of indexes that differ; None takes a Run out of one."""
    old, new = index_keys(before, shards), index_keys(after, shards)
    return {
        name: None if key is None else text(key) for name, key in new.items() if key != old[name]
    }


def _assignments(
    attributes: Mapping[str, Attribute | None],
    names: dict[str, str],
    values: dict[str, Attribute],
) -> str:
    """Return what sets attributes, and removes those that are None."""
    sets: list[str] = []
    removes: list[str] = []
    for place, (name, value) in enumerate(attributes.items()):
        names[f"#a{place}"] = name
        if value is None:
            removes.append(f"#a{place}")
        else:
            values[f":a{place}"] = value
            sets.append(f"#a{place} = :a{place}")
    text = f"SET {', '.join(sets)}"
    return f"{text} REMOVE {', '.join(removes)}" if removes else text


def build(
    unit: Unit,
    seen: Mapping[str, Known | None],
    *,
    tables: Tables,
    shards: int,
    now: datetime,
    cap: CapRow | None,
) -> Plan:
    """Return the plan of a unit that was judged by the headers in `seen`, and by its cap."""
    builder = _Builder(unit, tables, shards)
    entering = leaving = 0
    for place, change in enumerate(unit.changes):
        if isinstance(change, Admit):
            builder.admit(place, change, now)
            continue
        before = seen[change.run_id]
        assert before is not None  # it would have been RunNotFound
        entering += cap is not None and enters(before.header.state, change.header)
        leaving += leaves(before.header.capped, change.header)
        builder.change(place, change, before, now, cap is not None)
    for place, (change, keys) in enumerate(_with_keys(unit)):
        if change.records:
            builder.log(place, change, keys)
    builder.keys()
    if cap is not None and (entering or leaving):
        builder.cap(cap, entering, leaving)
    return Plan(builder.writes, builder.after, frozenset(builder.moved))


def _with_keys(unit: Unit) -> list[tuple[Change | Admit, list[tuple[str, str]]]]:
    """Return the changes, each with the keys that are to be found by its log.

    A key of a Run that the unit does not write to is found by the first change with records.
    """
    found: list[tuple[Change | Admit, list[tuple[str, str]]]] = [
        (each, []) for each in unit.changes
    ]
    places = {change.run_id: keys for change, keys in found if change.records}
    rest = next(iter(places.values()), [])
    for row in unit.keys:
        if row.run_id:
            places.get(row.run_id, rest).append((row.run_id, row.key))
    return found


def check_bounds(unit: Unit, plan: Plan) -> None:
    """Refuse what no transaction takes. Raises PayloadTooLarge, InvalidArgument."""
    for write in plan.writes:
        if write.size > _ITEM_BYTES:
            raise PayloadTooLarge(
                what=f"an item ({write.kind}) of unit {unit.commit_id}",
                size_bytes=write.size,
                bound_bytes=_ITEM_BYTES,
            )
    total = sum(write.size for write in plan.writes)
    if total > _UNIT_BYTES:
        raise PayloadTooLarge(
            what=f"unit {unit.commit_id}", size_bytes=total, bound_bytes=_UNIT_BYTES
        )
    if len(plan.writes) > MAX_WRITES:
        problem = f"it writes {len(plan.writes)} items, DynamoDB takes {MAX_WRITES}: divide it"
        raise InvalidArgument(what=f"unit {unit.commit_id}", problem=problem)


def token_of(commit_id: str, nonce: str, count: int) -> str:
    """Return the ClientRequestToken of a request: one for each that differs from the others.

    DynamoDB takes a request with a token of the last ten minutes for the one that it knows.
    """
    return hashlib.sha256(f"{commit_id} {nonce} {count}".encode()).hexdigest()[:36]
