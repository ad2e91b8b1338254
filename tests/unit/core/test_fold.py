"""The fold: pure, incremental, total over prefixes; and the place of a committed record."""

from collections.abc import Callable

import pytest
from pydantic import JsonValue

from psych_runtime.core.codec import Position, decode_anew, sha256
from psych_runtime.core.fold import RunState, advance, check_position, fold, step
from psych_runtime.errors import CorruptLog
from psych_runtime.testing import LogBuilder
from psych_schema.record import EventReceived, RunSettled, ToolCompleted, ToolResult
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.drafts import draft
from tests.unit.core.logs import (
    FAR,
    asked,
    claimed,
    copied,
    placed,
    started,
    two_turns,
    types,
    whole_log,
)


@pytest.mark.parametrize("make", [two_turns, whole_log])
def test_log_1_a_legal_log_folds_and_so_does_every_prefix(make: Callable[[], LogBuilder]) -> None:
    """A log that merely stops early is legal; the state is that of the writer at that moment."""
    log = make()
    states = [copied(RunState())]
    state = RunState()
    for entry in log.entries:
        advance(state, entry)
        states.append(copied(state))

    assert state == log.state
    for length, expected in enumerate(states):
        assert fold(log.entries[:length]) == expected


def test_log_1_the_whole_log_has_every_record_type() -> None:
    """So nothing in these tests is about half of the catalogue."""
    log = whole_log()
    assert types(log.entries) == set(TRANSITIONS)
    assert len(TRANSITIONS) == 35
    assert log.state.phase == "erased"


def test_log_1_the_fold_is_incremental() -> None:
    """The fold of a prefix, gone on with the rest, is the fold of all."""
    entries = whole_log().entries
    whole = fold(entries)
    for cut in range(len(entries) + 1):
        assert fold(entries[cut:], fold(entries[:cut])) == whole


def test_log_1_the_fold_of_rows_is_that_of_records() -> None:
    """What was stored says the same as what was written."""
    log = whole_log()
    assert fold(map(decode_anew, log.rows)) == log.state


def test_log_6_each_record_names_the_hash_of_the_body_before_it() -> None:
    """The chain is SHA-256 over the stored text, whatever any library computes."""
    log = whole_log()
    assert log.entries[0].record.prev is None
    for row, entry in zip(log.rows, log.entries[1:], strict=False):
        assert entry.record.prev == sha256(row.body)
    assert log.state.position.hash == sha256(log.rows[-1].body)
    assert log.header.head_hash == log.state.position.hash


def test_log_1_a_second_terminal_record_is_refused() -> None:
    """Neither another end, nor anything else but an erasure."""
    log = two_turns()
    end = log.draft(RunSettled, state="completed")
    with pytest.raises(CorruptLog, match="run_is_settled"):
        advance(log.state, placed(log, end, epoch=1))
    log.erase()
    with pytest.raises(CorruptLog, match="run_is_erased"):
        advance(log.state, placed(log, draft(log, "run.erased"), epoch=0))


def test_log_1_only_an_erasure_may_follow_the_end() -> None:
    """Every type but one is refused on a settled Run."""
    log = two_turns()
    for kind in TRANSITIONS:
        record = draft(log, kind)
        if kind == "run.erased":
            assert step(log.state, record)
            continue
        with pytest.raises(CorruptLog) as caught:
            step(log.state, record)
        assert caught.value.reason.endswith("_settled")


def test_log_1_a_record_that_comes_twice_is_refused() -> None:
    """The same row again has no place."""
    state = RunState()
    for length, entry in enumerate(whole_log().entries, 1):
        advance(state, entry)
        with pytest.raises(CorruptLog) as caught:
            advance(state, entry)
        assert (caught.value.reason, caught.value.seq) == ("seq_not_next", length)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seq": 2}, "seq_not_next"),
        ({"seq": 4}, "seq_not_next"),
        ({"prev": "0" * 64}, "prev_does_not_fit"),
        ({"prev": None}, "prev_does_not_fit"),
        ({"at": "2026-11-29T20:00:00.000000Z"}, "at_falls"),
        ({"epoch": 2}, "epoch_not_current"),
        ({"epoch": 0}, "written_from_outside"),
    ],
)
def test_log_1_a_record_out_of_place_is_refused(fields: dict[str, JsonValue], reason: str) -> None:
    """seq, prev, at and epoch are the reader's to check; a draft has none of them."""
    log = claimed()
    note = draft(log, "tasks.updated")
    assert step(log.state, note) == []
    epoch = fields.pop("epoch", 1)
    assert isinstance(epoch, int)
    entry = placed(log, note, epoch=epoch, **fields)

    with pytest.raises(CorruptLog) as caught:
        advance(log.state, entry)

    assert caught.value.reason == reason
    assert (caught.value.run_id, caught.value.seq) == (log.run_id, entry.record.seq)
    assert log.state.position.seq == 2


def test_log_1_a_first_record_with_a_predecessor_is_refused() -> None:
    """Nothing stands before seq 1."""
    log = LogBuilder()
    entry = placed(log, draft(log, "run.admitted"), epoch=0, prev="0" * 64)
    with pytest.raises(CorruptLog, match="prev_does_not_fit"):
        advance(RunState(), entry)


def test_r_14_a_record_at_the_same_instant_is_in_place() -> None:
    """`at` may stand still; it never falls."""
    log = claimed()
    head = log.state.position
    log.state.position = Position(head.seq, head.hash, FAR)
    entry = placed(log, draft(log, "tasks.updated"), epoch=1)
    assert entry.record.at == FAR
    check_position(log.state, entry)


@pytest.mark.parametrize("kind", sorted(TRANSITIONS))
def test_r_4_records_are_refused_of_the_wrong_kind_of_writer(kind: str) -> None:
    """An attempt writes under its epoch, everybody else under none."""
    log = claimed()
    by = TRANSITIONS[kind].by
    epoch = 1 + (kind == "attempt.started")
    if "outside" not in by:
        with pytest.raises(CorruptLog, match="written_from_outside"):
            check_position(log.state, placed(log, draft(log, kind), epoch=0))
    else:
        check_position(log.state, placed(log, draft(log, kind), epoch=0))
    if "attempt" not in by:
        with pytest.raises(CorruptLog, match="written_by_attempt"):
            check_position(log.state, placed(log, draft(log, kind), epoch=epoch))
    else:
        check_position(log.state, placed(log, draft(log, kind), epoch=epoch))


def test_r_4_a_claim_raises_the_epoch_by_one() -> None:
    """Neither the same epoch again, nor one left out."""
    log = claimed()
    for epoch in (1, 3):
        with pytest.raises(CorruptLog, match="epoch_not_current"):
            advance(log.state, placed(log, draft(log, "attempt.started"), epoch=epoch))
    advance(log.state, placed(log, draft(log, "attempt.started"), epoch=2))
    assert log.state.epoch == 2


def test_r_4_an_attempt_that_was_taken_writes_nothing() -> None:
    """Its epoch is not current, whatever it has to say."""
    log, call = started()
    log.claim()
    late = log.draft(
        ToolCompleted,
        call_id=call,
        outcome="ok",
        result=ToolResult(),
        duration_seconds=0.1,
        source="executed",
    )
    with pytest.raises(CorruptLog, match="epoch_not_current"):
        advance(log.state, placed(log, late, epoch=1))


@pytest.mark.parametrize("let_go", ["suspend", "end"])
def test_r_4_nobody_writes_as_an_attempt_while_nobody_holds_the_run(let_go: str) -> None:
    """Also not the one record that an attempt and others may write."""
    log = claimed()
    wait = log.wait("timer", due=FAR)
    log.suspend() if let_go == "suspend" else log.end()
    due = draft(log, "wait.resolved", wait_id=wait, how="due", by=None)
    phase = {"suspend": "suspended", "end": "ready"}[let_go]

    with pytest.raises(CorruptLog, match="resolution_fits"):
        step(log.state, due)
    with pytest.raises(CorruptLog, match=f"run_is_{phase}"):
        advance(log.state, placed(log, due, epoch=1))
    log.claim()
    advance(log.state, placed(log, due, epoch=2))


def test_r_4_what_only_an_attempt_may_say_is_refused_from_outside() -> None:
    """A timer, an expiry and a cancelled wait are the attempt's; so is a tool's real result."""
    log = claimed()
    wait = log.wait("timer", due=FAR, expires_at=FAR)
    for how in ("due", "expired", "cancelled"):
        record = draft(log, "wait.resolved", wait_id=wait, how=how, by=None)
        with pytest.raises(CorruptLog, match="resolution_fits"):
            advance(copied(log.state), placed(log, record, epoch=0))
        advance(copied(log.state), placed(log, record, epoch=1))

    log, call = started()
    done = draft(log, "tool.completed", call_id=call)
    with pytest.raises(CorruptLog, match="stub_in_fork"):
        advance(log.state, placed(log, done, epoch=0))
    advance(log.state, placed(log, done, epoch=1))


def test_r_17_stubs_stand_in_a_fork_before_its_first_attempt() -> None:
    """The call comes along from the origin; the result is written with the admission."""
    origin, [call] = asked()
    stub = draft(origin, "tool.completed", call_id=call, source="stubbed")
    for fork, epoch, legal in [(True, 0, True), (False, 0, False), (True, 1, False)]:
        state = RunState(is_fork=fork, epoch=epoch)
        ready = origin.state.get("run")._replace(phase="ready")
        state.put([("run", "", ready), ("call", call, origin.state.get("call", call))])
        if legal:
            state.apply(stub, step(state, stub))
            assert state.get("call", call).phase == "done"
        else:
            with pytest.raises(CorruptLog, match="stub_in_fork"):
                step(state, stub)


def test_r_13_every_outside_record_wakes_a_suspended_run() -> None:
    """It becomes ready, with the rest of its state as it was."""
    log = claimed()
    log.wait()
    log.suspend()
    assert log.state.phase == "suspended"
    log.write(EventReceived, event_id=log.system.new_id("evt"), name="x", by="hook")
    assert log.state.phase == "ready"
    assert log.state.any("wait", "open")


def test_r_7_a_claim_of_a_suspended_run_takes_it_at_once() -> None:
    """Taking it does not make it ready on the way."""
    log = claimed()
    log.suspend(wake_at=FAR)
    log.claim()
    assert log.state.phase == "running"


def test_r_12_an_old_grant_keeps_its_call_when_it_is_decided() -> None:
    """A decision adds the digest that was approved and forgets nothing."""
    log, [call] = asked("pay")
    grant = log.request(call, expires_at=FAR)
    log.decide(grant, "edit", digest=sha256("edited"))
    kept = log.state.get("approval", grant)
    assert kept.text("call_id") == call
    assert kept.text("digest") == sha256("edited")
    assert kept.instant("expires_at") == FAR


def test_r_12_a_new_approval_supersedes_the_one_of_its_call() -> None:
    """Open or granted; from then on only the new one counts."""
    for granted in (False, True):
        log, [call] = asked("pay")
        old = log.request(call)
        if granted:
            log.decide(old)
        new = log.request(call, supersedes=old)
        assert log.state.get("approval", old).phase == "superseded"
        assert log.state.get("approval", new).phase == "open"
        with pytest.raises(CorruptLog, match="approval_is_superseded"):
            log.decide(old)


def test_r_8_an_attempt_lets_go_of_what_does_not_run() -> None:
    """A call that waits, a safe one, and an unsafe one of an older epoch that nobody runs now."""
    log, call = started()
    with pytest.raises(CorruptLog, match="only_safe_running"):
        log.end()
    wait = log.wait(call=call)
    log.end()
    log.claim()
    log.resolve(wait)
    log.end()

    log, _ = started(safe_to_retry=True)
    log.end()

    log, _ = started()
    log.abort()
    with pytest.raises(CorruptLog, match="only_safe_running"):
        log.end()


def test_r_19_a_call_does_not_wait_any_more_once_its_wait_is_voided() -> None:
    """An abort voids it: the call runs, and must be settled."""
    log, call = started()
    log.wait(call=call)
    log.abort()
    with pytest.raises(CorruptLog, match="only_safe_running"):
        log.end()


def test_log_1_an_object_remembers_the_record_that_made_it() -> None:
    """Whatever moves it afterwards."""
    log, [call] = asked("pay")
    grant = log.request(call)
    made = log.entries[-1].record.id
    log.decide(grant)
    log.start(call, approval_id=grant)
    assert log.state.get("approval", grant).opened == made
    assert log.state.get("call", call).opened == log.entries[5].record.id


def test_run_1_a_safe_call_starts_again_in_a_later_epoch() -> None:
    """The same call, the next try; an unsafe one never."""
    log, call = started(safe_to_retry=True)
    log.claim()
    log.start(call, safe_to_retry=True)
    assert log.state.get("call", call).number("tries") == 2
    with pytest.raises(CorruptLog, match="retry_is_safe"):
        log.start(call, tries=3)


def test_r_3_step_reads_only() -> None:
    """For every record, legal or not, the state after is the state before."""
    log = whole_log()
    state = RunState()
    for entry in log.entries:
        before = copied(state)
        for kind in TRANSITIONS:
            try:
                step(state, draft(log, kind))
            except CorruptLog:
                continue
            finally:
                assert state == before
        advance(state, entry)


def test_r_3_an_overlay_changes_nothing_below() -> None:
    """Two overlays deep: the rest of a log, tried on either, leaves those below alone."""
    entries = whole_log().entries
    whole = fold(entries)
    for cut in range(0, len(entries), 3):
        state = fold(entries[:cut])
        before = copied(state)
        overlay = state.overlay()
        half = (cut + len(entries)) // 2
        fold(entries[cut:half], overlay)
        between = copied(overlay)
        top = overlay.overlay()
        fold(entries[half:], top)

        assert state == before
        assert overlay == between
        assert top == whole
