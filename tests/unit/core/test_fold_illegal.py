"""LOG-1: what may not follow, each with its own reason, to the writer and to the reader.

`<object>_is_<phase>` is shown here once for each object that a record touches; that every other
phase is refused as well is shown in test_fold_table.py.
"""

from collections.abc import Callable

import pytest

from psych_runtime.core.codec import sha256
from psych_runtime.core.fold import advance, step
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.record import (
    ChildAdmitted,
    ChildSettled,
    EventReceived,
    QueueCancelled,
)
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.drafts import H, X, draft
from tests.unit.core.logs import (
    CHILD,
    COST,
    FAR,
    USAGE,
    asked,
    claimed,
    copied,
    placed,
    started,
    two_turns,
)

type Build = Callable[[], LogBuilder]
type Fields = dict[str, object]


def fresh() -> LogBuilder:
    return claimed()


def aborted() -> LogBuilder:
    log = claimed()
    log.abort()
    return log


def with_asked() -> LogBuilder:
    return asked()[0]


def with_started() -> LogBuilder:
    return started()[0]


def with_done() -> LogBuilder:
    log, call = started()
    log.finish(call)
    return log


def with_turn() -> LogBuilder:
    log = claimed()
    log.begin_turn()
    return log


def with_offer() -> LogBuilder:
    log = with_turn()
    log.offer("look")
    return log


def with_model() -> LogBuilder:
    log = with_turn()
    log.ask()
    return log


def with_failed_model() -> LogBuilder:
    log = with_model()
    log.fail(last(log, "model"))
    return log


def with_compaction() -> LogBuilder:
    log = claimed()
    log.ask(purpose="compaction")
    return log


def with_summary_and_call() -> LogBuilder:
    log = claimed()
    log.answer(log.ask(purpose="compaction"))
    log.turn(calls=["look"])
    return log


def with_summary_and_model() -> LogBuilder:
    log = claimed()
    log.answer(log.ask(purpose="compaction"))
    log.begin_turn()
    log.ask()
    return log


def with_step() -> LogBuilder:
    log = claimed()
    log.begin_step()
    return log


def with_wait() -> LogBuilder:
    log = claimed()
    log.wait(due=FAR)
    return log


def with_timer() -> LogBuilder:
    log = claimed()
    log.wait("timer", due=FAR)
    return log


def with_resolved() -> LogBuilder:
    log = with_wait()
    log.resolve(last(log, "wait"))
    return log


def with_aborted_wait() -> LogBuilder:
    log = with_wait()
    log.abort()
    return log


def with_used_event() -> LogBuilder:
    log = with_resolved()
    event = log.write(EventReceived, event_id=log.system.new_id("evt"), name="paid", by="hook")
    first, _ = log.wait("event"), log.wait("event")
    log.resolve(first, event_id=event.event_id)
    return log


def with_entry() -> LogBuilder:
    log = claimed()
    log.send()
    return log


def with_next_run() -> LogBuilder:
    log = claimed()
    log.send(queue="next_run")
    return log


def with_taken_back() -> LogBuilder:
    log = with_entry()
    log.write(QueueCancelled, entry_id=last(log, "entry"), by="ann")
    return log


def with_approval() -> LogBuilder:
    log, [call] = asked("pay")
    log.request(call)
    return log


def with_grant() -> LogBuilder:
    log = with_approval()
    log.decide(last(log, "approval"))
    return log


def with_two_grants() -> LogBuilder:
    log, calls = asked("pay", "pay")
    for call in calls:
        log.decide(log.request(call))
    return log


def with_a_grant_of_another_call() -> LogBuilder:
    log, calls = asked("pay", "pay")
    log.decide(log.request(calls[0]))
    return log


def with_denied() -> LogBuilder:
    log = with_approval()
    log.decide(last(log, "approval"), "deny")
    return log


def with_aborted_approval() -> LogBuilder:
    log = with_approval()
    log.abort()
    return log


def with_used_grant() -> LogBuilder:
    log, calls = asked("pay", "pay")
    grant = log.request(calls[0])
    log.decide(grant)
    log.start(calls[0], approval_id=grant)
    log.request(calls[1])
    return log


def with_child() -> LogBuilder:
    log, call = started()
    log.write(ChildAdmitted, child=CHILD, version=H, call=call, background=True)
    return log


def with_settled_child() -> LogBuilder:
    log = with_child()
    log.write(ChildSettled, child=CHILD, state="failed", usage=USAGE, cost=COST)
    return log


def with_live_child_alone() -> LogBuilder:
    log = claimed()
    log.write(ChildAdmitted, child=CHILD, version=H, background=True)
    return log


def safe_in_this_epoch() -> LogBuilder:
    return started(safe_to_retry=True)[0]


def unsafe_of_an_older_epoch() -> LogBuilder:
    log = with_started()
    log.claim()
    return log


def ended() -> LogBuilder:
    log = claimed()
    log.end()
    return log


def released() -> LogBuilder:
    """A Run that nobody holds, though one of its calls is only asked."""
    log = with_asked()
    log.end()
    return log


def suspended() -> LogBuilder:
    log = with_wait()
    log.suspend()
    return log


def erased_run() -> LogBuilder:
    log = two_turns()
    log.erase()
    return log


def last(log: LogBuilder, kind: str) -> str:
    """Return the object of this kind that was made last."""
    return [key for (one, key) in log.state.objects if one == kind][-1]


def first(log: LogBuilder, kind: str) -> str:
    """Return the object of this kind that was made first."""
    return next(key for (one, key) in log.state.objects if one == kind)


type Named = Callable[[LogBuilder], Fields]


def of(**kinds: str) -> Named:
    """Name the last object of each kind in these fields."""
    return lambda log: {field: last(log, kind) for field, kind in kinds.items()}


def those(*named: Named, **fields: object) -> Named:
    """Put fields that name objects and others together."""

    def both(log: LogBuilder) -> Fields:
        found = dict(fields)
        for one in named:
            found |= one(log)
        return found

    return both


NOTHING = those()
COMPACTION = those(turn=None, purpose="compaction")

ILLEGAL: list[tuple[str, Build, Named, str]] = [
    # The Run: every record needs it in a phase.
    ("run.admitted", fresh, NOTHING, "run_is_running"),
    ("run.admitted", two_turns, NOTHING, "run_is_settled"),
    ("attempt.started", LogBuilder, NOTHING, "run_is_none"),
    ("attempt.started", two_turns, NOTHING, "run_is_settled"),
    ("attempt.started", erased_run, NOTHING, "run_is_erased"),
    ("attempt.ended", ended, NOTHING, "run_is_ready"),
    ("run.suspended", suspended, of(waits="wait"), "run_is_suspended"),
    ("run.settled", two_turns, NOTHING, "run_is_settled"),
    ("run.settled", ended, NOTHING, "run_is_ready"),
    ("run.erased", fresh, NOTHING, "run_is_running"),
    ("run.erased", erased_run, NOTHING, "run_is_erased"),
    ("abort.requested", two_turns, NOTHING, "run_is_settled"),
    ("turn.started", ended, NOTHING, "run_is_ready"),
    ("tools.offered", suspended, NOTHING, "run_is_suspended"),
    ("advisory.added", ended, NOTHING, "run_is_ready"),
    ("queue.enqueued", two_turns, NOTHING, "run_is_settled"),
    ("queue.consumed", ended, NOTHING, "run_is_ready"),
    ("queue.cancelled", two_turns, NOTHING, "run_is_settled"),
    ("model.started", ended, NOTHING, "run_is_ready"),
    ("model.delta", two_turns, NOTHING, "run_is_settled"),
    ("model.completed", ended, NOTHING, "run_is_ready"),
    ("model.failed", ended, NOTHING, "run_is_ready"),
    ("tool.refused", released, of(call_id="call"), "run_is_ready"),
    ("tool.started", released, of(call_id="call"), "run_is_ready"),
    ("tool.progress", two_turns, of(call_id="call"), "run_is_settled"),
    ("tool.completed", two_turns, of(call_id="call"), "run_is_settled"),
    ("tool.completed", fresh, those(source="stubbed"), "run_is_running"),
    ("approval.requested", released, of(call_id="call"), "run_is_ready"),
    ("approval.decided", two_turns, NOTHING, "run_is_settled"),
    ("approval.expired", ended, NOTHING, "run_is_ready"),
    ("wait.opened", ended, NOTHING, "run_is_ready"),
    ("event.received", two_turns, NOTHING, "run_is_settled"),
    ("wait.resolved", two_turns, NOTHING, "run_is_settled"),
    ("child.admitted", ended, NOTHING, "run_is_ready"),
    ("child.messaged", ended, NOTHING, "run_is_ready"),
    ("child.settled", two_turns, NOTHING, "run_is_settled"),
    ("step.started", ended, NOTHING, "run_is_ready"),
    ("step.completed", ended, NOTHING, "run_is_ready"),
    ("context.compacted", ended, NOTHING, "run_is_ready"),
    ("tasks.updated", ended, NOTHING, "run_is_ready"),
    ("memory.changed", two_turns, NOTHING, "run_is_settled"),
    # The objects that a record names.
    ("run.settled", aborted, those(state="completed", reason=None), "abort_is_requested"),
    ("abort.requested", aborted, NOTHING, "abort_is_requested"),
    ("turn.started", with_done, NOTHING, "turn_is_answered"),
    ("turn.started", fresh, those(step=X), "step_is_none"),
    ("advisory.added", lambda: twice("advisory.added"), NOTHING, "advisory_is_added"),
    ("queue.enqueued", with_entry, of(entry_id="entry"), "entry_is_queued"),
    ("queue.enqueued", aborted, those(queue="follow_up"), "abort_is_requested"),
    ("queue.consumed", fresh, NOTHING, "entry_is_none"),
    ("queue.cancelled", with_taken_back, of(entry_id="entry"), "entry_is_cancelled"),
    ("model.started", with_failed_model, of(call="model", offer="offer"), "model_is_failed"),
    ("model.started", fresh, NOTHING, "turn_is_none"),
    ("model.started", with_turn, those(offer=H), "offer_is_none"),
    ("model.delta", with_failed_model, of(call="model"), "model_is_failed"),
    ("model.completed", fresh, NOTHING, "model_is_none"),
    ("model.completed", with_model, those(of(call="model"), turn=7), "turn_is_none"),
    (
        "model.completed",
        lambda: again(with_done()),
        those(of(call="model", calls="call"), turn=2),
        "call_is_done",
    ),
    ("model.completed", with_model, those(of(call="model"), calls=(X, X)), "call_twice"),
    ("model.failed", with_failed_model, of(call="model"), "model_is_failed"),
    (
        "model.failed",
        with_model,
        those(of(call="model"), turn=7, next="give_up"),
        "turn_is_none",
    ),
    ("tool.refused", fresh, NOTHING, "call_is_none"),
    ("tool.refused", with_started, of(call_id="call"), "call_is_started"),
    ("tool.refused", fresh, those(step=X), "step_is_none"),
    ("tool.refused", with_asked, those(of(parent_call="call")), "call_is_asked"),
    ("tool.started", fresh, NOTHING, "call_is_none"),
    ("tool.started", with_denied, of(call_id="call"), "call_is_proposed"),
    ("tool.started", with_done, of(call_id="call"), "call_is_done"),
    ("tool.started", fresh, those(step=X), "step_is_none"),
    (
        "tool.started",
        with_approval,
        of(call_id="call", approval_id="approval"),
        "approval_is_open",
    ),
    (
        "tool.started",
        with_denied,
        of(call_id="call", approval_id="approval"),
        "approval_is_denied",
    ),
    (
        "tool.started",
        with_used_grant,
        lambda log: {"call_id": last(log, "call"), "approval_id": first(log, "approval")},
        "approval_is_used",
    ),
    (
        "tool.started",
        with_aborted_approval,
        of(call_id="call", approval_id="approval"),
        "approval_is_voided",
    ),
    ("tool.progress", with_done, of(call_id="call"), "call_is_done"),
    ("tool.completed", with_done, of(call_id="call"), "call_is_done"),
    ("tool.completed", with_asked, of(call_id="call"), "call_is_asked"),
    ("approval.requested", fresh, NOTHING, "call_is_none"),
    ("approval.requested", with_approval, of(approval_id="approval"), "approval_is_open"),
    (
        "approval.requested",
        with_denied,
        of(call_id="call", supersedes="approval"),
        "approval_is_denied",
    ),
    ("approval.requested", fresh, those(step=X), "step_is_none"),
    ("approval.decided", fresh, NOTHING, "approval_is_none"),
    ("approval.decided", with_grant, of(approval_id="approval"), "approval_is_granted"),
    ("approval.decided", with_aborted_approval, of(approval_id="approval"), "abort_is_requested"),
    ("approval.expired", with_grant, of(approval_id="approval"), "approval_is_granted"),
    ("wait.opened", with_wait, of(wait_id="wait"), "wait_is_open"),
    ("wait.opened", with_done, of(call="call"), "call_is_done"),
    ("wait.opened", fresh, those(step=X), "step_is_none"),
    ("wait.opened", aborted, NOTHING, "abort_is_requested"),
    ("event.received", with_used_event, of(event_id="event"), "event_is_used"),
    ("wait.resolved", with_resolved, of(wait_id="wait"), "wait_is_resolved"),
    ("wait.resolved", with_aborted_wait, of(wait_id="wait"), "wait_is_voided"),
    ("wait.resolved", with_wait, those(of(wait_id="wait"), event_id=X), "event_is_none"),
    ("wait.resolved", with_used_event, of(wait_id="wait", event_id="event"), "event_is_used"),
    ("child.admitted", with_child, NOTHING, "child_is_live"),
    ("child.admitted", with_asked, of(call="call"), "call_is_asked"),
    ("child.admitted", fresh, those(step=X), "step_is_none"),
    ("child.messaged", with_settled_child, NOTHING, "child_is_settled"),
    ("child.settled", with_settled_child, NOTHING, "child_is_settled"),
    ("step.started", with_step, of(step_id="step"), "step_is_open"),
    ("step.started", with_step, of(compensates="step"), "step_is_open"),
    ("step.completed", fresh, NOTHING, "step_is_none"),
    ("context.compacted", with_failed_model, of(call="model"), "model_is_failed"),
    # What must not be there.
    ("run.suspended", with_model, NOTHING, "model_still_open"),
    ("run.settled", with_model, NOTHING, "model_still_open"),
    ("run.settled", with_asked, NOTHING, "call_still_asked"),
    ("run.settled", with_approval, NOTHING, "call_still_proposed"),
    ("run.settled", with_started, NOTHING, "call_still_started"),
    ("run.settled", with_step, NOTHING, "step_still_open"),
    (
        "run.settled",
        with_live_child_alone,
        those(state="completed", reason=None),
        "child_still_live",
    ),
    ("attempt.ended", with_model, NOTHING, "model_still_open"),
    ("turn.started", with_turn, those(turn=2), "turn_still_open"),
    ("turn.started", with_asked, those(turn=2), "call_still_asked"),
    ("turn.started", with_approval, those(turn=2), "call_still_proposed"),
    ("turn.started", with_started, those(turn=2), "call_still_started"),
    ("model.started", with_model, NOTHING, "model_still_open"),
    ("context.compacted", with_summary_and_model, lambda log: summary(log), "model_still_open"),
    ("context.compacted", with_summary_and_call, lambda log: summary(log), "call_still_asked"),
    (
        "context.compacted",
        lambda: proposed(with_summary_and_call()),
        lambda log: summary(log),
        "call_still_proposed",
    ),
    (
        "context.compacted",
        lambda: running(with_summary_and_call()),
        lambda log: summary(log),
        "call_still_started",
    ),
    # The guards.
    ("attempt.ended", with_started, NOTHING, "only_safe_running"),
    ("run.suspended", with_asked, those(wake_at=FAR), "open_calls_wait"),
    ("run.suspended", fresh, those(waits=(X,)), "waits_listed"),
    ("run.suspended", with_wait, those(wake_at=FAR), "waits_listed"),
    ("run.suspended", with_wait, lambda log: {"waits": (last(log, "wait"),) * 2}, "waits_listed"),
    ("run.suspended", fresh, NOTHING, "something_to_wait_for"),
    ("run.settled", with_entry, NOTHING, "unconsumed_listed"),
    ("run.settled", fresh, those(unconsumed=(X,)), "unconsumed_listed"),
    ("run.settled", with_next_run, NOTHING, "next_run_listed"),
    ("run.settled", fresh, those(next_run=CHILD), "next_run_listed"),
    (
        "run.settled",
        with_entry,
        lambda log: {
            "state": "completed",
            "reason": None,
            "unconsumed": (last(log, "entry"),),
        },
        "completed_leaves_nothing",
    ),
    ("turn.started", fresh, those(turn=2), "turn_follows"),
    ("model.started", with_turn, those(turn=None), "turn_unless_compaction"),
    ("model.started", with_turn, those(purpose="compaction"), "turn_unless_compaction"),
    ("model.completed", with_model, those(of(call="model"), turn=None), "turn_of_call"),
    ("model.failed", with_model, those(of(call="model"), turn=7), "turn_of_call"),
    (
        "model.completed",
        with_compaction,
        those(of(call="model"), turn=None, calls=(X,)),
        "compaction_asks_nothing",
    ),
    ("approval.requested", with_approval, of(call_id="call"), "no_other_approval"),
    ("approval.requested", with_grant, of(call_id="call"), "no_other_approval"),
    (
        "approval.requested",
        with_a_grant_of_another_call,
        of(call_id="call", supersedes="approval"),
        "no_other_approval",
    ),
    (
        "approval.requested",
        with_two_grants,
        lambda log: {"call_id": last(log, "call"), "supersedes": first(log, "approval")},
        "no_other_approval",
    ),
    ("approval.decided", with_approval, of(approval_id="approval"), "digest_approved"),
    (
        "approval.decided",
        with_approval,
        those(of(approval_id="approval"), decision="edit", digest=sha256("{}")),
        "digest_approved",
    ),
    (
        "approval.expired",
        with_approval,
        those(of(approval_id="approval"), reason="due"),
        "approval_is_due",
    ),
    ("tool.started", with_asked, those(of(call_id="call"), tries=2), "retry_is_safe"),
    (
        "tool.started",
        unsafe_of_an_older_epoch,
        those(of(call_id="call"), tries=2),
        "retry_is_safe",
    ),
    ("tool.started", safe_in_this_epoch, those(of(call_id="call"), tries=2), "retry_is_safe"),
    (
        "tool.started",
        with_grant,
        of(call_id="call", approval_id="approval"),
        "grant_fits",
    ),
    (
        "tool.started",
        with_two_grants,
        lambda log: {
            "call_id": last(log, "call"),
            "approval_id": first(log, "approval"),
            "digest": sha256("{}"),
        },
        "grant_fits",
    ),
    (
        "tool.completed",
        released,
        those(of(call_id="call"), source="stubbed"),
        "stub_in_fork",
    ),
    ("wait.resolved", with_timer, of(wait_id="wait"), "resolution_fits"),
    (
        "wait.resolved",
        with_wait,
        those(of(wait_id="wait"), how="due", by=None),
        "resolution_fits",
    ),
    (
        "wait.resolved",
        with_wait,
        those(of(wait_id="wait"), how="expired", by=None),
        "resolution_fits",
    ),
]


def twice(kind: str) -> LogBuilder:
    """Return a log that has this record already."""
    log = claimed()
    log.add(draft(log, kind))
    return log


def again(log: LogBuilder) -> LogBuilder:
    """Let the model be called for another turn."""
    log.begin_turn()
    log.ask()
    return log


def summary(log: LogBuilder) -> Fields:
    """Name the compaction's call and a record that it covers."""
    return {"call": first(log, "model"), "upto": log.entries[0].record.id}


def proposed(log: LogBuilder) -> LogBuilder:
    """Let the call that was asked wait for a decision."""
    log.request(last(log, "call"))
    return log


def running(log: LogBuilder) -> LogBuilder:
    """Let the call that was asked run."""
    log.start(last(log, "call"))
    return log


def as_tuple(fields: Fields) -> Fields:
    """Make lists of ids of single ones, where a field holds several."""
    many = ("waits", "calls", "entries")
    return {k: (v,) if k in many and isinstance(v, str) else v for k, v in fields.items()}


@pytest.mark.parametrize(
    ("kind", "build", "fields", "reason"),
    [pytest.param(*one, id=f"{number:03}-{one[0]}-{one[3]}") for number, one in enumerate(ILLEGAL)],
)
def test_log_1_what_may_not_follow_is_refused_with_its_reason(
    kind: str, build: Build, fields: Named, reason: str
) -> None:
    """Writer and reader use the same judge, and a refused record leaves the state alone."""
    log = build()
    record = draft(log, kind, **as_tuple(fields(log)))
    before = copied(log.state)

    with pytest.raises(CorruptLog) as writer:
        step(log.state, record)
    outside = record.by is not None or fields(log).get("source") == "stubbed"
    epoch = 0 if outside else log.state.epoch + (kind == "attempt.started")
    epoch = 0 if "attempt" not in TRANSITIONS[kind].by else epoch
    with pytest.raises(CorruptLog) as reader:
        advance(log.state, placed(log, record, epoch=epoch))

    assert (writer.value.reason, writer.value.run_id) == (reason, log.run_id)
    assert (reader.value.reason, reader.value.seq) == (reason, len(log.rows) + 1)
    assert log.state == before


def reasons_of_the_table() -> set[tuple[str, str]]:
    """Return (type, reason) for what the table and the guards refuse; a phase is any phase."""
    found: set[tuple[str, str]] = set()
    for kind, row in TRANSITIONS.items():
        for move in row.moves:
            if move.key != "*" and (kind, move.kind) != ("tools.offered", "offer"):
                found.add((kind, f"{move.kind}_is_*"))
        for absent in row.absent:
            found |= {(kind, f"{absent.kind}_still_{phase}") for phase in absent.phases}
        found |= {(kind, guard) for guard in row.guards}
    return found


def test_log_1_every_reason_of_the_table_has_a_case() -> None:
    """Each object that a record needs, each that must be absent, each guard."""
    objects = {move.kind for row in TRANSITIONS.values() for move in row.moves}
    shown = {(kind, reason) for kind, _, _, reason in ILLEGAL}
    shown |= {
        (kind, f"{one}_is_*")
        for kind, reason in shown
        for one in objects
        if reason.startswith(f"{one}_is_")
    }
    # An abort voids grants and waits first, so that their own phase is the reason.
    unreachable = {("tool.started", "abort_is_*"), ("wait.resolved", "abort_is_*")}
    assert reasons_of_the_table() - shown == unreachable
