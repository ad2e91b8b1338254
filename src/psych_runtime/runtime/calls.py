"""The one path of every tool call (TOOL-2).

Narrow, validate, guard, ask the policy, record, execute, record. Calls of a turn run at once;
each is recorded when it ends, and one that fails leaves its siblings alone (MOD-7). A call that
was open when its worker died runs again only if that is safe (RUN-1).
"""

import asyncio
import math
from collections.abc import Container, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from psych_runtime.core.models import trusted
from psych_runtime.ports.policy import Ask, Deny
from psych_runtime.runtime.access import judge_call, permitted_tools
from psych_runtime.runtime.approvals import (
    Cleared,
    Unknown,
    clear,
    denial,
    digest_of,
    grant_of,
    is_decided,
    request,
)
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.builtins import is_builtin, outcome_of
from psych_runtime.runtime.guards import refusal
from psych_runtime.runtime.reconciling import can_reconcile, reconciled
from psych_runtime.runtime.results import Kept, keep
from psych_runtime.runtime.settle import unknown_outcome
from psych_runtime.runtime.signals import Stale
from psych_runtime.runtime.waits import CROWDED, has_room, waits
from psych_runtime.tools.arguments import Arguments, Malformed, expected, read_arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.text import clip
from psych_schema.model import AskedCall
from psych_schema.record import (
    Record,
    RefusalCode,
    ToolCompleted,
    ToolRefused,
    ToolResult,
    ToolStarted,
)

__all__ = ["can_run", "run_calls"]

_tool_completed: Final = trusted(ToolCompleted)
_tool_started: Final = trusted(ToolStarted)

_GIVE_UP_SECONDS: Final = 2.0  # for a call that does not end when it is cut
_NAMES_SHOWN: Final = 20
_REASON_BYTES: Final = 2048
_CUT_BY: Final = {
    "length": "reached the output limit",
    "content_filter": "was cut off by a content filter",
}


class _Call(NamedTuple):
    """An open call and what is known of it."""

    call_id: str
    asked: AskedCall
    place: int  # among the calls of its turn
    cut_by: str | None  # what cut the model's answer short
    is_lost: bool = False  # its worker died while it ran: only what became of it is asked


type _Live = dict[asyncio.Task[tuple[Record, ...]], _Call]
"""The calls that run, in the order they began: a set's order would differ from run to run."""


def can_run(attempt: Attempt) -> bool:
    """Tell whether an open call can go on: not each waits for somebody's decision."""
    return any(
        _can_begin(attempt, call_id)
        for call_id in attempt.state.ids("call", "asked", "proposed", "started")
    )


def _can_begin(attempt: Attempt, call_id: str) -> bool:
    if attempt.state.get("call", call_id).phase == "proposed":
        return is_decided(attempt, call_id)
    return not waits(attempt, call_id)


async def run_calls(attempt: Attempt) -> None:
    """Run the open calls until each is done or waits, or the attempt must stop. Raises Lost.

    A call that is consented to meanwhile begins at once, whatever runs beside it.
    """
    live: _Live = {}
    cuts: dict[str, float] = {}
    try:
        _begin(attempt, live)
        while live:
            done = [task for task in live if task.done()]
            if not done:
                pause = _GIVE_UP_SECONDS / 8 if cuts else None
                await attempt.wait_any(live, timeout_seconds=pause)
                done = [task for task in live if task.done()]
            attempt.check_held()
            ended = [(live.pop(task), task) for task in done]
            for call, task in sorted(ended, key=lambda one: one[0].place):
                _take(attempt, task, call)
            for task, call in live.items():
                _cut(attempt, task, call, cuts)
            if attempt.stop() is None:
                _begin(attempt, live)
    finally:
        for task, call in live.items():
            attempt.host.keep(task)
            if not _keeps_running(attempt, call):
                task.cancel()


def _begin(attempt: Attempt, live: _Live) -> None:
    """Begin what can run and does not run yet; of tools that run alone, one at a time.

    The next of those begins when the last is recorded: a guard must know what came of it.
    """
    loop = asyncio.get_running_loop()
    alone = any(_runs_alone(attempt, call) for call in live.values())
    for call in _open_calls(attempt, {one.call_id for one in live.values()}):
        if _runs_alone(attempt, call):
            if alone:
                continue
            alone = True
        live[asyncio.Task(_one(attempt, call), loop=loop, eager_start=True)] = call


def _runs_alone(attempt: Attempt, call: _Call) -> bool:
    tool = attempt.tools.get(call.asked.name)
    return tool is not None and not tool.concurrent


def _open_calls(attempt: Attempt, running: Container[str]) -> Iterator[_Call]:
    """Yield what is to be run, in the order asked; settle what nobody may run again."""
    state = attempt.state
    for call_id in list(state.ids("call", "asked", "proposed", "started")):
        one = state.get("call", call_id)
        if call_id in running or not _can_begin(attempt, call_id):
            continue
        record = attempt.conversation.asked(call_id)
        calls = record.said.calls if record.said else ()
        place = record.calls.index(call_id)
        call = _Call(call_id, calls[place], place, _CUT_BY.get(record.finish))
        if one.phase == "started" and not (one.get("safe_to_retry") and one.epoch < state.epoch):
            if not can_reconcile(attempt, call_id, attempt.tools.get(call.asked.name)):
                attempt.journal.note(_unknown(attempt, call_id))
                continue
            call = call._replace(is_lost=True)
        yield call


def _take(attempt: Attempt, task: asyncio.Task[tuple[Record, ...]], call: _Call) -> None:
    """Note what a call's task brought."""
    if not task.cancelled():
        error = task.exception()
        if error is not None:
            raise error
        attempt.journal.note(*task.result())
        return
    if attempt.state.get("call", call.call_id).phase != "started":
        return  # it never began: it stays asked
    if _is_left_open(attempt, call):
        return
    if call.is_lost or attempt.host.tools.left_running(call.call_id):
        attempt.journal.note(_unknown(attempt, call.call_id))
    else:
        attempt.journal.note(_aborted(attempt, call))


def _is_left_open(attempt: Attempt, call: _Call) -> bool:
    """Tell whether the next attempt goes on with the call: it may, and we only drain."""
    safe = attempt.state.get("call", call.call_id).get("safe_to_retry") is True
    return (safe or call.is_lost) and attempt.stop() in ("drained", "blocked")


def _unknown(attempt: Attempt, call_id: str) -> ToolCompleted:
    return unknown_outcome(
        attempt.run_id, call_id, record_id=attempt.new_id("rec"), at=attempt.now()
    )


def _aborted(attempt: Attempt, call: _Call) -> ToolCompleted:
    return ToolCompleted(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call.call_id,
        outcome="aborted",
        result=ToolResult(message="The call was cancelled before it ended."),
        duration_seconds=0.0,
        source="executed",
    )


def _cut(
    attempt: Attempt,
    task: asyncio.Task[tuple[Record, ...]],
    call: _Call,
    cuts: dict[str, float],
) -> None:
    """Stop a call when the attempt must (R-19): an async one at once, a sync one after 2 s.

    `cuts` says since when each is to stop; infinity once it was told.
    """
    since = cuts.get(call.call_id)
    if since == math.inf:
        return
    tool = attempt.executing.get(call.call_id)
    if tool is None:
        if call.call_id in attempt.preparing and attempt.stop() is not None:
            cuts[call.call_id] = math.inf
            task.cancel()
        return
    if not attempt.cuts_tool(tool):
        return
    now = attempt.host.system.monotonic()
    since = cuts.setdefault(call.call_id, now)
    waits = tool.is_async and (tool.interruptible or not attempt.forced)
    if waits or now - since >= _GIVE_UP_SECONDS:
        cuts[call.call_id] = math.inf
        task.cancel()


def _keeps_running(attempt: Attempt, call: _Call) -> bool:
    """Tell whether a call runs on although the Run is lost: it must not be interrupted."""
    tool = attempt.executing.get(call.call_id)
    return tool is not None and not tool.interruptible


async def _one(attempt: Attempt, call: _Call) -> tuple[Record, ...]:
    """Bring one call to its end; return what is to be noted. Starts eagerly (R-22)."""
    if call.is_lost:
        return (await _settle_lost(attempt, call, attempt.tools[call.asked.name]),)
    found = _find(attempt, call, await permitted_tools(attempt))
    if isinstance(found, ToolRefused):
        return (found,)
    return await _run(attempt, call, found)


def _find(
    attempt: Attempt, call: _Call, tools: Mapping[str, RegisteredTool]
) -> RegisteredTool | ToolRefused:
    """Narrow: the tool that the Run may use, or a refusal (MOD-3, TOOL-3)."""
    limit = attempt.spec.limits.max_tool_calls_per_turn
    if attempt.state.get("call", call.call_id).phase == "asked":
        if call.cut_by is not None:
            return _refused(
                attempt,
                call,
                "limit",
                f"Your answer {call.cut_by}, so its calls may be incomplete: none was executed. "
                "Ask again with less in one answer.",
            )
        if call.place >= limit:
            return _refused(
                attempt,
                call,
                "limit",
                f"This call was not executed: only the first {limit} calls of an answer are. You "
                f"may ask again: put it among the first {limit} calls of another answer.",
            )
    tool = tools.get(call.asked.name)
    if tool is not None:
        return tool
    names = sorted(tools)
    shown = ", ".join(names[:_NAMES_SHOWN]) or "none"
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    asked = call.asked.name[:64]
    return _refused(
        attempt, call, "unknown", f"There is no tool {asked!r}. You can call: {shown}{more}."
    )


def _refused(attempt: Attempt, call: _Call, code: RefusalCode, message: str) -> ToolRefused:
    return ToolRefused(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call.call_id,
        code=code,
        message=message,
    )


async def _run(attempt: Attempt, call: _Call, tool: RegisteredTool) -> tuple[Record, ...]:
    """Validate, guard, ask, record, execute."""
    if call.asked.problem is not None:
        return (_refused(attempt, call, "malformed", _too_long(tool, call.asked.problem)),)
    asked = read_arguments(tool, call.asked.arguments)
    if isinstance(asked, Malformed):
        return (_refused(attempt, call, "malformed", asked.message),)
    while True:
        if attempt.stop() is not None:
            return ()  # it stays open: settled or run by the next attempt
        if _is_denied(attempt, call):
            return (_refused(attempt, call, "denied", denial(attempt, call.call_id)),)
        useless = refusal(attempt, call.call_id, tool, asked)
        if useless is not None:
            return (_refused(attempt, call, "guard", useless),)
        decision = await judge_call(attempt, call.call_id, tool, asked)
        if isinstance(decision, Deny):
            reason = f"The call was denied: {clip(decision.reason, _REASON_BYTES)}"
            return (_refused(attempt, call, "denied", reason),)
        cleared = clear(attempt, call.call_id, tool, asked, decision)
        if isinstance(cleared, Unknown):
            return (_unknown(attempt, call.call_id),)
        try:
            if isinstance(cleared, Ask):
                return await _ask_people(attempt, call, tool, asked, cleared)
            started = _started(attempt, call, tool, cleared)
            if is_builtin(tool):
                return await _of_ours(attempt, call, tool, cleared, started)
            ahead = tool.risk == "read_only" and tool.safe_to_retry
            if ahead and cleared.approval_id is None:
                attempt.journal.note(started)  # may run ahead of its record
            else:
                await attempt.journal.decide(started)
        except Stale:
            continue
        break
    arguments = cleared.arguments
    while True:
        await attempt.guard()
        stop = attempt.stop()
        if stop is not None:
            again = stop in ("drained", "blocked") and tool.safe_to_retry
            return () if again else (_aborted(attempt, call),)
        completed = await _execute(attempt, call, tool, arguments)
        if completed is not None:
            return (completed,)


async def _ask_people(
    attempt: Attempt, call: _Call, tool: RegisteredTool, asked: Arguments, ask: Ask
) -> tuple[Record, ...]:
    """Propose the call, unless too many wait already. Raises Stale."""
    if not has_room(attempt):
        return (_refused(attempt, call, "limit", CROWDED),)
    attempt.asking.add(call.call_id)
    try:
        await attempt.journal.decide(request(attempt, call.call_id, tool, asked, ask))
    finally:
        attempt.asking.discard(call.call_id)
    return ()


async def _of_ours(
    attempt: Attempt, call: _Call, tool: RegisteredTool, cleared: Cleared, started: ToolStarted
) -> tuple[Record, ...]:
    """Do what one of our own tools says; it has begun once it is over. Raises Stale."""
    ends = await outcome_of(attempt, call.call_id, tool, cleared.arguments)
    if ends and cleared.approval_id is not None:
        await attempt.journal.decide(started)
        return ends
    return (started, *ends) if ends else ()


def _too_long(tool: RegisteredTool, problem: str) -> str:
    return (
        f"Malformed arguments of {tool.name}: {problem}. The tool was not executed. "
        f"Expected: {expected(tool)}"
    )


def _is_denied(attempt: Attempt, call: _Call) -> bool:
    proposed = attempt.state.get("call", call.call_id).phase == "proposed"
    return proposed and grant_of(attempt, call.call_id) is None


def _started(attempt: Attempt, call: _Call, tool: RegisteredTool, cleared: Cleared) -> ToolStarted:
    before = attempt.state.get("call", call.call_id)
    again = before.phase == "started"
    return _tool_started(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call.call_id,
        tries=before.number("tries") + 1 if again else 1,
        identity=tool.identity,
        digest=digest_of(attempt, cleared.arguments),
        safe_to_retry=tool.safe_to_retry,
        interruptible=tool.interruptible,
        key=call.call_id,
        approval_id=cleared.approval_id,
    )


async def _settle_lost(attempt: Attempt, call: _Call, tool: RegisteredTool) -> ToolCompleted:
    """Ask what became of a call whose worker died while it ran; it never runs again (R-9)."""
    attempt.preparing.add(call.call_id)
    try:
        executed = await reconciled(attempt, call.call_id, call.asked, tool)
    finally:
        attempt.preparing.discard(call.call_id)
    if executed is None:
        return _unknown(attempt, call.call_id)
    kept = await keep(attempt, tool.name, call.call_id, executed)
    return _completed(attempt, call, kept, duration_seconds=0.0, source="reconciled")


async def _execute(
    attempt: Attempt, call: _Call, tool: RegisteredTool, arguments: Arguments
) -> ToolCompleted | None:
    """Execute the call and return its outcome; None: the lease ran out before it could start."""
    context = ToolContext(
        scope=attempt.admitted.scope,
        run_id=attempt.run_id,
        call_id=call.call_id,
        idempotency_key=call.call_id,
        epoch=attempt.epoch,
    )
    begun = attempt.host.system.monotonic()
    attempt.executing[call.call_id] = tool
    try:
        executed = await attempt.host.tools.execute(
            tool, arguments, context, may_start=attempt.may_start
        )
    finally:
        attempt.executing.pop(call.call_id, None)
    if executed is None:
        return None
    took = round(max(0.0, attempt.host.system.monotonic() - begun), 6)
    kept = await keep(attempt, tool.name, call.call_id, executed)
    return _completed(attempt, call, kept, duration_seconds=took, source="executed")


def _completed(
    attempt: Attempt,
    call: _Call,
    kept: Kept,
    *,
    duration_seconds: float,
    source: Literal["executed", "reconciled"],
) -> ToolCompleted:
    return _tool_completed(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call.call_id,
        outcome=kept.executed.outcome,
        result=kept.executed.result,
        elided=kept.elided,
        shown_bytes=kept.shown_bytes,
        attachments=kept.attachments,
        failure=kept.executed.failure,
        duration_seconds=duration_seconds,
        source=source,
    )
