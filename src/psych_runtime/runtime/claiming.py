"""Claiming Runs: each by a unit of its own, its log read while that is under way (R-4)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.errors import RunNotFound, StoreError
from psych_runtime.ports.answers import Answer
from psych_runtime.ports.store import Store, Unit
from psych_runtime.runtime.choosing import Pick
from psych_runtime.runtime.commit import commit_surely
from psych_runtime.runtime.execution import Known
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_schema.store import RecordRow, RunRow

__all__ = ["Claimed", "Log", "claim_each"]

_SHORT_LOG: Final = 64  # records that are read while the Run is being claimed

type Log = Sequence[RecordRow]


class Claimed(NamedTuple):
    """A claim and its answer; what is known of the log then, None: it has to be read."""

    pick: Pick
    answer: Answer
    known: Known | None


async def claim_each(
    store: Store,
    picks: Sequence[Pick],
    *,
    worker: str,
    system: System,
    give_up: Callable[[], bool],
    logs: Mapping[str, Log],
) -> list[Claimed]:
    """Take Runs; losing a race is normal. Raises Lost once `give_up` says so.

    `logs` are logs that are known already, up to the heads.
    """
    units = [
        claim_unit(
            one.header,
            Claim.of(one.header, worker=worker, crashes=one.crashes),
            system=system,
        )
        for one in picks
    ]
    unread = [one.header for one in picks if one.header.run_id not in logs]
    reading = asyncio.ensure_future(_read_ahead(store, unread)) if unread else None
    try:
        answers = await commit_surely(store, units, system=system, give_up=give_up)
        if reading is not None:
            logs = {**logs, **await reading}
    finally:
        if reading is not None:
            reading.cancel()
    return [
        Claimed(one, answer, _known(logs.get(one.header.run_id), unit))
        for one, unit, answer in zip(picks, units, answers, strict=True)
    ]


async def _read_ahead(store: Store, headers: Sequence[RunRow]) -> Mapping[str, Log]:
    """Read short logs up to their heads: what is committed does not change."""

    async def read(header: RunRow) -> tuple[str, Log] | None:
        try:
            rows = await store.read(header.tenant, header.run_id, limit=header.head)
        except (StoreError, RunNotFound):
            return None  # whoever needs it reads it later
        return (header.run_id, rows) if len(rows) == header.head else None

    short = (header for header in headers if header.head <= _SHORT_LOG)
    found = await asyncio.gather(*map(read, short))
    return dict(one for one in found if one is not None)


def _known(log: Log | None, unit: Unit) -> Known | None:
    if log is None:
        return None
    [claim] = unit.changes[0].records
    return Known(log, claim)
