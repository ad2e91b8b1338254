"""Logs that the tests of the core share, and rows as nobody writes them."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.codec import Entry, decode_anew, seal, sha256
from psych_runtime.core.fold import RunState
from psych_runtime.testing import LogBuilder
from psych_schema.common import BlobRef, Cost, Usage
from psych_schema.model import TextPart, UserMessage
from psych_schema.record import (
    AdvisoryAdded,
    ApprovalExpired,
    Broken,
    ChildAdmitted,
    ChildMessaged,
    ChildSettled,
    ContextCompacted,
    Elided,
    EventReceived,
    MemoryChanged,
    ModelDelta,
    QueueCancelled,
    Record,
    StepResult,
    TasksUpdated,
    ToolProgress,
    Verdict,
)
from psych_schema.store import RecordRow

CHILD: Final = "run_" + "7" * 26
FAR: Final = datetime(2030, 1, 1, tzinfo=UTC)
USAGE: Final = Usage(input_tokens=10, output_tokens=3)
COST: Final = Cost(source="missing", reason="no_price")
SUMMARY: Final = UserMessage(parts=(TextPart(text="so far"),))


def claimed(log: LogBuilder | None = None) -> LogBuilder:
    """Return a log of a Run that a worker has claimed."""
    log = log or LogBuilder()
    log.admit()
    log.claim()
    return log


def asked(*names: str) -> tuple[LogBuilder, list[str]]:
    """Return a log whose first turn asked for these tools, and the calls' ids."""
    log = claimed()
    return log, log.turn(calls=names or ("look",))


def started(**fields: object) -> tuple[LogBuilder, str]:
    """Return a log in which one call runs, and its id."""
    log, [call] = asked()
    log.start(call, **fields)
    return log, call


def two_turns() -> LogBuilder:
    """Return the log of the smallest Run that used a tool."""
    log, call = started()
    log.finish(call)
    log.turn(text="It is 42.")
    log.settle()
    return log


def whole_log() -> LogBuilder:
    """Return a legal log with a record of every type."""
    log = LogBuilder()
    log.admit({"message": "hi"}, deadline_seconds=900.0, priority=3, deltas=True, key="k")
    log.claim()
    _people_and_tools(log)
    _waits_and_children(log)
    _compaction(log)
    _steps(log)
    log.end()
    log.claim()
    log.write(
        ChildSettled, child=CHILD, state="completed", output={"a": None}, usage=USAGE, cost=COST
    )
    log.abort(reason="stop")
    log.abort(reason="now", force=True, key="again")
    log.settle("aborted", code="asked")
    log.erase(reason="asked for")
    return log


def _people_and_tools(log: LogBuilder) -> None:
    log.write(
        AdvisoryAdded, advisory_id=log.system.new_id("adv"), code="withheld", message="no pay"
    )
    steer, follow = log.send("first"), log.send("later", queue="follow_up", key="k2")
    log.write(QueueCancelled, entry_id=follow, by="ann")
    log.send("next", queue="next_run")
    log.consume(steer)
    a, b, c, d = log.turn(calls=["look", "lock", "pay", "pay"])
    log.start(a, safe_to_retry=True)
    log.write(ToolProgress, call_id=a, progress=0.5, total=2.0, message="half")
    log.refuse(b, "unknown")
    grant, late = log.request(c, expires_at=FAR), log.request(d, expires_at=FAR)
    log.write(ApprovalExpired, approval_id=late, reason="due")
    log.refuse(d)
    log.claim()
    log.start(a, safe_to_retry=True)
    log.finish(a)
    log.suspend()
    log.decide(grant, "edit", digest=sha256("edited"), verdict=Verdict(arguments={"n": 2}))
    log.claim()
    log.start(c, approval_id=grant)


def _waits_and_children(log: LogBuilder) -> None:
    [call] = log.state.ids("call", "started")
    event = log.system.new_id("evt")
    log.write(EventReceived, event_id=event, name="paid", payload={"ok": True}, by="hook")
    wait = log.wait("event", call=call, ask={"name": "paid"}, payload_schema={"default": None})
    timer = log.wait("timer", due=FAR, expires_at=FAR, on_expiry="fail")
    log.resolve(timer, "due")
    log.resolve(wait, event_id=event)
    log.write(ChildAdmitted, child=CHILD, version=sha256("child"), call=call, background=True)
    log.write(ChildMessaged, child=CHILD, entry_id=log.system.new_id("ent"))
    inner = log.system.new_id("call")
    log.start(inner, parent_call=call)
    log.finish(inner)
    blob = BlobRef(hash=sha256("blob"), bytes=5, media_type="image/png")
    log.finish(
        call, elided=Elided(handle=log.system.new_id("blob"), blob=blob), attachments=(blob,)
    )


def _compaction(log: LogBuilder) -> None:
    log.begin_turn()
    call = log.ask(params={"temperature": 0.5, "stop": None})
    log.write(ModelDelta, call=call, channel="text", text="hel")
    said = Broken(parts=(TextPart(text="hel"),), message="too long")
    log.fail(call, code="overflow", transient=False, said=said, next="compact")
    upto = log.conversation.last
    call = log.ask(purpose="compaction")
    log.answer(call, text="so far")
    log.write(ContextCompacted, upto=upto, summary=SUMMARY, call=call, reason="overflow")
    log.answer(log.ask(tries=2), text="done")


def _steps(log: LogBuilder) -> None:
    step = log.begin_step()
    call = log.system.new_id("call")
    log.start(call, step=step)
    log.finish(call, outcome="error")
    log.end_step(step, "failed", retry_at=FAR)
    log.begin_step(step_id=step, tries=2)
    log.end_step(step, result=StepResult(output=1, state_set={"n": None}))
    log.write(TasksUpdated, tasks=["a", None])
    log.write(MemoryChanged, key="k", op="put", digest=sha256("memory"))


def erased(rows: Iterable[RecordRow]) -> list[RecordRow]:
    """Return rows as `erase` leaves them."""
    return [row.model_copy(update={"content": None, "salt": None}) for row in rows]


def forged(row: RecordRow, **fields: JsonValue) -> RecordRow:
    """Return a row whose body says something else."""
    body = json.loads(row.body) | fields
    return row.model_copy(update={"body": json.dumps(body, separators=(",", ":"))})


def placed(log: LogBuilder, draft: Record, *, epoch: int, **fields: JsonValue) -> Entry:
    """Return a record as a writer would place it behind the log, whether legal or not."""
    [sealed] = seal(
        [draft],
        log.state.position,
        tenant=log.tenant,
        epoch=epoch,
        commit_id=log.system.new_id("com"),
        salts=["5" * 32],
    )
    row = sealed.row
    if fields:
        row = forged(row, **fields)
        seq = fields.get("seq", row.seq)
        row = row.model_copy(update={"seq": seq})
    return decode_anew(row)


def copied(state: RunState) -> RunState:
    """Return an equal state that shares nothing with it but records' values."""
    return RunState(
        dict(state.objects),
        {key: dict(ids) for key, ids in state.live.items()},
        state.epoch,
        state.position,
        state.is_fork,
        state.last_turn,
        state.last_model,
        state.last_offer,
        state.turn_failures,
    )


def types(entries: Sequence[Entry]) -> set[str]:
    """Return the record types of a log."""
    return {entry.record.type for entry in entries}
