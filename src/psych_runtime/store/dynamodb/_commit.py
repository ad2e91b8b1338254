"""Committing units: judged by headers that are known, written in one transaction each (R-1).

A transaction holds only if every header is still as it was judged: its revision says so. When
one is not, what stands there comes back with the refusal, and the unit is judged again by it.
So a header that is known costs no read, and no unit is refused by one that is old.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from psych_runtime.errors import CorruptRow
from psych_runtime.ports.answers import (
    Answer,
    CapReached,
    Committed,
    KeyTaken,
    SeqConflict,
    ThreadTaken,
)
from psych_runtime.ports.store import UNCAPPED, Admit, Change, Unit
from psych_runtime.store._storable import check_unit
from psych_runtime.store.dynamodb._asking import Ask
from psych_runtime.store.dynamodb._failures import Reason, Refused
from psych_runtime.store.dynamodb._groups import groups
from psych_runtime.store.dynamodb._items import (
    cap_of,
    header_of,
    key_row_of,
    revision_of,
)
from psych_runtime.store.dynamodb._judge import any_leaves, judge, place_twice
from psych_runtime.store.dynamodb._names import key_of
from psych_runtime.store.dynamodb._noted import note_names
from psych_runtime.store.dynamodb._shared import Known
from psych_runtime.store.dynamodb._wire import Item, text, text_of
from psych_runtime.store.dynamodb._write import Plan, Write, build, check_bounds, token_of
from psych_runtime.store.units import check_units, news_of
from psych_schema.dynamodb import cap_key, key_key, record_key, thread_key
from psych_schema.store import CapRow

__all__ = ["commit"]

_AT_ONCE: Final = 16  # transactions of one commit

type _Seen = dict[str, Known | None]


async def commit(ask: Ask, units: Sequence[Unit]) -> list[Answer]:
    """Apply each unit all or none; those that touch nothing in common side by side."""
    check_units(units)
    for unit in units:
        check_unit(unit)
    return await _Commit(ask).apply(units)


class _Commit:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._nonce = ask.system.salt()
        self._requests = 0
        self._caps: dict[str, CapRow] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def apply(self, units: Sequence[Unit]) -> list[Answer]:
        seen = await self._look(units)
        await note_names(self._ask, units)
        for unit in units:  # before anything is written
            if all(_stands(change, seen) for change in unit.changes):
                check_bounds(unit, self._plan(unit, seen))
        answers: list[Answer | None] = [None] * len(units)

        async def write(places: Sequence[int]) -> None:
            for place in places:
                async with self._room:
                    answers[place] = await self._unit(units[place])

        apart = groups(units, self._caps.__contains__)
        ends = await asyncio.gather(*map(write, apart), return_exceptions=True)
        for end in ends:  # only now: no write goes on behind the caller's back
            if end is not None:
                raise end
        return [answer for answer in answers if answer is not None]

    async def _look(self, units: Sequence[Unit]) -> _Seen:
        """Return the headers that the units are about; those not known are read, and the caps."""
        ask = self._ask
        changes = [(unit.tenant, each) for unit in units for each in unit.changes]
        names = [each.run_id for _, each in changes if isinstance(each, Change)]
        tenants = {
            tenant
            for tenant, each in changes
            if isinstance(each, Change) and each.header.state == "running"
        }
        missing = [run_id for run_id in names if ask.shared.known(run_id) is None]
        caps = [(ask.tables.item, key_of(cap_key(tenant=tenant))) for tenant in sorted(tenants)]
        if missing or caps:
            found = await ask.headers(missing, *caps)
            self._caps = {row.tenant: row for row in map(cap_of, found.beside)}
        return {run_id: ask.shared.known(run_id) for run_id in names}

    async def _unit(self, unit: Unit) -> Answer:
        shared = self._ask.shared
        seen: _Seen = {
            change.run_id: shared.known(change.run_id)
            for change in unit.changes
            if isinstance(change, Change)
        }
        answer = judge(unit, seen)
        if answer is not None:  # what is known may be old
            seen = await self._read(unit)
            answer = judge(unit, seen)
        if answer is None and (twice := place_twice(unit)) is not None:
            return await self._judge_names(unit) or twice
        while answer is None:
            answer = await self._try(unit, seen) or judge(unit, seen)
        if answer == Committed():
            news = news_of((unit,))
            shared.notices.announce(news)
            shared.arrivals.hear(news)
        return answer

    async def _read(self, unit: Unit) -> _Seen:
        run_ids = [change.run_id for change in unit.changes]
        rows = (await self._ask.headers(run_ids)).rows
        self._ask.shared.forget(run_id for run_id in run_ids if run_id not in rows)
        return {run_id: self._ask.shared.known(run_id) for run_id in run_ids}

    def _plan(self, unit: Unit, seen: Mapping[str, Known | None]) -> Plan:
        ask = self._ask
        cap = self._caps.get(unit.tenant)
        if cap is None and any_leaves(unit, seen):
            cap = CapRow(tenant=unit.tenant, running=0, limit=UNCAPPED)
        now = ask.system.now()
        return build(unit, seen, tables=ask.tables, shards=ask.shards, now=now, cap=cap)

    async def _try(self, unit: Unit, seen: _Seen) -> Answer | None:
        """Send the transaction; None: judge again by what is in `seen` now."""
        plan = self._plan(unit, seen)
        check_bounds(unit, plan)
        self._requests += 1
        token = token_of(unit.commit_id, self._nonce, self._requests)
        requests = [write.request for write in plan.writes]
        try:
            await self._ask.transact(requests, token)
        except Refused as refused:
            if not (refused.doubtful and await self._is_own(unit)):
                return await self._refused(unit, seen, plan.writes, refused)
        for known in plan.after:
            moved = self._ask.moment if known.header.run_id in plan.moved else None
            self._ask.shared.learn(known.header, known.revision, moved)
        return Committed()

    async def _refused(
        self, unit: Unit, seen: _Seen, writes: Sequence[Write], refused: Refused
    ) -> Answer | None:
        held = [
            (write, reason)
            for write, reason in zip(writes, refused.reasons, strict=True)
            if reason.held
        ]
        if self._take_in(unit, seen, held):
            return None
        return await self._judge_held(unit, held)

    def _take_in(self, unit: Unit, seen: _Seen, held: Sequence[tuple[Write, Reason]]) -> bool:
        """Put the headers that refused a unit into `seen`; False: none did."""
        any_header = False
        for write, reason in held:
            if write.kind not in ("change", "admit"):
                continue
            any_header = True
            run_id = unit.changes[write.place].run_id
            seen[run_id] = None
            if reason.item is None:
                self._ask.shared.forget((run_id,))
            else:
                header, revision = header_of(reason.item), revision_of(reason.item)
                self._ask.shared.learn(header, revision)
                seen[run_id] = Known(header, revision)
        return any_header

    async def _judge_held(self, unit: Unit, held: Sequence[tuple[Write, Reason]]) -> Answer | None:
        """Judge a unit whose headers are right by what else stands in its way."""
        by_kind = {kind: [pair for pair in held if pair[0].kind == kind] for kind in _KINDS}
        for write, _ in by_kind["log"]:  # of a Run that is being deleted
            return SeqConflict(unit.changes[write.place].run_id)
        for write, reason in by_kind["key"]:
            return _key_taken(unit.keys[write.place].key, reason.item)
        for write, reason in by_kind["place"]:
            admit = unit.changes[write.place]
            assert isinstance(admit, Admit)
            if await self._is_taken(unit.tenant, admit, reason.item):
                return ThreadTaken(admit.header.thread, admit.header.position)
        for _, reason in by_kind["cap"]:
            return self._judge_cap(unit.tenant, reason.item)
        return None

    def _judge_cap(self, tenant: str, item: Item | None) -> Answer | None:
        """Return CapReached, None where the cap has changed and there may be room."""
        if item is None:
            raise CorruptRow(
                table="cap", key=tenant, problem="a Run is counted, and no row is there"
            )
        before, now = self._caps.get(tenant), cap_of(item)
        self._caps[tenant] = now
        return CapReached(tenant) if before is None or before.limit == now.limit else None

    async def _is_taken(self, tenant: str, admit: Admit, item: Item | None) -> bool:
        """Tell whether a Run stands at a place; what a deleted one left behind is taken away."""
        ask = self._ask
        if item is None:
            return False
        run_id = text_of(item, "run_id")
        if run_id in (await ask.headers((run_id,))).rows:
            return True
        header = admit.header
        names = thread_key(tenant=tenant, thread=header.thread, position=header.position)
        await ask.delete(
            ask.tables.item,
            key_of(names),
            ConditionExpression="#run = :run",
            ExpressionAttributeNames={"#run": "run_id"},
            ExpressionAttributeValues={":run": text(run_id)},
        )
        return False

    async def _judge_names(self, unit: Unit) -> Answer | None:
        """Judge a unit by its keys alone: it would be refused in any case."""
        ask = self._ask
        found = await self._read(unit)
        for change in unit.changes:
            if isinstance(change, Admit) and found[change.run_id] is not None:
                return SeqConflict(change.run_id)
        for row in unit.keys:
            names = key_key(tenant=row.tenant, run_id=row.run_id, key=row.key)
            item = await ask.get(ask.tables.item, key_of(names))
            if item is not None:
                return _key_taken(row.key, item)
        return None

    async def _is_own(self, unit: Unit) -> bool:
        """Tell whether this unit stands in the store already: its commit id says so (R-20)."""
        ask = self._ask
        for change in unit.changes:
            if change.records:
                last = change.records[-1].row
                where = key_of(record_key(run_id=last.run_id, last_seq=last.seq))
                item = await ask.get(ask.tables.log, where)
                return item is not None and text_of(item, "commit") == unit.commit_id
        return False


_KINDS: Final[tuple[Literal["log", "key", "place", "cap"], ...]] = ("log", "key", "place", "cap")


def _stands(change: Change | Admit, seen: Mapping[str, Known | None]) -> bool:
    return isinstance(change, Admit) or seen[change.run_id] is not None


def _key_taken(key: str, item: Item | None) -> Answer | None:
    if item is None:
        return None
    row = key_row_of(item)
    return KeyTaken(row.key, row.digest, row.receipt)
