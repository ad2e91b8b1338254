"""The test's agent: the real loop, which besides asks people before it pays, and waits for them.

It writes approvals and waits through the same attempt and journal, so that decisions and
deliveries from outside meet the engine at any record boundary.
"""

from datetime import timedelta

from psych_runtime.core.codec import sha256
from psych_runtime.runtime import agent as real
from psych_runtime.runtime import execution
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.signals import Stale
from psych_runtime.tools.arguments import Arguments, read_arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import RegisteredTool
from psych_schema.model import AskedCall
from psych_schema.record import (
    ApprovalExpired,
    ApprovalRequested,
    RunSuspended,
    ToolCompleted,
    ToolRefused,
    ToolStarted,
    WaitOpened,
    WaitResolved,
)

__all__ = ["WAITS", "install", "wait_of"]

PAY = "pay"
WAITS = "and wait"
"""A Run whose input says so waits for an answer before it begins."""


def install() -> None:
    """Let attempts of this process run the test's agent."""
    setattr(execution, "run_agent", run_agent)  # noqa: B010  the name is mypy's to keep


def wait_of(run_id: str) -> str:
    """Return the id of the wait that a Run begins with."""
    return f"wait_{run_id.partition('_')[2]}"


async def run_agent(attempt: Attempt) -> None:
    """Execute the Run until this attempt ends in order. Raises Lost."""
    ended = False
    while not ended:
        try:
            ended = await _look(attempt)
        except Stale:
            continue


async def _look(attempt: Attempt) -> bool:
    if attempt.stop() is not None:
        return await real._look(attempt)
    if await _wait_first(attempt) or await _ask(attempt):
        return False
    if attempt.state.any("call", "asked", "started"):
        return await real._look(attempt)
    if await _pay(attempt):
        return False
    if attempt.state.any("approval", "open") or attempt.state.any("wait", "open"):
        return await _suspend(attempt)
    return await real._look(attempt)


def _rest(attempt: Attempt) -> float | None:
    """Return how long a person has, in this Run; None is for ever."""
    return (None, 8.0, 30.0)[sum(map(ord, attempt.run_id)) % 3]


async def _wait_first(attempt: Attempt) -> bool:
    """Open the Run's wait, or end it when it has expired; True: something was done."""
    wait_id = wait_of(attempt.run_id)
    if WAITS not in str(attempt.admitted.input):
        return False
    wait = attempt.state.get("wait", wait_id)
    rest = _rest(attempt)
    if wait.phase == "none":
        expires = None if rest is None else attempt.store_now() + timedelta(seconds=rest)
        await attempt.journal.decide(
            WaitOpened(
                run_id=attempt.run_id,
                id=attempt.new_id("rec"),
                at=attempt.now(),
                wait_id=wait_id,
                kind="question",
                ask="May I?",
                expires_at=expires,
            )
        )
        return True
    expires = wait.instant("expires_at")
    if wait.phase != "open" or expires is None or expires > attempt.store_now():
        return False
    await attempt.journal.decide(
        WaitResolved(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            wait_id=wait_id,
            how="expired",
        )
    )
    return True


def _asked(attempt: Attempt, call_id: str) -> tuple[AskedCall, RegisteredTool, Arguments] | None:
    """Return a call of the tool that pays, ready to run; None for any other."""
    record = attempt.conversation.asked(call_id)
    asked = record.said.calls[record.calls.index(call_id)] if record.said else None
    tool = attempt.host.runtime.registry.get(PAY)
    if asked is None or asked.name != PAY or tool is None or record.finish == "length":
        return None
    arguments = read_arguments(tool, asked.arguments)
    return (asked, tool, arguments) if isinstance(arguments, Arguments) else None


async def _ask(attempt: Attempt) -> bool:
    """Request approval for every call that pays; True: something was done."""
    wanted: list[ApprovalRequested] = []
    rest = _rest(attempt)
    for call_id in list(attempt.state.ids("call", "asked")):
        found = _asked(attempt, call_id)
        if found is None:
            continue
        _, tool, arguments = found
        wanted.append(
            ApprovalRequested(
                run_id=attempt.run_id,
                id=attempt.new_id("rec"),
                at=attempt.now(),
                approval_id=attempt.new_id("apr"),
                call_id=call_id,
                identity=tool.identity,
                risk=tool.risk,
                digest=sha256(attempt.run_salt + arguments.digest_text),
                expires_at=None if rest is None else attempt.store_now() + timedelta(seconds=rest),
            )
        )
    if wanted:
        await attempt.journal.decide(*wanted)
    return bool(wanted)


async def _pay(attempt: Attempt) -> bool:
    """Go on with one proposed call whose approval is decided or over; True: something was done."""
    state = attempt.state
    for call_id in list(state.ids("call", "proposed")):
        open_one = _approval(attempt, call_id, "open")
        granted = _approval(attempt, call_id, "granted")
        if open_one is not None:
            expires = state.get("approval", open_one).instant("expires_at")
            if expires is not None and expires <= attempt.store_now():
                await _expire(attempt, open_one)
                return True
        elif granted is not None:
            await _execute(attempt, call_id, granted)
            return True
        else:
            attempt.journal.note(_denied(attempt, call_id))
            return True
    return False


def _approval(attempt: Attempt, call_id: str, phase: str) -> str | None:
    for one in attempt.state.ids("approval", phase):
        if attempt.state.get("approval", one).text("call_id") == call_id:
            return one
    return None


async def _expire(attempt: Attempt, approval_id: str) -> None:
    await attempt.journal.decide(
        ApprovalExpired(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            approval_id=approval_id,
            reason="due",
        )
    )


def _denied(attempt: Attempt, call_id: str) -> ToolRefused:
    return ToolRefused(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call_id,
        code="denied",
        message="Nobody agreed.",
    )


async def _execute(attempt: Attempt, call_id: str, approval_id: str) -> None:
    """Consume the grant, then execute the call it is for."""
    found = _asked(attempt, call_id)
    assert found is not None
    _, tool, arguments = found
    await attempt.journal.decide(
        ToolStarted(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            call_id=call_id,
            tries=1,
            identity=tool.identity,
            digest=sha256(attempt.run_salt + arguments.digest_text),
            safe_to_retry=tool.safe_to_retry,
            interruptible=tool.interruptible,
            key=call_id,
            approval_id=approval_id,
        )
    )
    context = ToolContext(
        scope=attempt.admitted.scope,
        run_id=attempt.run_id,
        call_id=call_id,
        idempotency_key=call_id,
        epoch=attempt.epoch,
    )
    executed = None
    while executed is None:
        await attempt.guard()
        if attempt.stop() is not None:
            break
        executed = await attempt.host.tools.execute(
            tool, arguments, context, may_start=attempt.may_start
        )
    attempt.check_held()
    attempt.journal.note(
        ToolCompleted(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            call_id=call_id,
            outcome="aborted" if executed is None else executed.outcome,
            result=None if executed is None else executed.result,
            failure=None if executed is None else executed.failure,
            duration_seconds=0.0,
            source="executed",
        )
    )


async def _suspend(attempt: Attempt) -> bool:
    """Let go of the Run until a person or an expiry comes."""
    state = attempt.state
    named = [*state.ids("wait", "open"), *state.ids("approval", "open")]
    instants = [
        state.get(kind, one).instant("expires_at")
        for kind in ("wait", "approval")
        for one in state.ids(kind, "open")
    ]
    await attempt.journal.decide(
        RunSuspended(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            waits=tuple(named),
            wake_at=min((one for one in instants if one is not None), default=None),
        )
    )
    return True
