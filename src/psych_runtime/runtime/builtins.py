"""What the runtime's own tools do when a model calls them."""

from functools import partial
from typing import Final, Literal

from pydantic import JsonValue

from psych_runtime.core.codec import sha256
from psych_runtime.core.models import altered
from psych_runtime.errors import InvalidPayload, MemoryFull, PayloadTooLarge
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.commit import ask_surely
from psych_runtime.runtime.reading import read_result
from psych_runtime.runtime.results import shown_of
from psych_runtime.runtime.waits import CROWDED, has_room, open_wait
from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.builtin import Loaded, Memory, Tasks, Waiting
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.reading import Range, Search
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.results import to_result
from psych_runtime.tools.text import clip
from psych_schema.model import TextPart
from psych_schema.record import (
    Failure,
    MemoryChanged,
    Record,
    TasksUpdated,
    ToolCompleted,
    ToolResult,
    WaitOpened,
    WaitResolved,
)

__all__ = ["is_builtin", "outcome_of"]

_MESSAGE_BYTES: Final = 2048


def is_builtin(tool: RegisteredTool) -> bool:
    """Tell whether the runtime itself does what the tool says."""
    return tool.identity.startswith("builtin:")


async def outcome_of(
    attempt: Attempt, call_id: str, tool: RegisteredTool, arguments: Arguments
) -> tuple[Record, ...]:
    """Return the records that end the call; none: it waits. Raises Stale."""
    context = ToolContext(
        scope=attempt.admitted.scope,
        run_id=attempt.run_id,
        call_id=call_id,
        idempotency_key=call_id,
        epoch=attempt.epoch,
    )
    made, began = tool.call(arguments.values, context), attempt.host.system.monotonic()
    if isinstance(made, Range | Search):
        attempt.preparing.add(call_id)  # a blob store may hang: the call is cut, and stays asked
        try:
            made = await read_result(attempt, made)
        finally:
            attempt.preparing.discard(call_id)
    match made:
        case Waiting():
            return await _wait(attempt, call_id, tool, made)
        case Tasks():
            updated = TasksUpdated(
                run_id=attempt.run_id, id=attempt.new_id("rec"), at=attempt.now(), tasks=made.tasks
            )
            return updated, _completed(attempt, call_id, ToolResult(message="The list is kept."))
        case Loaded():
            result = ToolResult(message=made.text)
            if made.code is None:
                result = ToolResult(parts=(TextPart(text=made.text),))
            took = round(max(0.0, attempt.host.system.monotonic() - began), 6)
            done = _completed(attempt, call_id, result, made.code)
            return (altered(done, {"duration_seconds": took}),)
        case Memory():
            return await _remember(attempt, call_id, tool, made)
        case _:
            raise TypeError(f"{tool.name} brought {made!r:.80}")


async def _remember(
    attempt: Attempt, call_id: str, tool: RegisteredTool, asked: Memory
) -> tuple[Record, ...]:
    """Do it for the Run's principal; repeated after a crash, it is the same (MemoryStore)."""
    memory, scope = attempt.host.runtime.memory, attempt.admitted.scope
    try:
        match asked.op:
            case "remember":
                keep = partial(memory.remember, scope, asked.key, asked.value)
                await ask_surely(keep)
                done = _completed(attempt, call_id, ToolResult(message="It is remembered."))
                return _changed(attempt, asked, "put"), done
            case "forget":
                known = await ask_surely(partial(memory.forget, scope, asked.key))
                words = "It is forgotten." if known else "There was nothing under that name."
                done = _completed(attempt, call_id, ToolResult(message=words))
                return (_changed(attempt, asked, "delete"), done) if known else (done,)
            case "recall":
                entries = await ask_surely(partial(memory.recall, scope, asked.query))
                found = [{"key": one.key, "value": one.value} for one in entries]
                return (_brought(attempt, call_id, to_result(tool.name, found)),)
    except (InvalidPayload, PayloadTooLarge, MemoryFull) as error:
        result = ToolResult(message=clip(str(error), _MESSAGE_BYTES))
        return (_completed(attempt, call_id, result, error.code),)


def _changed(attempt: Attempt, asked: Memory, op: Literal["put", "delete"]) -> MemoryChanged:
    """Return the record of a change: which entry, and of the words a digest alone."""
    return MemoryChanged(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        key=asked.key,
        op=op,
        digest=sha256(attempt.run_salt + asked.value),
    )


async def _wait(
    attempt: Attempt, call_id: str, tool: RegisteredTool, waiting: Waiting
) -> tuple[Record, ...]:
    wait = attempt.awaited.wait(call_id)
    if wait is None:
        if not has_room(attempt):
            return (_completed(attempt, call_id, ToolResult(message=CROWDED), "limit"),)
        attempt.asking.add(call_id)
        try:
            await attempt.journal.decide(*open_wait(attempt, call_id, waiting))
        finally:
            attempt.asking.discard(call_id)
        wait = attempt.awaited.wait(call_id)
    resolved = None if wait is None else attempt.awaited.resolution(wait.wait_id)
    if wait is None or resolved is None:
        return ()
    return (_resolution(attempt, call_id, tool, wait, resolved),)


def _resolution(
    attempt: Attempt, call_id: str, tool: RegisteredTool, wait: WaitOpened, resolved: WaitResolved
) -> ToolCompleted:
    match resolved.how:
        case "delivered":
            return _brought(attempt, call_id, to_result(tool.name, _payload(attempt, resolved)))
        case "due":
            return _completed(attempt, call_id, ToolResult(message="The time is over."))
        case "expired":
            result = ToolResult(message="Nothing came in time.")
            fails = wait.on_expiry != "continue"
            return _completed(attempt, call_id, result, "wait_expired" if fails else None)
        case "cancelled":
            result = ToolResult(message="The wait was given up.")
            return _completed(attempt, call_id, result, "wait_cancelled")


def _payload(attempt: Attempt, resolved: WaitResolved) -> JsonValue:
    event = None if resolved.event_id is None else attempt.awaited.event(resolved.event_id)
    return resolved.payload if event is None else event.payload


def _brought(attempt: Attempt, call_id: str, result: ToolResult) -> ToolCompleted:
    """Return the end of a call with what others wrote, which may be too long to be shown."""
    shown = shown_of(attempt, result.parts)
    return altered(_completed(attempt, call_id, result), {"shown_bytes": shown})


def _completed(
    attempt: Attempt, call_id: str, result: ToolResult, code: str | None = None
) -> ToolCompleted:
    outcome: Literal["ok", "error"] = "ok" if code is None else "error"
    return ToolCompleted(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call_id=call_id,
        outcome=outcome,
        result=result,
        failure=None if code is None else Failure(code=code, transient=False),
        duration_seconds=0.0,
        source="executed",
    )
