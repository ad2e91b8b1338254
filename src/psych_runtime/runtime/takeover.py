"""Claims, and Runs that are settled by somebody who never holds them (R-4, R-7)."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, Literal, NamedTuple

from psych_runtime._system import System
from psych_runtime._version import __version__
from psych_runtime.core.awaited import Awaited
from psych_runtime.core.codec import Entry, Position, decode, seal
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import Changes, RunState, advance, step
from psych_runtime.core.header import claim_change, header_change
from psych_runtime.core.models import trusted
from psych_runtime.core.streaks import Streaks
from psych_runtime.errors import CorruptLog, NewerRecord, RunNotFound
from psych_runtime.ports.answers import Answer, Committed, LeaseLost, SeqConflict
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.runtime.commit import ask_surely, commit_surely
from psych_runtime.runtime.history import Before
from psych_runtime.runtime.settle import settlement
from psych_schema.common import EndState
from psych_schema.record import AttemptStarted, Record, RunAdmitted
from psych_schema.store import RecordRow, RunRow

__all__ = [
    "Claim",
    "End",
    "Folded",
    "admission",
    "claim_unit",
    "fold_entries",
    "fold_rows",
    "mark_corrupt",
    "take_and_settle",
]

_started: Final = trusted(AttemptStarted)

_ROUNDS: Final = 5  # of a takeover that others' messages keep overtaking


class Claim(NamedTuple):
    """Who claims a Run, and why."""

    worker: str
    reason: Literal["fresh", "woken", "handed_over", "reclaimed"]
    crashes: int

    @classmethod
    def of(cls, header: RunRow, *, worker: str, crashes: int) -> "Claim":
        """Return a claim of the Run as its header stands."""
        match header.state:
            case "running":
                return cls(worker, "reclaimed", crashes)
            case "suspended":
                return cls(worker, "woken", crashes)
            case _:
                return cls(worker, "handed_over" if header.epoch else "fresh", crashes)


class End(NamedTuple):
    """How a Run is to end that nobody executes any more."""

    state: EndState
    code: str


class Folded(NamedTuple):
    """A log that was read to its end."""

    state: RunState
    conversation: Conversation
    awaited: Awaited
    streaks: Streaks
    admitted: RunAdmitted
    run_salt: str


def claim_unit(header: RunRow, claim: Claim, *, system: System) -> Unit:
    """Return the unit that takes a Run: attempt.started under the next epoch."""
    commit_id = system.new_id("com")
    epoch = header.epoch + 1
    started = _attempt_started(header.run_id, claim, system)
    sealed = seal(
        [started],
        Position(header.head, header.head_hash, header.head_at),
        tenant=header.tenant,
        epoch=epoch,
        commit_id=commit_id,
        salts=(),
    )
    change = Change(
        header.run_id,
        header.head,
        header.epoch,
        tuple(sealed),
        claim_change(header, worker=claim.worker, crashes=claim.crashes),
    )
    return Unit(commit_id, header.tenant, (change,))


def _attempt_started(run_id: str, claim: Claim, system: System) -> AttemptStarted:
    return _started(
        run_id=run_id,
        id=system.new_id("rec"),
        at=system.now(),
        worker=claim.worker,
        build=__version__,
        reason=claim.reason,
        crashes=claim.crashes,
    )


def admission(entry: Entry) -> RunAdmitted:
    """Return the admission that a log begins with. Raises CorruptLog for another record."""
    first = entry.record
    if not isinstance(first, RunAdmitted):
        raise CorruptLog(reason="run_is_none", run_id=first.run_id, seq=first.seq)
    return first


def fold_entries(
    entries: Sequence[Entry], rest: Iterable[Entry], *, run_salt: str, before: Before = Before()
) -> Folded:
    """Fold a whole log: `entries`, at least its first, then `rest`. Raises CorruptLog.

    `before` is what was said in its thread.
    """
    first = admission(entries[0])
    conversation, awaited, streaks = Conversation(*before), Awaited(), Streaks()
    state = RunState()
    for entry in chain(entries, rest):
        advance(state, entry)
        conversation.add(entry.record)
        awaited.add(entry.record)
        streaks.add(entry.record)
    return Folded(state, conversation, awaited, streaks, first, run_salt)


def fold_rows(rows: Sequence[RecordRow]) -> Folded:
    """Fold a whole log. Raises CorruptLog, NewerRecord."""
    rest = map(decode, rows[1:])
    return fold_entries([decode(rows[0])], rest, run_salt=rows[0].salt or "")


async def mark_corrupt(
    store: Store, tenant: str, run_id: str, *, epoch: int, system: System
) -> None:
    """Say in the header that the log cannot be read; the log stays as it is (LOG-3)."""
    corrupt = HeaderChange(state="corrupt", worker=None, wake_at=None, deadline_at=None)
    answer: Answer = SeqConflict(run_id)
    while isinstance(answer, SeqConflict):
        header = await ask_surely(partial(store.header, tenant, run_id))
        change = Change(run_id, header.head, epoch, (), corrupt)
        unit = Unit(system.new_id("com"), tenant, (change,))
        [answer] = await commit_surely(store, [unit], system=system)


async def take_and_settle(
    store: Store, header: RunRow, end: End, *, worker: str, crashes: int, system: System
) -> bool:
    """Settle a Run in ONE unit at the head that was folded; nobody holds it in between (R-4).

    The fence is the epoch that the caller judged by, never one read later; another epoch, and
    it gives up. True: the Run has settled by this call.
    """
    judged = header.epoch
    for _ in range(_ROUNDS):
        tenant, run_id = header.tenant, header.run_id
        try:
            header = await ask_surely(partial(store.header, tenant, run_id))
            rows = await ask_surely(partial(store.read, tenant, run_id))
        except RunNotFound:
            return False
        if header.state in ("settled", "corrupt") or header.epoch != judged:
            return False
        try:
            unit = _settling_unit(header, rows, end, worker, crashes, system)
        except CorruptLog:
            await mark_corrupt(store, tenant, run_id, epoch=judged, system=system)
            return False
        except NewerRecord:
            return False
        [answer] = await commit_surely(store, [unit], system=system)
        if isinstance(answer, Committed):
            return True
        if isinstance(answer, LeaseLost):
            return False
        await asyncio.sleep(system.random() * 0.02)
    return False


def _settling_unit(
    header: RunRow,
    rows: list[RecordRow],
    end: End,
    worker: str,
    crashes: int,
    system: System,
) -> Unit:
    if len(rows) < header.head:
        raise CorruptLog(reason="log_is_short", run_id=header.run_id, seq=len(rows) + 1)
    folded = fold_rows(rows[: header.head])
    if folded.state.position.hash != header.head_hash:
        raise CorruptLog(reason="head_does_not_fit", run_id=header.run_id, seq=header.head)
    state = folded.state.overlay()
    claim = Claim.of(header, worker=worker, crashes=crashes)
    written: list[tuple[Record, Changes]] = []

    def write(record: Record) -> None:
        changes = step(state, record)
        state.apply(record, changes)
        written.append((record, changes))

    write(_attempt_started(header.run_id, claim, system))
    aborted = state.get("abort").phase != "none"
    found = settlement(
        state,
        folded.conversation,
        folded.admitted,
        end="aborted" if aborted else end.state,
        code="aborted" if aborted else end.code,
        output=None,
        system=system,
        now=system.now(),
    )
    for record in (*found.closers, found.settled):
        write(record)
    commit_id = system.new_id("com")
    sealed = seal(
        [record for record, _ in written],
        Position(header.head, header.head_hash, header.head_at),
        tenant=header.tenant,
        epoch=header.epoch + 1,
        commit_id=commit_id,
        salts=iter(system.salt, ""),
    )
    changed = header_change(written, first_seq=header.head + 1, crashes=header.crashes)
    changed = replace(changed, epoch=header.epoch + 1)
    change = Change(header.run_id, header.head, header.epoch, tuple(sealed), changed)
    linked = found.linked(system)
    more = linked(commit_id) if linked else ()
    return Unit(commit_id, header.tenant, (change, *more), found.keys(header.tenant))
