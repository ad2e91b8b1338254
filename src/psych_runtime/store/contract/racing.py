"""Writers that race behind every fault: each message is written once, in a whole log (R-20)."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from psych_runtime.core.codec import outline_commit
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Answer, Committed, KeyTaken, SeqConflict
from psych_runtime.ports.checks import check, same
from psych_runtime.ports.store import Store, Unit
from psych_runtime.store.contract._build import TENANT, admission
from psych_runtime.store.contract._check import Harness
from psych_runtime.store.contract._faults import (
    COMMIT_FAULTS,
    Chance,
    Steered,
    commit_ids,
    keyed,
    receipt_of,
)
from psych_runtime.store.faults import FaultKind, FaultyStore

__all__ = ["writers_behind_every_fault_write_each_message_once"]

_WRITERS: Final = 16
_TURNS: Final = 2  # messages of each writer to each of two Runs
_TRIES: Final = 1000
_LONG: Final = 60.0


async def _surely[T](ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again, unchanged, until there is an answer."""
    for _ in range(_TRIES):
        try:
            return await ask()
        except StoreUnavailable:
            await asyncio.sleep(0.001)
    raise AssertionError(f"no answer in {_TRIES} tries")


async def _next_message(store: Store, run_id: str, key: str) -> Unit:
    row = await _surely(lambda: store.header(TENANT, run_id))
    return keyed(run_id, row.head, key, prev=row.head_hash)


async def _is_own(store: Store, sent: Unit, answer: Answer) -> bool:
    """Tell whether a unit is committed, now that it has an answer."""
    if answer == Committed():
        return True
    (part,) = sent.changes
    same(answer, SeqConflict(part.run_id), "the answer to a message that is not there")
    after = part.records[0].row.seq - 1
    (row,) = await _surely(lambda: store.read(TENANT, part.run_id, after=after, limit=1))
    return outline_commit(row) == sent.commit_id


async def _send(store: Store, chance: Chance, run_ids: Iterable[str], key: str) -> list[str]:
    """Send one message to each Run, until each one's fate is known; return the commit ids."""
    missing, found = list(run_ids), list[str]()
    for _ in range(_TRIES):
        units = [await _next_message(store, run_id, key) for run_id in missing]
        answers = await _surely(partial(store.commit, units))
        for sent, answer in zip(units, answers, strict=True):
            if await _is_own(store, sent, answer):
                missing.remove(sent.changes[0].run_id)
                found.append(sent.commit_id)
        if not missing:
            return found
        await asyncio.sleep(0.004 * chance.random())
    raise AssertionError(f"{key} was not written in {_TRIES} tries")


async def _verify(store: Store, run_id: str) -> None:
    """Raise AssertionError unless the chain holds from the second record on, up to the header."""
    rows = await store.read(TENANT, run_id)
    hashes = [hashlib.sha256(row.body.encode()).hexdigest() for row in rows]
    prevs = [json.loads(row.body).get("prev") for row in rows[1:]]
    same(prevs, hashes[:-1], f"the chain of {run_id}")
    row = await store.header(TENANT, run_id)
    same((row.head, row.head_hash), (len(rows), hashes[-1]), f"head and hash of {run_id}")


@check("R-20", "R-1", "LOG-1", "ADM-2", "ST-1", methods=("commit", "read", "header", "twin"))
async def writers_behind_every_fault_write_each_message_once(harness: Harness) -> None:
    """Sixteen that race: logs gapless, chains whole, headers right, keys with their receipts."""
    async with harness.open() as store:
        chances: dict[FaultKind, float] = dict.fromkeys(COMMIT_FAULTS, 0.1)
        faults = Steered(chances | {"doubled": 0.2, "torn": 0.2})
        handles = [FaultyStore(store.twin(), faults) for _ in range(_WRITERS)]
        run_ids = [await admission(store) for _ in range(2)]
        keys: list[str] = []
        written: list[str] = []
        for turn in range(_TURNS):
            mine = [f"message {turn} of {place}" for place in range(_WRITERS)]
            sends = [
                asyncio.create_task(_send(handle, Chance(place), run_ids, key))
                for place, (handle, key) in enumerate(
                    zip(handles, mine, strict=True), turn * _WRITERS
                )
            ]
            await _interrupt(faults, stalls=turn % 2 == 1)
            written += [each for found in await asyncio.gather(*sends) for each in found]
            keys += mine
        await faults.landed()
        for handle in handles:
            await handle.close()
        same(faults.struck.keys(), {*COMMIT_FAULTS, "away", "stalled"}, "faults that struck")
        found = [each for run_id in run_ids for each in (await commit_ids(store, run_id))[1:]]
        same(sorted(found), sorted(written), "commits in the logs")
        for run_id in run_ids:
            await _verify(store, run_id)
            head = (await store.header(TENANT, run_id)).head
            same(head, 1 + len(keys), "messages in a log, and its admission")
            again = [keyed(run_id, head, key) for key in keys]
            receipts = [KeyTaken(key, "d", receipt_of(key)) for key in keys]
            same(await store.commit(again), receipts, "receipts of keys that are sent again")


async def _interrupt(faults: Steered, *, stalls: bool) -> None:
    """Take the store away from the writers until all have met that; then let them go on."""
    if stalls:
        faults.hang()
        await faults.met(_WRITERS)
        faults.go_on()
    else:
        faults.go_away(_LONG)
        await faults.met(_WRITERS)
        faults.go_away(0.0)
