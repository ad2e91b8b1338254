"""From a claim to the end of an attempt: read, fold, run, and say what went wrong."""

import asyncio
import logging
from typing import Final

from psych_runtime.core.codec import outline, seal
from psych_runtime.core.header import header_change
from psych_runtime.errors import (
    ContentErased,
    CorruptLog,
    NewerRecord,
    RunNotFound,
    StoreError,
)
from psych_runtime.ports.store import Change, Unit
from psych_runtime.runtime.agent import run_agent
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import FIRST_DELAY_SECONDS, commit_surely, longer
from psych_runtime.runtime.settle import settle, unknown_outcome
from psych_runtime.runtime.signals import Lost, Stale
from psych_runtime.runtime.takeover import fold_rows, mark_corrupt
from psych_schema.common import Scope
from psych_schema.record import AttemptEnded, Failure, ModelFailed
from psych_schema.spec import AgentSpec
from psych_schema.store import RecordRow

__all__ = ["execute"]

_log: Final = logging.getLogger("psych_runtime")


async def execute(attempt: Attempt, spec: AgentSpec) -> None:
    """Run one attempt to its end; returns when the Run is let go, whatever happened."""
    host = attempt.host
    rows: list[RecordRow] = []
    try:
        rows = await _read(attempt)
        if not rows or rows[-1].seq < attempt.header.head + 1:
            return
        folded = await fold_rows(host.store, attempt.tenant, rows)
        if folded.state.epoch != attempt.epoch:
            return
        attempt.begin(
            admitted=folded.admitted,
            spec=spec,
            run_salt=folded.run_salt,
            state=folded.state,
            conversation=folded.conversation,
        )
        await _run(attempt, folded.admitted.scope)
    except Lost:
        return
    except CorruptLog as error:
        _log.error("%s", error)
        await _give_up_corrupt(attempt)
    except NewerRecord as error:
        await _release(attempt, rows, error.needs_version)
    except (RunNotFound, ContentErased, StoreError) as error:
        _log.warning("run %s: %s", attempt.run_id, error)


async def _read(attempt: Attempt) -> list[RecordRow]:
    delay = FIRST_DELAY_SECONDS
    while True:
        try:
            return await attempt.host.store.read(attempt.tenant, attempt.run_id)
        except StoreError:
            await asyncio.sleep(delay)
            delay = longer(delay)


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
        raise
    except Exception as error:  # a bug, ours or an adapter's: the Run is tried again, later
        _log.exception("run %s: the attempt failed", attempt.run_id)
        await _end_with_error(attempt, error)


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
            return
        except Stale:
            continue


def _code_of(error: Exception) -> str:
    """Return a stable code: the library's own, else that foreign code failed."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) and code.replace("_", "").isalnum() else "internal_error"


async def _give_up_corrupt(attempt: Attempt) -> None:
    header = await attempt.host.store.header(attempt.tenant, attempt.run_id)
    await mark_corrupt(attempt.host.store, header, epoch=attempt.epoch, system=attempt.host.system)


async def _release(attempt: Attempt, rows: list[RecordRow], needs_version: int) -> None:
    """Leave a Run to a newer worker, behind a record that this build cannot read (R-16)."""
    system = attempt.host.system
    head = outline(rows[-1]).position
    commit_id = system.new_id("com")
    ended = AttemptEnded(
        run_id=attempt.run_id,
        id=system.new_id("rec"),
        at=system.now(),
        reason="blocked",
        needs_version=needs_version,
    )
    sealed = seal(
        [ended],
        head,
        tenant=attempt.tenant,
        epoch=attempt.epoch,
        commit_id=commit_id,
        salts=(),
    )
    header = header_change([(ended, [])], first_seq=head.seq + 1, crashes=0)
    change = Change(attempt.run_id, head.seq, attempt.epoch, tuple(sealed), header)
    unit = Unit(commit_id, attempt.tenant, (change,))
    await commit_surely(attempt.host.store, [unit], system=system)
