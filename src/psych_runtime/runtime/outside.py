"""Writers that hold no Run: at the head, without a fence, again on a conflict (R-2, R-20).

They read the header, and of the log only the records that it names as open: these say whether a
request is legal. A log that is broken elsewhere is found by the worker that they wake (LOG-3).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.core.codec import Position, decode, seal
from psych_runtime.core.fold import Changes, fold, step
from psych_runtime.core.header import header_change, state_from_header, wake_change
from psych_runtime.errors import (
    CorruptLog,
    IdempotencyConflict,
    RunNotFound,
    RunSettled,
    RunStopping,
)
from psych_runtime.ports import answers
from psych_runtime.ports.answers import Committed, KeyTaken
from psych_runtime.ports.store import Change, Store, Unit
from psych_runtime.runtime.commit import commit_surely
from psych_schema.receipt import Receipt
from psych_schema.record import ApprovalDecided, QueueEnqueued, Record, WaitResolved
from psych_schema.store import KeyRow, RunRow

__all__ = [
    "PATIENCE_SECONDS",
    "Request",
    "known_receipt",
    "opened",
    "outside_unit",
    "request_keys",
    "run_settled",
    "whole_log",
    "write_outside",
    "write_unit",
]

PATIENCE_SECONDS: Final = 10.0
"""How long an outside writer tries before it says StoreUnavailable."""

_FIRST_PAUSE_SECONDS: Final = 0.01
_LONGEST_PAUSE_SECONDS: Final = 1.0


class Request(NamedTuple):
    """One outside write: to which Run, under which key."""

    tenant: str
    run_id: str
    key: str | None
    digest: str  # of the request, to tell a repetition from another one


async def known_receipt(store: Store, request: Request) -> Receipt | None:
    """Return what a request got before; a retry after settlement gets it, too.

    Raises IdempotencyConflict when the key belongs to another request.
    """
    if request.key is None:
        return None
    row = await store.key(request.tenant, request.run_id, request.key)
    return None if row is None else _receipt(request.key, row.digest, row.receipt, request.digest)


def _receipt(key: str, digest: str, text: str, wanted: str) -> Receipt:
    receipt = Receipt.model_validate_json(text)
    if digest != wanted:
        raise IdempotencyConflict(key=key, run_id=receipt.run_id)
    return receipt


async def write_outside(
    store: Store,
    request: Request,
    make: Callable[[RunRow], Awaitable[Sequence[Record]]],
    *,
    system: System,
) -> Receipt:
    """Write the records that `make` returns for the header, all or none.

    The receipt is that of the last one. Raises RunNotFound, RunSettled, RunStopping,
    IdempotencyConflict, CorruptLog, StoreUnavailable, and what `make` raises.
    """

    async def propose() -> tuple[Unit, Receipt]:
        header = await store.header(request.tenant, request.run_id)
        return await outside_unit(store, header, await make(header), request, system)

    return await write_unit(store, request, propose, system=system)


async def write_unit(
    store: Store,
    request: Request,
    propose: Callable[[], Awaitable[tuple[Unit, Receipt]]],
    *,
    system: System,
) -> Receipt:
    """Commit the unit that `propose` returns, asking it again when somebody wrote first.

    Raises RunNotFound, IdempotencyConflict, StoreUnavailable, and what `propose` raises.
    """
    pause = _FIRST_PAUSE_SECONDS
    while True:
        known = await known_receipt(store, request)
        if known is not None:
            return known
        unit, receipt = await propose()
        [answer] = await commit_surely(
            store, [unit], system=system, patience_seconds=PATIENCE_SECONDS
        )
        match answer:
            case Committed():
                return receipt
            case KeyTaken() if answer.key == request.key:
                return _receipt(answer.key, answer.digest, answer.receipt, request.digest)
            case answers.RunNotFound():
                raise RunNotFound(run_id=request.run_id)
            case _:
                await asyncio.sleep(system.random() * pause)
                pause = min(_LONGEST_PAUSE_SECONDS, pause * 2)


async def _moved(store: Store, header: RunRow, record: Record) -> list[Record]:
    """Return the record that opened what `record` decides or resolves."""
    match record:
        case ApprovalDecided():
            name = record.approval_id
        case WaitResolved():
            name = record.wait_id
        case _:
            return []
    return await opened(store, header, [name])


async def opened(store: Store, header: RunRow, names: Iterable[str]) -> list[Record]:
    """Return the records that moved last what a header names as open. Raises CorruptLog."""
    found: list[Record] = []
    for name in names:
        seq = header.open.get(name)
        if seq is not None:
            rows = await store.read(header.tenant, header.run_id, after=seq - 1, limit=1)
            if not rows or rows[0].seq != seq:
                raise CorruptLog(reason="seq_not_next", run_id=header.run_id, seq=seq)
            found += [decode(row).record for row in rows]
    return found


async def whole_log(store: Store, header: RunRow) -> list[Record]:
    """Return every record up to the head. Raises CorruptLog for a log that does not fit."""
    rows = await store.read(header.tenant, header.run_id, limit=header.head)
    entries = [decode(row) for row in rows]
    fold(entries)
    if len(entries) < header.head:
        raise CorruptLog(reason="unreadable", run_id=header.run_id, seq=len(entries) + 1)
    return [one.record for one in entries]


async def run_settled(store: Store, header: RunRow) -> RunSettled:
    """Return the error for a Run that has ended; it says whether anything can go on with it."""
    rows = await store.read(header.tenant, header.run_id, after=header.head - 1, limit=1)
    erased = bool(rows) and rows[0].type == "run.erased"
    return RunSettled(run_id=header.run_id, erased=erased)


async def outside_unit(
    store: Store, header: RunRow, records: Sequence[Record], request: Request, system: System
) -> tuple[Unit, Receipt]:
    """Return the unit that writes `records` behind the head of a Run, and its receipt.

    The key of the request stands under the Run that the caller named, whichever this one is.
    Raises RunSettled, RunStopping, CorruptLog when a record may not follow.
    """
    moved = [one for record in records for one in await _moved(store, header, record)]
    state = state_from_header(header, moved)
    written: list[tuple[Record, Changes]] = []
    try:
        for record in records:
            changes = step(state, record)
            state.apply(record, changes)
            written.append((record, changes))
    except CorruptLog as error:
        raise await _refusal(store, header, error) from None
    commit_id = system.new_id("com")
    sealed = seal(
        records,
        Position(header.head, header.head_hash, header.head_at),
        tenant=header.tenant,
        epoch=0,
        commit_id=commit_id,
        salts=iter(system.salt, ""),
    )
    changed = header_change(written, first_seq=header.head + 1, crashes=header.crashes)
    change = Change(header.run_id, header.head, None, tuple(sealed), wake_change(changed, header))
    last = sealed[-1]
    entry_id = last.record.entry_id if isinstance(last.record, QueueEnqueued) else None
    receipt = Receipt(
        run_id=header.run_id, seq=last.record.seq, entry_id=entry_id, head_hash=last.hash
    )
    return Unit(commit_id, header.tenant, (change,), request_keys(request, receipt)), receipt


def request_keys(request: Request, receipt: Receipt) -> tuple[KeyRow, ...]:
    """Return the row that answers a repetition of the request; none when it has no key."""
    if request.key is None:
        return ()
    row = KeyRow(
        tenant=request.tenant,
        run_id=request.run_id,
        key=request.key,
        digest=request.digest,
        receipt=receipt.model_dump_json(),
    )
    return (row,)


async def _refusal(store: Store, header: RunRow, error: CorruptLog) -> Exception:
    """Return what a caller is told whose record may not follow."""
    if header.state == "settled":
        return await run_settled(store, header)
    if header.state == "corrupt":
        return CorruptLog(reason="corrupt", run_id=header.run_id, seq=header.head)
    if error.reason.startswith("abort_is"):
        return RunStopping(run_id=header.run_id)
    return error
