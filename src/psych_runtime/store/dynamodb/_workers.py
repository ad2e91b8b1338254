"""Workers' rows: leases, deaths, and which workers hold Runs (R-5, R-6, R-14).

Instants are the caller's clock, which another caller does not share. So a death is observed: a
worker is dead whose beat has not changed during one lease of the observer's own clock.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from psych_runtime.ports.store import Renewed
from psych_runtime.store._contact import in_contact
from psych_runtime.store._order import seen
from psych_runtime.store._storable import check_storable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._failures import Refused
from psych_runtime.store.dynamodb._items import worker_item, worker_of
from psych_runtime.store.dynamodb._names import Key, escaped, holder_key, key_of, unescaped
from psych_runtime.store.dynamodb._wire import (
    Attribute,
    boolean,
    has,
    instant,
    number,
    text,
    text_of,
)
from psych_schema.base import parse_instant
from psych_schema.dynamodb import worker_key
from psych_schema.store import RunRow, WorkerRow

__all__ = ["bury", "dead_holders", "enlist", "held_runs", "renew", "sweep", "workers"]

_LOOKS_APART_SECONDS: Final = 0.5  # of one observer, or a quarter of its lease
_KEPT: Final = timedelta(minutes=1)  # far longer than any index lags


def _where(worker: str) -> Key:
    return key_of(worker_key(id=worker))


async def _rows(ask: Ask) -> list[WorkerRow]:
    within = Range(ask.tables.item, None, worker_key(id="")["pk"])
    rows = [worker_of(item) for item in await ask.query_all(within)]
    if ask.shared.observe_all(rows):
        ask.shared.arrivals.tell()
    return rows


async def workers(ask: Ask) -> list[WorkerRow]:
    """Return the rows of workers that are not dead."""
    return [row for row in await _rows(ask) if not row.dead]


async def enlist(
    ask: Ask, worker: str, lease_seconds: float, build: str, tools: Sequence[str]
) -> datetime:
    """Write a worker's row, or renew it; return now."""
    check_storable(worker, build, *tools)
    now = ask.system.now()
    row = WorkerRow(
        id=worker,
        lease_until=now + timedelta(seconds=lease_seconds),
        lease_seconds=lease_seconds,
        beat=0,
        since=now,
        dead=False,
        build=build,
        tools=tuple(tools),
    )
    item = worker_item(_where(worker), row, now + timedelta(seconds=lease_seconds / 2))
    item["call"] = text(ask.system.salt())
    if await ask.put_new(ask.tables.item, item, own="call"):
        ask.shared.unnote("worker", worker)
        ask.shared.look_again()
        ask.shared.observe([row])
    else:
        await _prolong(ask, worker, lease_seconds, now)
    return now


async def renew(
    ask: Ask, worker: str, lease_seconds: float, run_ids: Sequence[str]
) -> Renewed | None:
    """Prolong a lease and tell about Runs; None when the worker is dead or unknown."""
    check_storable(worker, *run_ids)
    now = ask.system.now()
    row, headers = await asyncio.gather(
        _prolong(ask, worker, lease_seconds, now), ask.headers(run_ids)
    )
    if row is None:
        return None
    return Renewed(now, {run_id: seen(found, now) for run_id, found in headers.rows.items()})


async def _prolong(ask: Ask, worker: str, lease_seconds: float, now: datetime) -> WorkerRow | None:
    """Write a beat: first as of a contact that is unbroken, which it nearly always is.

    Each call names itself in the row, so that one whose answer was lost does not beat twice.
    """
    name = ask.system.salt()
    values: dict[str, Attribute] = {
        ":one": number(1),
        ":now": instant(now),
        ":until": instant(now + timedelta(seconds=lease_seconds)),
        ":good": instant(now + timedelta(seconds=lease_seconds / 2)),
        ":seconds": number(lease_seconds),
        ":no": boolean(False),
        ":call": text(name),
    }
    for is_broken in (False, True):
        kept = "" if not is_broken else ", #since = :now"
        good = "#good < :now" if is_broken else "#good >= :now"
        names = {"#dead": "dead", "#until": "lease_until", "#seconds": "lease_seconds"}
        names |= {"#good": "good_until", "#beat": "beat", "#call": "call"}
        names |= {"#since": "since"} if kept else {}
        sets = "#until = :until, #seconds = :seconds, #good = :good, #beat = #beat + :one"
        sets += ", #call = :call"
        try:
            item = await ask.update(
                ask.tables.item,
                _where(worker),
                UpdateExpression=f"SET {sets}{kept}",
                ConditionExpression=f"#dead = :no AND {good} AND #call <> :call",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        except Refused as refused:
            there = refused.reasons[0].item
            if there is None or worker_of(there).dead:
                return None
            if text_of(there, "call") == name:
                return worker_of(there)
            continue
        if item is not None:
            row = worker_of(item)
            ask.shared.observe([row])
            return row
    return await _prolong(ask, worker, lease_seconds, now)  # two beats came at one moment


class _Look(NamedTuple):
    """What one look at all workers has come to; `next_seconds` is when another one falls due."""

    buried: Sequence[str]
    next_seconds: float | None = None


async def bury(ask: Ask, observer: str) -> list[str]:
    """Mark every worker dead that was silent for one lease, if the observer may judge (R-6).

    A beat is seen by the next look, and its silence is over between two looks. So that these do
    not add up, a look waits for whoever falls due before the observer's next one, and looks again.
    """
    check_storable(observer)
    found = await _look(ask, observer)
    buried = found.buried
    if found.next_seconds is not None:
        await ask.rest(found.next_seconds)
        buried = [*buried, *(await _look(ask, observer)).buried]
    return sorted(buried)


async def _look(ask: Ask, observer: str) -> _Look:
    rows = await _rows(ask)
    now = ask.system.now()
    judge = next((row for row in rows if row.id == observer), None)
    if judge is None or judge.dead or not in_contact(judge, now):
        return _Look(())
    alive = [(row, ask.shared.silent_in(row)) for row in rows if not row.dead]
    silent = [row.id for row, seconds in alive if seconds <= 0]
    ends = await asyncio.gather(*[_bury(ask, row) for row, seconds in alive if seconds <= 0])
    dead = [worker for worker, end in zip(silent, ends, strict=True) if end != "beaten"]
    if dead:
        ask.shared.hear(dead)
        ask.shared.arrivals.tell()
    next_look = min(_LOOKS_APART_SECONDS, judge.lease_seconds / 4)
    soon = [seconds for _, seconds in alive if 0 < seconds < next_look]
    buried = [worker for worker, end in zip(silent, ends, strict=True) if end == "buried"]
    return _Look(buried, min(soon, default=None))


async def _bury(ask: Ask, row: WorkerRow) -> Literal["buried", "dead", "beaten"]:
    """Mark one worker dead unless it has beaten meanwhile, or somebody else has marked it."""
    try:
        await ask.update(
            ask.tables.item,
            _where(row.id),
            UpdateExpression="SET #dead = :yes",
            ConditionExpression="#dead = :no AND #beat = :beat",
            ExpressionAttributeNames={"#dead": "dead", "#beat": "beat"},
            ExpressionAttributeValues={
                ":yes": boolean(True),
                ":no": boolean(False),
                ":beat": number(row.beat),
            },
        )
    except Refused as refused:
        there = refused.reasons[0].item
        if there is None or not worker_of(there).dead:
            return "beaten"
        # an earlier try of ours whose answer was lost: nobody else counts this death
        return "buried" if refused.doubtful else "dead"
    return "buried"


async def _holders(ask: Ask) -> dict[str, datetime | None]:
    """Return the workers that have ever held a Run, with the moment since when they hold none."""
    within = Range(ask.tables.item, None, holder_key(worker="")["pk"])
    found: dict[str, datetime | None] = {}
    for item in await ask.query_all(within):
        idle = parse_instant(text_of(item, "idle_at")) if has(item, "idle_at") else None
        found[unescaped(text_of(item, "sk"))] = idle
    return found


async def dead_holders(ask: Ask) -> frozenset[str]:
    """Return the workers that are dead or have no row, and that may hold Runs.

    Their names are read before the rows: a worker has its row before it holds a Run.
    """
    kept = ask.shared.dead(ask.moment)
    if kept is not None:
        return kept
    deaths = ask.shared.deaths
    holders = await _holders(ask)
    live = {row.id for row in await _rows(ask) if not row.dead}
    dead = frozenset(holders.keys() - live)
    ask.shared.keep_dead(dead, ask.moment, deaths)
    return dead


async def held_runs(ask: Ask, names: Collection[str]) -> list[RunRow]:
    """Return the running Runs of workers, as they are now."""
    found = await asyncio.gather(*[_indexed(ask, worker) for worker in names])
    run_ids = {run_id for each in found for run_id in each}
    run_ids |= {row.run_id for row in ask.shared.lately(ask.moment) if row.worker in names}
    rows = (await ask.headers(run_ids)).rows if run_ids else {}
    return [row for row in rows.values() if row.state == "running" and row.worker in names]


async def _indexed(ask: Ask, worker: str) -> list[str]:
    if not worker:
        return []
    within = Range(ask.tables.run, "worker", escaped(worker))
    items = await ask.query_all(within)
    return [unescaped(text_of(item, "worker_sk")) for item in items]


async def sweep(ask: Ask) -> None:
    """Delete dead workers' rows that no header names.

    That a worker holds nothing is said by an index, which lags. So its name is kept for a
    minute longer, and is looked for as that of a worker without a row.
    """
    holders = await _holders(ask)
    rows = await _rows(ask)
    now = ask.system.now()
    dead = {row.id for row in rows if row.dead}
    gone = holders.keys() - {row.id for row in rows}
    candidates = sorted(dead | gone)
    named = {row.worker for row in await held_runs(ask, candidates)}
    idle = [worker for worker in candidates if worker not in named]
    await asyncio.gather(*[_forget(ask, worker, holders, now) for worker in idle])
    if idle:
        ask.shared.look_again()


async def _forget(
    ask: Ask, worker: str, holders: dict[str, datetime | None], now: datetime
) -> None:
    where = key_of(holder_key(worker=worker))
    if worker in holders:
        since = holders[worker]
        if since is None:
            await _mark_idle(ask, where, now)
        elif since + _KEPT < now:
            await ask.delete(ask.tables.item, where)
            ask.shared.unnote("worker", worker)
    await ask.delete(
        ask.tables.item,
        _where(worker),
        ConditionExpression="#dead = :yes",
        ExpressionAttributeNames={"#dead": "dead"},
        ExpressionAttributeValues={":yes": boolean(True)},
    )


async def _mark_idle(ask: Ask, where: Key, now: datetime) -> None:
    try:
        await ask.update(
            ask.tables.item,
            where,
            UpdateExpression="SET #idle = :now",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeNames={"#idle": "idle_at"},
            ExpressionAttributeValues={":now": instant(now)},
        )
    except Refused:  # another sweep was faster
        return
