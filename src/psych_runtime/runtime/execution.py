"""From a claim to the end of an attempt: read, fold, run, and say what went wrong."""

import logging
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from psych_runtime.core.codec import Entry, Position, decode, seal
from psych_runtime.core.header import header_change, pause_seconds
from psych_runtime.errors import (
    ContentErased,
    CorruptLog,
    NewerRecord,
    PsychError,
    RunNotFound,
    StoreError,
)
from psych_runtime.ports.answers import Answer, SeqConflict
from psych_runtime.ports.store import Change, Sealed, Unit
from psych_runtime.runtime.agent import run_agent
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import ask_surely, commit_surely
from psych_runtime.runtime.history import read_before
from psych_runtime.runtime.settle import settle, unknown_outcome
from psych_runtime.runtime.signals import Lost, Stale
from psych_runtime.runtime.takeover import (
    End,
    Folded,
    admission,
    fold_entries,
    mark_corrupt,
    take_and_settle,
)
from psych_schema.common import Scope
from psych_schema.record import AttemptEnded, Failure, ModelFailed
from psych_schema.spec import AgentSpec
from psych_schema.store import RecordRow

__all__ = ["Known", "execute"]

_log: Final = logging.getLogger("psych_runtime")


class Known(NamedTuple):
    """What is known of a log when its Run has been claimed: everything, the claim too."""

    rows: Sequence[RecordRow]  # up to the claim
    claim: Sealed


async def execute(attempt: Attempt, spec: AgentSpec, known: Known | None = None) -> None:
    """Run one attempt to its end; returns when the Run is let go, whatever happened.

    Without `known` the log is read first.
    """
    host = attempt.host
    try:
        folded = await _fold(attempt, known)
        if folded is None or folded.state.epoch != attempt.epoch:
            return
        attempt.begin(
            admitted=folded.admitted,
            spec=spec,
            run_salt=folded.run_salt,
            state=folded.state,
            conversation=folded.conversation,
            awaited=folded.awaited,
            streaks=folded.streaks,
        )
        await _run(attempt, folded.admitted.scope)
    except Lost:
        return
    except CorruptLog as error:
        _log.error("%s", error)
        if error.run_id != attempt.run_id:  # a predecessor's: this log is what it should be
            await _release(attempt, error)
            return
        await mark_corrupt(
            host.store, attempt.tenant, attempt.run_id, epoch=attempt.epoch, system=host.system
        )
    except ContentErased as error:  # of a predecessor: no later attempt would find it either
        _log.warning("run %s: %s", attempt.run_id, error)
        await _fail(attempt, error)
    except (NewerRecord, RunNotFound, StoreError) as error:
        _log.warning("run %s: %s", attempt.run_id, error)
        await _release(attempt, error)


async def _fold(attempt: Attempt, known: Known | None) -> Folded | None:
    """Fold the log and what was said before it; None when the claim is not in it."""
    store, tenant = attempt.host.store, attempt.tenant
    if known is None:
        rows: Sequence[RecordRow] = await ask_surely(partial(store.read, tenant, attempt.run_id))
        if not rows or rows[-1].seq < attempt.header.head + 1:
            return None
        claim: list[Entry] = []
    else:
        rows = known.rows
        claim = [Entry(known.claim.record, known.claim.hash)]
    first = decode(rows[0])
    admitted = admission(first)
    before = await ask_surely(partial(read_before, store, tenant, admitted))
    rest = chain(map(decode, rows[1:]), claim)
    return fold_entries([first], rest, run_salt=rows[0].salt or "", before=before)


async def _run(attempt: Attempt, scope: Scope) -> None:
    """Run the agent in the Run's own context; a bug ends the attempt, not the worker."""
    context = attempt.host.runtime.new_context(scope)
    agent = attempt.host.spawn(run_agent(attempt), context)
    try:
        await agent
    except Lost:
        lost = attempt.journal.lost
        if isinstance(lost, CorruptLog):
            raise lost from None
        if lost is not None and not isinstance(lost, Lost):
            _log.error("run %s: %s", attempt.run_id, lost, exc_info=lost)
            attempt.broken = True
        raise
    except Exception as error:  # a bug, ours or an adapter's: the Run is tried again, later
        _log.exception("run %s: the attempt failed", attempt.run_id)
        try:
            await _end_with_error(attempt, error)
        except CorruptLog as bug:  # of this attempt's live state: the log is not to blame
            attempt.broken = True
            attempt.journal.lose(bug)
            raise Lost(str(bug)) from bug


async def _end_with_error(attempt: Attempt, error: Exception) -> None:
    """Close what is open and let the Run go; after too many times it fails (R-7)."""
    journal, state = attempt.journal, attempt.state
    while journal.lost is None:
        now = attempt.now()
        for call in list(state.ids("model", "open")):
            turn = state.get("model", call).get("turn")
            journal.note(
                ModelFailed(
                    run_id=attempt.run_id,
                    id=attempt.new_id("rec"),
                    at=now,
                    call=call,
                    turn=turn if isinstance(turn, int) else None,
                    failure=Failure(code="attempt_failed", transient=False),
                    next="retry",
                )
            )
        for call in list(state.ids("call", "started")):
            one = state.get("call", call)
            if one.epoch == state.epoch and not one.get("safe_to_retry"):
                journal.note(
                    unknown_outcome(attempt.run_id, call, record_id=attempt.new_id("rec"), at=now)
                )
        try:
            if attempt.header.crashes + 1 >= attempt.host.max_attempts:
                await settle(attempt, "failed", "attempts_exhausted")
                return
            await journal.decide(
                AttemptEnded(
                    run_id=attempt.run_id,
                    id=attempt.new_id("rec"),
                    at=now,
                    reason="error",
                    code=_code_of(error),
                )
            )
            attempt.parked_seconds = pause_seconds(attempt.header.crashes)
            return
        except Stale:
            continue


def _code_of(error: Exception) -> str:
    """Return a stable code: the library's own, else that foreign code failed."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) and code.replace("_", "").isalnum() else "internal_error"


async def _fail(attempt: Attempt, error: PsychError) -> None:
    """Settle a Run that can never begin."""
    worker = attempt.host.lease.worker
    if worker is not None:
        await take_and_settle(
            attempt.host.store,
            attempt.header.model_copy(update={"epoch": attempt.epoch}),
            End("failed", error.code),
            worker=worker,
            crashes=attempt.header.crashes,
            system=attempt.host.system,
        )


async def _release(attempt: Attempt, error: PsychError) -> None:
    """Let a Run go that this attempt cannot begin: to a newer worker (R-16), or for later."""
    needs = error.needs_version if isinstance(error, NewerRecord) else None
    attempt.left_alone = needs is not None
    if needs is None:
        attempt.parked_seconds = pause_seconds(attempt.header.crashes)
    system = attempt.host.system
    ended = AttemptEnded(
        run_id=attempt.run_id,
        id=system.new_id("rec"),
        at=system.now(),
        reason="error" if needs is None else "blocked",
        code=_code_of(error) if needs is None else None,
        needs_version=needs,
    )
    answer: Answer = SeqConflict(attempt.run_id)
    while isinstance(answer, SeqConflict):
        unit = await _unit_behind_the_head(attempt, ended)
        [answer] = await commit_surely(attempt.host.store, [unit], system=system)


async def _unit_behind_the_head(attempt: Attempt, ended: AttemptEnded) -> Unit:
    """Return a unit that needs no log: it goes behind records that may be unreadable."""
    store, system = attempt.host.store, attempt.host.system
    found = await ask_surely(partial(store.header, attempt.tenant, attempt.run_id))
    head = Position(found.head, found.head_hash, found.head_at)
    commit_id = system.new_id("com")
    sealed = seal(
        [ended],
        head,
        tenant=attempt.tenant,
        epoch=attempt.epoch,
        commit_id=commit_id,
        salts=(),
    )
    crashes = attempt.header.crashes
    header = header_change([(ended, [])], first_seq=head.seq + 1, crashes=crashes)
    change = Change(attempt.run_id, head.seq, attempt.epoch, tuple(sealed), header)
    return Unit(commit_id, attempt.tenant, (change,))
