"""A call that was open when its worker died: whether it happened is asked, once (R-9, RUN-1)."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from psych_runtime.ports.policy import Allow
from psych_runtime.runtime.approvals import Cleared, clear
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.tools.arguments import Malformed, read_arguments
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.reconciled import NO_ANSWER
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.model import AskedCall

__all__ = ["can_reconcile", "reconciled"]

_log: Final = logging.getLogger("psych_runtime")

_NO_ANSWER: Final = frozenset({NO_ANSWER, "tool_error", "tool_timeout", "worker_stopping"})
"""How asking itself can end; none of these says anything of the call."""


def can_reconcile(attempt: Attempt, call_id: str, tool: RegisteredTool | None) -> bool:
    """Tell whether a started call that may not run again can be looked up."""
    began = attempt.state.get("call", call_id).epoch < attempt.state.epoch
    return began and tool is not None and tool.reconciler is not None


async def reconciled(
    attempt: Attempt, call_id: str, asked: AskedCall, tool: RegisteredTool
) -> Executed | None:
    """Return what the tool says became of a call, None when nobody knows.

    Asked no earlier than what the worker began can have ended, which is the same however often
    attempts end meanwhile.
    """
    started_at = attempt.awaited.started_at(call_id)
    asks = tool.reconciler
    arguments = read_arguments(tool, asked.arguments)
    if asks is None or started_at is None or isinstance(arguments, Malformed):
        return None
    cleared = clear(attempt, call_id, tool, arguments, Allow())
    if not isinstance(cleared, Cleared):
        return None
    await _may_have_ended(attempt, call_id, tool, started_at)
    attempt.check_held()
    call = StartedCall(
        scope=attempt.admitted.scope,
        run_id=attempt.run_id,
        call_id=call_id,
        idempotency_key=call_id,
        epoch=attempt.epoch,
        arguments=cleared.arguments.values,
        started_at=started_at,
    )
    executed = await attempt.host.tools.execute(asks, cleared.arguments, call)
    if executed is None or (executed.failure and executed.failure.code in _NO_ANSWER):
        said = executed.result.message if executed else None
        _log.warning("run %s: call %s stays unknown: %s", attempt.run_id, call_id, said)
        return None
    return executed


async def _may_have_ended(
    attempt: Attempt, call_id: str, tool: RegisteredTool, started_at: datetime
) -> None:
    """Return once a call is past its timeout, and a lease, by this worker's clock.

    Where the store was away, it began long after its record was made; never after the Run was
    taken, since its worker had to prove its lease.
    """
    lease_seconds = attempt.host.lease.seconds
    epoch = attempt.state.get("call", call_id).epoch
    over = started_at + timedelta(seconds=lease_seconds)
    over = max(over, attempt.awaited.claimed_at(epoch + 1) or over)
    pause = lease_seconds / 20  # somebody may set the clock
    while (rest := tool.timeout_seconds - (attempt.now() - over).total_seconds()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(rest, pause))
