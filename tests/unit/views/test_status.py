"""status_view: one word for where a Run stands, and what it is about."""

from datetime import timedelta

import pytest

from psych_runtime.errors import CorruptLog
from psych_runtime.testing.log_builder import LogBuilder
from psych_runtime.views import status_view
from psych_schema.base import format_instant
from psych_schema.record import Broken
from psych_schema.store import RunRow, WorkerRow
from psych_schema.view import StatusView


def admitted() -> LogBuilder:
    log = LogBuilder()
    log.admit("hi")
    return log


def claimed() -> LogBuilder:
    log = admitted()
    log.claim()
    return log


def view(log: LogBuilder) -> StatusView:
    return status_view(log.header, log.entries)


def worker(log: LogBuilder, *tools: str, id: str = "wrk_00000000000000000000000099") -> WorkerRow:
    now = log.header.created_at
    return WorkerRow(
        id=id,
        lease_until=now,
        lease_seconds=6.0,
        beat=1,
        since=now,
        dead=False,
        build="1.0.0",
        tools=tools,
    )


def with_header(log: LogBuilder, **columns: object) -> RunRow:
    return log.header.model_copy(update=columns)


def test_status_of_an_admitted_run_is_queued() -> None:
    """Nothing is wrong with a Run that nobody has taken yet."""
    log = admitted()

    found = view(log)

    assert found.lifecycle == "queued"
    assert found.blocked_on is None
    assert (found.head, found.epoch, found.turn, found.worker) == (1, 0, 0, None)
    assert found.thread.id == log.run_id


def test_status_of_a_claimed_run_is_running() -> None:
    """The header's worker and the last turn begun are shown."""
    log = claimed()
    log.turn()

    found = view(log)

    assert found.lifecycle == "running"
    assert found.worker == log.header.worker
    assert found.turn == 1


@pytest.mark.parametrize(
    ("state", "lifecycle"),
    [
        ("completed", "done"),
        ("aborted", "stopped"),
        ("failed", "failed"),
        ("timed_out", "failed"),
        ("expired", "failed"),
    ],
)
def test_status_of_a_settled_run_says_how_it_ended(state: str, lifecycle: str) -> None:
    """Five ends are three words, and `ended` keeps the exact one."""
    log = claimed()
    if state == "completed":
        log.turn(text="done")
    settled = log.settle(state)

    found = view(log)

    assert found.lifecycle == lifecycle
    assert found.ended is not None
    assert found.ended.state == state
    assert found.ended.code == (None if state == "completed" else state)
    assert found.ended.at == settled.at


def test_status_of_an_aborted_run_that_still_works_is_stopping() -> None:
    """It stops as soon as its attempt sees the request."""
    log = claimed()
    log.abort()

    found = view(log)

    assert found.lifecycle == "stopping"
    assert found.abort == "requested"


def test_status_of_an_aborted_run_without_a_worker_is_stopping_not_blocked() -> None:
    """Any supervisor settles it, whichever tools it has."""
    log = admitted()
    log.abort()

    found = status_view(
        log.header, log.entries, spec_tools=["code:charge"], workers=[worker(log, "code:look")]
    )

    assert found.lifecycle == "stopping"
    assert found.blocked_on is None


def test_status_of_a_parked_run_is_waiting_for_nothing_that_anyone_can_give() -> None:
    """A retry far away suspends with an instant only."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask())
    wake_at = log.header.head_at + timedelta(seconds=60)
    log.suspend(wake_at=wake_at)

    found = view(log)

    assert found.lifecycle == "waiting"
    assert found.wake_at == wake_at
    assert found.pending_waits == ()
    assert found.pending_approvals == ()
    assert found.blocked_on is not None
    assert found.blocked_on.code == "model_retry"
    assert found.blocked_on.message == (
        "model call failed: overloaded; the model is tried again at "
        f"{format_instant(wake_at)}, by itself, while a worker runs"
    )


def test_run_14_status_of_a_short_wait_for_a_retry_is_running_and_says_so() -> None:
    """The worker keeps the Run; the next call takes the reason away."""
    log = claimed()
    log.begin_turn()
    retry_at = log.header.head_at + timedelta(seconds=2)
    log.fail(log.ask(), said=Broken(message="529: too busy"), retry_at=retry_at)
    before = view(log)
    log.ask(tries=2)
    after = view(log)

    assert before.lifecycle == after.lifecycle == "running"
    assert before.blocked_on is not None
    assert before.blocked_on.code == "model_retry"
    assert before.blocked_on.message.startswith("model call failed: overloaded: 529: too busy; ")
    assert format_instant(retry_at) in before.blocked_on.message
    assert after.blocked_on is None


def test_run_14_a_call_that_gave_up_is_not_retried() -> None:
    """Nothing is waited for: the Run is about to fail."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), next="give_up")

    assert view(log).blocked_on is None


def test_run_14_an_aborted_run_waits_for_no_retry() -> None:
    """It stops."""
    log = claimed()
    log.begin_turn()
    log.fail(log.ask(), retry_at=log.header.head_at)
    log.abort()

    found = view(log)

    assert found.lifecycle == "stopping"
    assert found.blocked_on is None


def test_run_7_status_after_a_failed_attempt_says_when_the_next_one_comes() -> None:
    """Queued, not blocked: time alone must pass. The next attempt takes the reason away."""
    log = claimed()
    log.end("error", code="internal_error")
    again_at = log.header.head_at + timedelta(seconds=4)

    found = status_view(with_header(log, wake_at=again_at), log.entries)
    drained = claimed()
    drained.end("drained")
    log.claim()

    assert found.lifecycle == "queued"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "attempt_failed"
    assert found.blocked_on.message == (
        "the attempt failed: internal_error; the Run is tried again at "
        f"{format_instant(again_at)}, by itself, while a worker runs; "
        "the log of its worker says more"
    )
    assert view(log).blocked_on is None
    assert view(drained).blocked_on is None


def test_pub_3_a_missing_tool_is_told_before_a_failed_attempt() -> None:
    """What somebody must do comes before what only takes time."""
    log = claimed()
    log.end("error", code="internal_error")
    header = with_header(log, wake_at=log.header.head_at)

    found = status_view(
        header, log.entries, spec_tools=["code:charge"], workers=[worker(log, "code:look")]
    )

    assert found.lifecycle == "blocked"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "no_worker_has_tool"


def test_app_2_status_lists_every_pending_approval_with_what_it_asks() -> None:
    """All of a turn at once, in the order requested; decided ones are gone."""
    log = claimed()
    first, second, third = log.turn(["charge", "mail", "drop"])
    expires_at = log.header.head_at + timedelta(hours=1)
    one = log.request(first, arguments={"cents": 5}, expires_at=expires_at)
    two = log.request(second)
    three = log.request(third)
    log.suspend()
    log.decide(two)

    found = view(log)

    assert [(a.approval_id, a.call_id, a.identity) for a in found.pending_approvals] == [
        (one, first, "code:charge"),
        (three, third, "code:drop"),
    ]
    assert found.pending_approvals[0].arguments == {"cents": 5}
    assert found.pending_approvals[0].expires_at == expires_at
    assert found.pending_approvals[0].risk == "write"


def test_app_4_an_abort_takes_pending_approvals_away() -> None:
    """What is voided is not offered for a decision."""
    log = claimed()
    [call] = log.turn(["charge"])
    log.request(call)
    log.suspend()
    log.abort()

    assert view(log).pending_approvals == ()


def test_sus_5_status_lists_open_waits_with_what_they_ask() -> None:
    """Each by its id, until it is resolved."""
    log = claimed()
    [first, second] = log.turn(["ask", "ask"])
    log.start(first)
    log.start(second)
    one = log.wait("question", call=first, ask={"question": "which?"})
    two = log.wait("event", call=second)
    log.suspend()

    before = view(log)
    log.resolve(one)
    after = view(log)

    assert before.lifecycle == "waiting"
    assert [(w.wait_id, w.kind) for w in before.pending_waits] == [
        (one, "question"),
        (two, "event"),
    ]
    assert before.pending_waits[0].ask == {"question": "which?"}
    assert [w.wait_id for w in after.pending_waits] == [two]


def test_status_shows_running_calls_and_not_those_that_ended() -> None:
    """A sibling that is done does not run."""
    log = claimed()
    look, charge, _ = log.turn(["look", "charge", "asked"])
    log.start(look)
    started = log.start(charge)
    log.finish(look)

    [running] = view(log).running_calls

    assert running.call_id == charge
    assert running.identity == "code:charge"
    assert running.tries == 1
    assert running.started_at == started.at


def test_status_shows_the_last_try_of_a_call_that_runs_again() -> None:
    """A safe call keeps its id after a crash."""
    log = claimed()
    [look] = log.turn(["look"])
    log.start(look, safe_to_retry=True)
    log.claim()
    again = log.start(look, safe_to_retry=True)

    [running] = view(log).running_calls

    assert running.tries == 2
    assert running.started_at == again.at


def test_status_shows_queued_entries_until_they_are_consumed() -> None:
    """In the order they came, each with its queue."""
    log = claimed()
    log.turn()
    steer = log.send("and?", "steer")
    later = log.send("then", "next_run")
    before = view(log)
    log.begin_turn()
    log.consume(steer)

    assert [(e.entry_id, e.queue) for e in before.queued] == [(steer, "steer"), (later, "next_run")]
    assert [e.entry_id for e in view(log).queued] == [later]


def test_pub_3_a_run_whose_tool_no_live_worker_has_is_blocked() -> None:
    """The status names the tool, in words and by identity."""
    log = admitted()

    found = status_view(
        log.header,
        log.entries,
        spec_tools=["code:charge", "code:look"],
        workers=[worker(log, "code:look")],
    )

    assert found.lifecycle == "blocked"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "no_worker_has_tool"
    assert found.blocked_on.message == "no live worker has tool charge"
    assert found.blocked_on.tools == ("code:charge",)


def test_pub_3_a_worker_that_has_every_tool_unblocks_the_run() -> None:
    """One is enough, whatever the others lack."""
    log = admitted()

    found = status_view(
        log.header,
        log.entries,
        spec_tools=["code:charge"],
        workers=[worker(log), worker(log, "code:charge", "code:look")],
    )

    assert found.lifecycle == "queued"
    assert found.blocked_on is None


def test_pub_3_tools_that_no_single_worker_has_together_block() -> None:
    """Each worker has one of two: the Run needs one that has both."""
    log = admitted()

    found = status_view(
        log.header,
        log.entries,
        spec_tools=["code:charge", "code:look"],
        workers=[worker(log, "code:look"), worker(log, "code:charge")],
    )

    assert found.blocked_on is not None
    assert found.blocked_on.message == (
        "no live worker has all the tools it needs; one lacks only charge"
    )
    assert found.blocked_on.tools == ("code:charge",)


def test_pub_3_without_any_known_worker_a_run_is_queued() -> None:
    """A worker may just not have been started yet."""
    log = admitted()

    found = status_view(log.header, log.entries, spec_tools=["code:charge"])

    assert found.lifecycle == "queued"
    assert found.blocked_on is None


def test_pub_3_a_run_in_the_hands_of_a_live_worker_is_not_blocked() -> None:
    """Who holds it has what it needs."""
    log = claimed()
    holder = worker(log, "code:charge", id=log.header.worker or "")

    found = status_view(
        log.header,
        log.entries,
        spec_tools=["code:charge"],
        workers=[worker(log, "code:look"), holder],
    )

    assert found.lifecycle == "running"


def test_pub_3_a_run_of_a_dead_worker_is_blocked_when_nobody_else_has_the_tool() -> None:
    """It needs a new worker, and none of those that live will do."""
    log = claimed()

    found = status_view(
        log.header, log.entries, spec_tools=["code:charge"], workers=[worker(log, "code:look")]
    )

    assert found.lifecycle == "blocked"


def test_run_13_a_run_let_go_for_a_newer_build_is_blocked_until_one_takes_it() -> None:
    """The attempt that let it go said which version it needs."""
    log = claimed()
    log.end("blocked", needs_version=2)
    blocked = view(log)
    log.claim()

    assert blocked.lifecycle == "blocked"
    assert blocked.blocked_on is not None
    assert blocked.blocked_on.code == "newer_record"
    assert "schema version 2" in blocked.blocked_on.message
    assert view(log).lifecycle == "running"


def test_run_13_a_log_with_newer_records_is_shown_as_far_as_it_can_be_read() -> None:
    """It is not corrupt: this build is old."""
    log = claimed()
    log.turn()
    log.end("drained")
    header = with_header(log, schema_version=2)

    found = status_view(header, log.entries[:3])

    assert found.lifecycle == "blocked"
    assert found.blocked_on is not None
    assert found.blocked_on.code == "newer_record"
    assert found.turn == 1
    assert found.head == log.header.head


def test_run_13_a_newer_log_in_the_hands_of_a_worker_is_running() -> None:
    """Its worker is newer, too; only the reader is old."""
    log = claimed()
    log.turn()

    found = status_view(with_header(log, schema_version=2), log.entries[:2])

    assert found.lifecycle == "running"
    assert found.blocked_on is None


def test_run_13_a_newer_log_that_settled_does_not_claim_how() -> None:
    """Neither done nor failed: the end is written in words that this build does not have."""
    log = claimed()
    log.turn()
    log.settle()

    found = status_view(with_header(log, schema_version=2), log.entries[:2])

    assert found.lifecycle == "blocked"
    assert found.ended is None
    assert found.blocked_on is not None
    assert found.blocked_on.code == "newer_record"


def test_log_3_a_run_marked_corrupt_is_failed_and_says_why() -> None:
    """It has not ended, it cannot go on."""
    log = claimed()
    header = with_header(log, state="corrupt", worker=None)

    found = status_view(header, log.entries)

    assert found.state == "corrupt"
    assert found.lifecycle == "failed"
    assert found.ended is None
    assert found.blocked_on is not None
    assert found.blocked_on.code == "corrupt_log"
    assert found.blocked_on.message.startswith("marked_corrupt at seq 2;")


def test_log_3_a_log_that_does_not_fold_is_failed_before_anybody_marks_it() -> None:
    """The status says what a worker would find, with its reason and place."""
    log = claimed()
    log.turn()
    twice = [*log.entries[:3], log.entries[2], *log.entries[3:]]

    found = status_view(log.header, twice)

    assert found.state == "running"
    assert found.lifecycle == "failed"
    assert found.blocked_on is not None
    assert found.blocked_on.message.startswith("seq_not_next at seq 3;")


def test_log_3_a_log_that_stops_before_its_head_is_corrupt_where_it_stops() -> None:
    """What cannot be read counts as missing."""
    log = claimed()
    log.turn()

    found = status_view(log.header, log.entries[:2])

    assert found.lifecycle == "failed"
    assert found.blocked_on is not None
    assert found.blocked_on.message.startswith("unreadable at seq 3;")


def test_log_1_a_second_end_is_corrupt_and_the_first_is_not_trusted() -> None:
    """The view does not pick one of two terminal records."""
    log = claimed()
    log.turn()
    log.settle()
    with pytest.raises(CorruptLog) as caught:
        log.settle("failed")
    doubled = [*log.entries, log.entries[-1]]

    found = status_view(log.header, doubled)

    assert caught.value.reason == "run_is_settled"
    assert found.lifecycle == "failed"
    assert found.ended is None


def test_status_of_an_erased_run_still_says_how_it_ended() -> None:
    """Facts are left when words are gone."""
    log = claimed()
    log.turn()
    log.settle()
    log.erase()

    found = view(log)

    assert found.lifecycle == "done"
    assert found.head == len(log.entries)


def test_status_keeps_what_is_left_of_the_deadline_while_suspended() -> None:
    """The clock stands still, and the header says at what."""
    log = claimed()
    header = with_header(log, state="suspended", worker=None, remaining_seconds=12.5)

    found = status_view(header, log.entries)

    assert found.lifecycle == "waiting"
    assert found.remaining_seconds == 12.5
    assert found.deadline_at is None
