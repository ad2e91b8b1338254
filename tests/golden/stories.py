"""The Runs that golden logs tell: what engines write today, and what later ones will write."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from psych_runtime.core.codec import sha256
from psych_runtime.core.fold import step
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.common import BlobRef, Cost, Scope, Usage
from psych_schema.model import TextPart, UserMessage
from psych_schema.record import (
    AdvisoryAdded,
    ApprovalExpired,
    BaseRef,
    Broken,
    ChildAdmitted,
    ChildMessaged,
    ChildSettled,
    ContextCompacted,
    Elided,
    EventReceived,
    Failure,
    MemoryChanged,
    ModelDelta,
    ParentRef,
    QueueCancelled,
    StepResult,
    TasksUpdated,
    ThreadRef,
    ToolProgress,
    ToolResult,
    Verdict,
)
from tests.unit.core.walk import choose

__all__ = ["STORIES"]

CHILD: Final = "run_" + "7" * 26
OTHER: Final = "run_" + "6" * 26
FAR: Final = datetime(2030, 1, 1, tzinfo=UTC)
PRICED: Final = Cost(amount="0.0021", source="provider")


def _claimed(input: str = "hi", **fields: object) -> LogBuilder:
    log = LogBuilder(system=CountingSystem())
    log.admit({"message": input}, **fields)
    log.claim()
    return log


def admitted() -> LogBuilder:
    """Nobody has taken it yet."""
    log = LogBuilder(system=CountingSystem())
    scope = Scope(tenant="acme", principal="ann", attributes={"plan": "gold"})
    log.admit(
        {"message": [{"kind": "text", "text": "What is up?"}]},
        scope=scope,
        deadline_seconds=900.0,
        priority=7,
        deltas=True,
        key="order-7",
    )
    return log


def one_tool() -> LogBuilder:
    """The smallest Run that used a tool, with deltas and a price."""
    log = _claimed("What does it cost?", deadline_seconds=900.0, deltas=True)
    log.begin_turn()
    call = log.ask()
    log.write(ModelDelta, call=call, channel="reasoning", text="A price. ")
    log.write(ModelDelta, call=call, channel="text", text="Let me ")
    [look] = log.answer(call, ["look"], text="Let me look.", cost=PRICED)
    log.start(look, arguments={"item": "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "n": 2**60})
    log.write(ToolProgress, call_id=look, progress=0.5, total=1.0, message="half way")
    log.finish(look, "7 dollars \N{MONEY BAG}")
    usage = Usage(input_tokens=80, cache_read_tokens=64, output_tokens=9)
    log.turn(text="It costs 7 dollars.", usage=usage, cost=PRICED)
    log.settle()
    return log


def worker_died() -> LogBuilder:
    """Twice: in a model call, and among tools, of which one is safe and one is not."""
    log = _claimed(deadline_seconds=900.0)
    log.begin_turn()
    log.ask()
    log.claim()
    look, pay = log.answer(log.ask(tries=2), ["look", "pay"])
    log.start(look, safe_to_retry=True)
    log.start(pay)
    log.claim()
    log.start(look, safe_to_retry=True)
    log.finish(look)
    log.finish(
        pay, outcome="unknown", result=ToolResult(message="Nobody knows."), duration_seconds=0.0
    )
    log.turn(text="I do not know whether it was paid.")
    log.settle()
    return log


def approvals() -> LogBuilder:
    """Every way that a request for consent ends."""
    log = _claimed("Pay them all.", deadline_seconds=900.0)
    a, b, c, d, e = log.turn(["pay"] * 5)
    plain = log.request(a, arguments={"cents": 1}, expires_at=FAR)
    edited = log.request(b, arguments={"cents": 2})
    denied = log.request(c, arguments={"cents": 3})
    late = log.request(d, arguments={"cents": 4}, expires_at=FAR)
    older = log.request(e, arguments={"cents": 5})
    newer = log.request(e, arguments={"cents": 50}, supersedes=older)
    log.suspend()
    log.decide(plain, key="first")
    log.claim()
    log.start(a, approval_id=plain, arguments={"cents": 1})
    log.finish(a, "paid")
    log.suspend()
    log.decide(edited, "edit", digest=sha256("{}"), verdict=Verdict(arguments={}, reason="less"))
    log.decide(denied, "deny", verdict=Verdict(reason="no"))
    log.claim()
    log.start(b, approval_id=edited)
    log.finish(b, "paid less")
    log.refuse(c)
    log.write(ApprovalExpired, approval_id=late, reason="due")
    log.refuse(d)
    log.write(ApprovalExpired, approval_id=newer, reason="cancelled")
    log.refuse(e, "guard")
    log.turn(text="Two were paid.")
    log.settle()
    return log


def asking() -> LogBuilder:
    """Suspended: consent, an answer and an event are missing, messages and events are kept."""
    log = _claimed(deadline_seconds=900.0)
    pay, ask, granted = log.turn(["pay", "ask", "pay"])
    log.request(pay, arguments={"cents": 5}, expires_at=FAR)
    grant = log.request(granted)
    log.start(ask)
    log.wait(
        "question", call=ask, ask={"question": "Which one?"}, payload_schema={"type": "object"}
    )
    log.wait("event", ask={"name": "paid"}, expires_at=FAR, on_expiry="fail")
    log.send("And hurry.")
    log.send("Then the next one.", queue="next_run")
    event = log.system.new_id("evt")
    log.write(EventReceived, event_id=event, name="shipped", payload={"n": 1}, by="hook")
    log.decide(grant)
    log.start(granted, approval_id=grant)
    log.finish(granted)
    log.suspend(wake_at=FAR)
    return log


def waits() -> LogBuilder:
    """Every way that a wait ends, and a timer at last."""
    log = _claimed(deadline_seconds=900.0)
    early = log.system.new_id("evt")
    log.write(EventReceived, event_id=early, name="paid", payload={"ok": True}, by="hook", key="e")
    event = log.wait("event", ask={"name": "paid"})
    log.resolve(event, event_id=early)
    question = log.wait("question", ask={"question": "Which?"}, on_expiry="settle")
    log.suspend()
    log.resolve(question, payload={"answer": "the first"}, key="a")
    log.claim()
    login = log.wait("authorization", ask={"url": "https://example.com"}, expires_at=FAR)
    log.resolve(login, "expired")
    form = log.wait("elicitation")
    log.resolve(form, "cancelled")
    log.wait("breakpoint")
    timer = log.wait("timer", due=FAR)
    log.suspend(wake_at=FAR)
    log.claim()
    log.resolve(timer, "due")
    log.settle("expired", code="question_expired")
    return log


def queues() -> LogBuilder:
    """Messages that came in, were read, were taken back, and began the next Run."""
    log = _claimed("Write a poem.", thread=ThreadRef(id="poems", position=1))
    steer = log.send("About the sea.", key="s1")
    log.begin_turn()
    log.consume(steer)
    log.answer(log.ask(), text="The sea is wide.")
    follow, gone = log.send("Shorter.", queue="follow_up"), log.send("Longer.", queue="follow_up")
    log.write(QueueCancelled, entry_id=gone, by="ann")
    log.begin_turn()
    log.consume(follow)
    log.answer(log.ask(), text="Wide.")
    log.send("Now in French.", queue="next_run")
    log.settle()
    return log


def next_run() -> LogBuilder:
    """The Run that a queue began: the second of its thread."""
    thread = ThreadRef(id="poems", position=2, previous=OTHER)
    log = _claimed("Now in French.", thread=thread, priority=3)
    log.turn(text="La mer.")
    log.settle()
    return log


def parent() -> LogBuilder:
    """A Run with a child in the foreground and one that it stops."""
    log = _claimed("Ask your colleagues.", deadline_seconds=900.0)
    [call] = log.turn(["delegate"])
    log.start(call)
    log.write(ChildAdmitted, child=CHILD, version=sha256("child"), call=call, background=False)
    log.write(ChildAdmitted, child=OTHER, version=sha256("child"), call=call, background=True)
    log.write(ChildMessaged, child=CHILD, entry_id=log.system.new_id("ent"))
    log.wait("children", call=call)
    log.suspend()
    usage = Usage(input_tokens=100, output_tokens=20)
    log.write(
        ChildSettled, child=CHILD, state="completed", output={"n": 3}, usage=usage, cost=PRICED
    )
    log.claim()
    for wait in list(log.state.ids("wait", "open")):
        log.resolve(wait, "cancelled")
    log.finish(call, "3")
    log.turn(text="They say 3.")
    missing = Cost(source="missing", reason="no_price")
    log.write(ChildSettled, child=OTHER, state="aborted", usage=Usage(), cost=missing)
    log.settle()
    return log


def child() -> LogBuilder:
    """The child's own log."""
    log = _claimed(
        "Count.", parent=ParentRef(run=OTHER, call="call_" + "5" * 26), root=OTHER, depth=1
    )
    log.turn(text="3")
    log.settle(output={"n": 3})
    return log


def fork() -> LogBuilder:
    """A Run that leaves another one at a safe point."""
    base = BaseRef(run=OTHER, seq=9, hash=sha256("base"))
    log = _claimed("And if not?", base=base, breakpoints=("look",))
    log.turn(text="Then not.")
    log.settle()
    return log


def workflow() -> LogBuilder:
    """Steps: tried again, nested calls, skipped, failed, undone."""
    log = _claimed(deadline_seconds=900.0)
    first = log.begin_step("book", kind="tool")
    inner = log.system.new_id("call")
    log.start(inner, step=first)
    log.finish(inner, outcome="error", failure=Failure(code="no_seat", transient=True))
    log.end_step(first, "failed", retry_at=FAR)
    log.suspend(wake_at=FAR)
    log.claim()
    log.begin_step("book", step_id=first, tries=2)
    grant = log.request(log.system.new_id("call"), step=first)
    log.suspend()
    log.decide(grant)
    log.claim()
    [call] = log.state.ids("call", "proposed")
    log.start(call, approval_id=grant, step=first)
    log.finish(call, "seat 7")
    log.end_step(first, result=StepResult(output="7", state_set={"seat": 7, "note": None}))
    skipped = log.begin_step("upgrade", iteration=0)
    log.end_step(skipped, "skipped")
    charge = log.begin_step("charge")
    log.end_step(charge, "failed")
    undo = log.begin_step("cancel", compensates=first)
    log.end_step(undo)
    log.settle("failed", code="step_failed")
    return log


def compaction() -> LogBuilder:
    """The conversation grew too long for its model, and was made shorter."""
    log = _claimed("Tell me everything.")
    [call] = log.turn(["look"])
    log.start(call)
    blob = BlobRef(hash=sha256("blob"), bytes=900_000, media_type="text/plain")
    handle = log.system.new_id("blob")
    log.finish(call, "The beginning", elided=Elided(handle=handle, blob=blob), attachments=(blob,))
    log.begin_turn()
    upto = log.conversation.last
    said = Broken(parts=(TextPart(text="Once"),), message="too long")
    log.fail(log.ask(), code="context_overflow", transient=False, said=said, next="compact")
    short = log.ask(purpose="compaction")
    log.answer(short, text="They wanted everything.")
    summary = UserMessage(parts=(TextPart(text="They wanted everything."),))
    log.write(ContextCompacted, upto=upto, summary=summary, call=short, reason="overflow")
    log.answer(log.ask(tries=2), text="That is all.")
    log.settle()
    return log


def retries() -> LogBuilder:
    """A provider that keeps failing: tried again at once, then later, then given up."""
    log = _claimed(deadline_seconds=900.0)
    log.begin_turn()
    first = log.ask()
    log.fail(first, said=Broken(message="503: try later"), retry_at=FAR)
    log.fail(log.ask(tries=2), code="timeout", retry_at=FAR + timedelta(seconds=9))
    log.suspend(wake_at=FAR + timedelta(seconds=9))
    log.claim()
    log.fail(
        log.ask(tries=3, model="spare-model", fallback_of=first),
        usage=Usage(input_tokens=9, output_tokens=0),
        next="give_up",
    )
    log.settle("failed", code="retries_exhausted")
    return log


def parked() -> LogBuilder:
    """Suspended until its model is tried again: nobody is asked for anything."""
    log = _claimed(deadline_seconds=900.0)
    log.begin_turn()
    log.fail(log.ask(), said=Broken(message="503"), retry_at=FAR)
    log.suspend(wake_at=FAR)
    return log


def aborted() -> LogBuilder:
    """Stopped, then stopped with force, in the middle of everything."""
    log = _claimed()
    look, pay, never = log.turn(["look", "pay", "look"])
    log.start(look)
    log.request(pay)
    log.send("One more thing.")
    log.abort(reason="The customer called.", key="stop")
    log.abort(reason=None, force=True)
    log.finish(look, outcome="aborted", duration_seconds=0.0)
    log.refuse(pay, "aborted")
    log.refuse(never, "aborted")
    log.settle("aborted")
    return log


def handed_over() -> LogBuilder:
    """Attempts that let the Run go: drained, blocked, and a bug at last."""
    log = _claimed(deadline_seconds=900.0)
    [look] = log.turn(["look"])
    log.start(look, safe_to_retry=True)
    log.end("drained")
    log.claim()
    log.end("blocked", missing=("code:look",), needs_version=1)
    log.claim()
    log.start(look, safe_to_retry=True)
    log.finish(look)
    log.end("error", code="key_error")
    return log


def timed_out() -> LogBuilder:
    """Its deadline passed while nobody held it."""
    log = _claimed(deadline_seconds=60.0)
    [look] = log.turn(["look"])
    log.start(look)
    log.claim(reason="reclaimed", crashes=0)
    log.finish(look, outcome="timed_out", duration_seconds=55.5)
    log.settle("timed_out", code="deadline_exceeded")
    return log


def odds_and_ends() -> LogBuilder:
    """Advisories, tasks, memories, refused calls, a call within a call."""
    log = _claimed(deltas=True)
    advisory = log.system.new_id("adv")
    log.write(AdvisoryAdded, advisory_id=advisory, code="tool_withheld", message="No pay today.")
    unknown, malformed, outer = log.turn(["lok", "look", "code"])
    log.refuse(unknown, "unknown")
    log.refuse(malformed, "malformed", message="cents: not a number")
    log.start(outer)
    inner, refused = log.system.new_id("call"), log.system.new_id("call")
    log.start(inner, parent_call=outer)
    log.finish(inner)
    log.refuse(refused, "limit", parent_call=outer)
    log.finish(outer)
    log.write(TasksUpdated, tasks=[{"text": "look", "done": True}, None])
    log.write(MemoryChanged, key="city", op="put", digest=sha256("Paris"))
    log.turn(text="")
    log.settle("failed", code="empty_answer")
    return log


def erased() -> LogBuilder:
    """What was said is gone; what happened stays."""
    log = one_tool()
    log.erase(reason="asked for")
    log.rows[:] = [row.model_copy(update={"content": None, "salt": None}) for row in log.rows]
    return log


def _walk(seed: int) -> Callable[[], LogBuilder]:
    """Return a story that dice told: legal, and like no other."""

    def walk() -> LogBuilder:
        random = Random(seed)
        log = _claimed(deadline_seconds=900.0)
        while len(log.rows) < 90 and log.state.phase != "erased":
            record = choose(log, random)
            if record is None:
                continue
            try:
                step(log.state, record)
            except CorruptLog:
                continue
            log.add(record)
        return log

    return walk


STORIES: Final[Mapping[str, Callable[[], LogBuilder]]] = {
    "v1_aborted": aborted,
    "v1_admitted": admitted,
    "v1_approvals": approvals,
    "v1_asking": asking,
    "v1_child": child,
    "v1_compaction": compaction,
    "v1_erased": erased,
    "v1_fork": fork,
    "v1_handed_over": handed_over,
    "v1_next_run": next_run,
    "v1_odds_and_ends": odds_and_ends,
    "v1_one_tool": one_tool,
    "v1_parent": parent,
    "v1_parked": parked,
    "v1_queues": queues,
    "v1_retries": retries,
    "v1_timed_out": timed_out,
    "v1_waits": waits,
    "v1_walk_1": _walk(1),
    "v1_walk_2": _walk(2),
    "v1_worker_died": worker_died,
    "v1_workflow": workflow,
}
"""Each with the minor version of the schema that wrote it first."""
