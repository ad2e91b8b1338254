"""The one path of every tool call (TOOL-2).

Narrow, validate, ask the policy, record, execute, record. Calls of a turn run at once; each is
recorded when it ends, and one that fails leaves its siblings alone (MOD-7). A call that was open
when its worker died runs again only if that is safe (RUN-1).
"""

import asyncio
import math
from collections.abc import Container, Iterator, Mapping
from typing import Final, NamedTuple

from psych_runtime.core.models import trusted
from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.policy import Allow, Ask, Decision, Deny
from psych_runtime.runtime.access import permitted_tools
from psych_runtime.runtime.approvals import (
    Cleared,
    clear,
    denial,
    digest_of,
    grant_of,
    has_room,
    is_decided,
    request,
)
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.builtins import is_builtin, outcome_of
from psych_runtime.runtime.settle import unknown_outcome
from psych_runtime.runtime.signals import Stale
from psych_runtime.runtime.waits import waits
from psych_runtime.tools.arguments import Arguments, Malformed, expected, read_arguments
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registry import RegisteredTool
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
_MAX_EXPIRES_SECONDS: Final = 1e9  # as in Specs: schema/spec/people.json
_REASON_BYTES: Final = 2048
_CROWDED: Final = (
    "Too many calls wait for somebody's consent already; this one was not executed. Ask for it "
    "again once they are decided."
)
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
    alone = asyncio.Lock()
    tasks: dict[asyncio.Task[tuple[Record, ...]], _Call] = {}
    cuts: dict[str, float] = {}
    live: set[asyncio.Task[tuple[Record, ...]]] = set()
    try:
        while True:
            _begin(attempt, alone, tasks, live)
            if not live:
                return
            done = {task for task in live if task.done()}
            if not done:
                pause = _GIVE_UP_SECONDS / 8 if cuts else None
                await attempt.wait_any(live, timeout_seconds=pause)
                done = {task for task in live if task.done()}
            attempt.check_held()
            live -= done
            for task in sorted(done, key=lambda one: tasks[one].place):
                _take(attempt, task, tasks[task])
            for task in live:
                _cut(attempt, task, tasks[task], cuts)
    finally:
        for task in live:
            attempt.host.keep(task)
            if not _keeps_running(attempt, tasks[task]):
                task.cancel()


def _begin(
    attempt: Attempt,
    alone: asyncio.Lock,
    tasks: dict[asyncio.Task[tuple[Record, ...]], _Call],
    live: set[asyncio.Task[tuple[Record, ...]]],
) -> None:
    """Begin what can run and does not run yet."""
    if tasks and attempt.stop() is not None:
        return
    loop = asyncio.get_running_loop()
    for call in _open_calls(attempt, {tasks[task].call_id for task in live}):
        task = asyncio.Task(_one(attempt, call, alone), loop=loop, eager_start=True)
        tasks[task] = call
        live.add(task)


def _open_calls(attempt: Attempt, running: Container[str]) -> Iterator[_Call]:
    """Yield what is to be run, in the order asked; settle what nobody may run again."""
    state = attempt.state
    for call_id in list(state.ids("call", "asked", "proposed", "started")):
        one = state.get("call", call_id)
        if call_id in running or not _can_begin(attempt, call_id):
            continue
        if one.phase == "started" and not (one.get("safe_to_retry") and one.epoch < state.epoch):
            attempt.journal.note(_unknown(attempt, call_id))
            continue
        record = attempt.conversation.asked(call_id)
        calls = record.said.calls if record.said else ()
        place = record.calls.index(call_id)
        yield _Call(call_id, calls[place], place, _CUT_BY.get(record.finish))


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
    if attempt.host.tools.left_running(call.call_id):
        attempt.journal.note(_unknown(attempt, call.call_id))
    else:
        attempt.journal.note(_aborted(attempt, call))


def _is_left_open(attempt: Attempt, call: _Call) -> bool:
    """Tell whether the next attempt runs the call again: it is safe, and we only drain."""
    safe = attempt.state.get("call", call.call_id).get("safe_to_retry") is True
    return safe and attempt.stop() in ("drained", "blocked")


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


async def _one(attempt: Attempt, call: _Call, alone: asyncio.Lock) -> tuple[Record, ...]:
    """Bring one call to its end; return what is to be noted. Starts eagerly (R-22)."""
    found = _find(attempt, call, await permitted_tools(attempt))
    if isinstance(found, ToolRefused):
        return (found,)
    tool = found
    if tool.concurrent:
        return await _run(attempt, call, tool)
    async with alone:
        return await _run(attempt, call, tool)


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
                f"Only the first {limit} calls of a turn are executed. Ask for this one again.",
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
    """Validate, ask, record, execute."""
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
        decision = await _ask_policy(attempt, call, tool, asked)
        if isinstance(decision, Deny):
            reason = f"The call was denied: {clip(decision.reason, _REASON_BYTES)}"
            return (_refused(attempt, call, "denied", reason),)
        cleared = clear(attempt, call.call_id, tool, asked, decision)
        if cleared is None:
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
        return (_refused(attempt, call, "limit", _CROWDED),)
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


async def _ask_policy(
    attempt: Attempt, call: _Call, tool: RegisteredTool, arguments: Arguments
) -> Decision:
    """Return what the policy says. InvalidArgument: it answered with something else."""
    attempt.preparing.add(call.call_id)
    try:
        decision: object = await attempt.host.runtime.policy.decide_tool(
            attempt.admitted.scope, tool.facts, arguments.effective
        )
    finally:
        attempt.preparing.discard(call.call_id)
    if isinstance(decision, Allow):
        return _asked_for(attempt, tool)
    if isinstance(decision, Deny):
        return decision
    if isinstance(decision, Ask):
        return _checked(decision)
    problem = f"decide_tool returned {decision!r:.80}; return Allow(), Deny(reason) or Ask()"
    raise InvalidArgument(what="policy", problem=problem)


def _checked(ask: Ask) -> Ask:
    """Raise InvalidArgument for a time that nobody can keep."""
    seconds = ask.expires_seconds
    number: object = seconds  # a policy is foreign code: what it passes may be anything
    if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
        bad = True
    else:
        bad = seconds is not None and not 0 < seconds <= _MAX_EXPIRES_SECONDS
    if not bad:
        return ask
    problem = (
        f"Ask(expires_seconds={seconds!r:.40}): pass more than 0 and at most "
        f"{_MAX_EXPIRES_SECONDS} seconds, or None"
    )
    raise InvalidArgument(what="policy", problem=problem)


def _asked_for(attempt: Attempt, tool: RegisteredTool) -> Allow | Ask:
    """Return whether the Spec wants a person's consent where the policy wants none."""
    rules = attempt.spec.ask_before
    if tool.risk in rules.risks or tool.name in rules.tools:
        return Ask(expires_seconds=rules.expires_seconds)
    return Allow()


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
    return _tool_completed(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call.call_id,
        outcome=executed.outcome,
        result=executed.result,
        failure=executed.failure,
        duration_seconds=max(0.0, attempt.host.system.monotonic() - begun),
        source="executed",
    )
