"""The header beside the log: it is what the log says, and enough to judge outside records by."""

from datetime import timedelta
from random import Random

import pytest

from psych_runtime.core.codec import sha256
from psych_runtime.core.fold import RunState, advance, step
from psych_runtime.core.header import (
    OPEN_PHASES,
    claim_change,
    header_change,
    state_from_header,
    wake_change,
)
from psych_runtime.errors import CorruptLog
from psych_runtime.ports.store import REMAINING, UNSET, After, HeaderChange
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    EventReceived,
    QueueCancelled,
    Record,
    RunAdmitted,
    RunSettled,
    RunSuspended,
)
from psych_schema.store import RunRow
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.drafts import draft
from tests.unit.core.logs import FAR, asked, claimed, two_turns, whole_log
from tests.unit.core.walk import choose, propose

LEFT_OUT = {"wake_at", "deadline_at", "remaining_seconds", "referenced", "capped"}


class Rebuilt:
    """Recomputes headers from a log, by nothing but the fold."""

    def __init__(self) -> None:
        self.state = RunState()
        self.fixed: dict[str, object] = {}
        self.crashes = 0
        self.worker: str | None = None
        self.version = 0
        self.moved: dict[tuple[str, str], int] = {}

    def add(self, record: Record, hash_: str) -> dict[str, object]:
        """Take a record; return the header behind it."""
        for kind, key, _ in step(self.state, record):
            self.moved[kind, key] = record.seq
        self.state.apply(record, step(self.state, record))
        self.version = max(self.version, record.v)
        match record:
            case RunAdmitted():
                self.fixed = {
                    "tenant": record.scope.tenant,
                    "run_id": record.run_id,
                    "version": record.version,
                    "priority": record.priority,
                    "thread": record.thread.id,
                    "position": record.thread.position,
                    "previous": record.thread.previous,
                    "parent": record.parent.run if record.parent else None,
                    "root": record.root,
                    "created_at": record.at,
                }
            case AttemptStarted():
                self.worker, self.crashes = record.worker, record.crashes
            case AttemptEnded():
                self.worker = None
                self.crashes = self.crashes + 1 if record.reason == "error" else 0
            case RunSuspended() | RunSettled():
                self.worker, self.crashes = None, 0
            case _:
                pass
        phase, abort = self.state.phase, self.state.get("abort").phase
        return self.fixed | {
            "state": "settled" if phase == "erased" else phase,
            "head": record.seq,
            "head_hash": hash_,
            "head_at": record.at,
            "worker": self.worker,
            "epoch": self.state.epoch,
            "crashes": self.crashes,
            "schema_version": self.version,
            "abort": None if abort == "none" else abort,
            "open": {
                key: self.moved[kind, key]
                for kind, phases in OPEN_PHASES.items()
                for key in self.state.ids(kind, *phases)
            },
        }


def columns(header: RunRow) -> dict[str, object]:
    """Return what a rebuild can tell of a header."""
    return header.model_dump(exclude=LEFT_OUT)


def assert_rebuilt(log: LogBuilder) -> None:
    """Check the header that was kept against the log that was written."""
    rebuilt = Rebuilt()
    header: dict[str, object] = {}
    for entry in log.entries:
        header = rebuilt.add(entry.record, entry.hash)
    assert columns(log.header) == header


@pytest.mark.parametrize("seed", range(4))
def test_r_1_the_header_is_its_recomputation_after_every_record(seed: int) -> None:
    """Over random logs; wake_at, deadline_at, remaining_seconds and referenced aside."""
    random = Random(seed)
    log = claimed()
    rebuilt = Rebuilt()
    taken = 0
    for _ in range(600):
        record = choose(log, random)
        if record is not None and not refusal(log.state, record):
            log.add(record)
            expected = [rebuilt.add(one.record, one.hash) for one in log.entries[taken:]]
            taken = len(log.entries)
            assert columns(log.header) == expected[-1]
    assert taken > 50


def test_r_1_the_header_of_a_whole_log_is_its_recomputation() -> None:
    """A record of every type; checked at each commit."""
    whole = whole_log()
    log, rebuilt = LogBuilder(), Rebuilt()
    for entry in whole.entries:
        log.add(entry.record.model_copy(update={"seq": 0, "epoch": 0, "prev": None}))
        one = log.entries[-1]
        assert columns(log.header) == rebuilt.add(one.record, one.hash)
    assert {entry.record.type for entry in log.entries} == set(TRANSITIONS)


@pytest.mark.parametrize("records_per_unit", [1, 2, 5, 90])
async def test_r_1_units_of_any_size_leave_the_same_header(records_per_unit: int) -> None:
    """What a store keeps is what was computed, record by record or many at once."""
    system = CountingSystem()
    log = whole_log()
    store = MemoryStore(system)
    copy = LogBuilder(records_per_unit=records_per_unit)
    for entry in log.entries:
        copy.add(entry.record.model_copy(update={"seq": 0, "epoch": 0, "prev": None}))
    await copy.commit_to(store)
    stored = await store.header("acme", log.run_id)
    assert stored == copy.header
    assert columns(stored) | {"head_hash": ""} == columns(log.header) | {"head_hash": ""}
    assert await store.read("acme", log.run_id) == copy.rows


def refusal(state: RunState, record: Record) -> str:
    """Return why a record may not follow, "" when it may."""
    try:
        step(state, record)
    except CorruptLog as error:
        return error.reason
    return ""


def outside_of(log: LogBuilder, random: Random) -> list[Record]:
    """Return one outside record of each type, mostly about objects that are there."""
    kinds = [k for k, row in TRANSITIONS.items() if row.by[0] == "outside" or len(row.by) == 2]
    found = (
        propose(log, random, kind)
        for kind in kinds
        if kind not in ("run.admitted", "run.erased", "tool.completed")
    )
    return [one for one in found if one is not None and one.by is not None]


def named_by(log: LogBuilder, record: Record) -> list[Record]:
    """Return the records that the header names for the objects that `record` names."""
    values = {value for _, value in record if isinstance(value, str)}
    seqs = {seq for key, seq in log.header.open.items() if key in values}
    return [log.entries[seq - 1].record for seq in sorted(seqs)]


@pytest.mark.parametrize("seed", range(5))
def test_r_20_the_header_judges_outside_records_as_the_whole_log(seed: int) -> None:
    """With the record that it names for an approval or a wait, and no other.

    An object that is over is unknown to the header: refused alike, with a reason of its own.
    """
    random = Random(seed)
    log = claimed()
    verdicts: set[tuple[str, bool]] = set()
    for _ in range(500):
        record = choose(log, random)
        if record is None or refusal(log.state, record):
            continue
        log.add(record)
        for other in outside_of(log, random):
            by_log = refusal(log.state, other)
            by_header = refusal(state_from_header(log.header, named_by(log, other)), other)
            reused = other.type in ("queue.enqueued", "event.received") and by_log.endswith(
                ("_consumed", "_cancelled", "_voided", "_used")
            )
            assert reused or bool(by_header) == bool(by_log), (by_log, by_header)
            if by_log and by_header and not by_header.endswith("_none"):
                assert by_header == by_log
            verdicts.add((other.type, bool(by_log)))
        if log.state.phase == "settled":
            break
    assert len(verdicts) >= 6


def test_r_20_a_decision_is_judged_by_the_record_of_its_approval() -> None:
    """Without it, the digest is unknown and the decision refused; a grant is not open."""
    log, [call] = asked("pay")
    grant = log.request(call)
    requested = log.entries[-1].record
    decision = draft(log, "approval.decided", approval_id=grant, digest=sha256("{}"))
    assert refusal(state_from_header(log.header), decision) == "digest_approved"
    assert refusal(state_from_header(log.header, [requested]), decision) == ""
    log.decide(grant)
    decided = log.entries[-1].record
    for moved in ([requested, decided], [decided, requested], [decided]):
        state = state_from_header(log.header, moved)
        assert refusal(state, decision) == "approval_is_granted"
    other = draft(log, "approval.decided", approval_id=grant, digest="b" * 64)
    assert refusal(state_from_header(log.header, [decided]), other) == "approval_is_granted"


def test_r_20_a_delivery_is_judged_by_the_record_of_its_wait() -> None:
    """A timer cannot be delivered."""
    log = claimed()
    wait = log.wait("timer", due=FAR)
    opened = log.entries[-1].record
    delivery = draft(log, "wait.resolved", wait_id=wait)
    assert refusal(state_from_header(log.header, [opened]), delivery) == "resolution_fits"
    question = log.wait("question")
    opened = log.entries[-1].record
    delivery = draft(log, "wait.resolved", wait_id=question)
    assert refusal(state_from_header(log.header, [opened]), delivery) == ""


def test_r_20_several_outside_records_can_be_applied_to_a_state_of_a_header() -> None:
    """It goes on as the fold does: what one closes, the next one finds closed."""
    log = claimed()
    entry = log.send()
    wait = log.wait()
    log.suspend()
    state = state_from_header(log.header)
    abort = draft(log, "abort.requested", force=False)
    state.apply(abort, step(state, abort))
    assert state.phase == "ready"
    assert refusal(state, draft(log, "wait.resolved", wait_id=wait)) == "wait_is_voided"
    assert refusal(state, abort) == "abort_is_requested"
    forced = draft(log, "abort.requested", force=True)
    state.apply(forced, step(state, forced))
    cancel = draft(log, "queue.cancelled", entry_id=entry)
    state.apply(cancel, step(state, cancel))
    assert refusal(state, cancel) == "entry_is_cancelled"


def test_r_16_a_kind_of_object_that_is_not_known_is_left_alone() -> None:
    """A newer build may name others in the header; messages still get in."""
    log = claimed()
    header = log.header.model_copy(update={"open": {"bid_" + "0" * 26: 2, "odd": 2}})
    assert refusal(state_from_header(header), draft(log, "queue.enqueued")) == ""


@pytest.mark.parametrize("state", ["settled", "corrupt"])
def test_r_20_nothing_is_written_to_a_run_that_is_over(state: str) -> None:
    """Whatever the header names as open."""
    log = claimed()
    entry = log.send()
    header = log.header.model_copy(update={"state": state})
    for record in (
        draft(log, "queue.enqueued"),
        draft(log, "queue.cancelled", entry_id=entry),
        draft(log, "abort.requested"),
    ):
        assert refusal(state_from_header(header), record) == f"run_is_{state}"


def change_of(log: LogBuilder, record: Record) -> HeaderChange:
    """Return what one record of an attempt changes."""
    return header_change(
        [(record, step(log.state, record))],
        first_seq=log.header.head + 1,
        crashes=log.header.crashes,
    )


def test_r_1_ordinary_records_change_nothing_but_the_head() -> None:
    """Notes of turns and calls touch no column."""
    log, [call] = asked()
    ordinary: list[tuple[str, dict[str, object]]] = [
        ("tool.started", {"call_id": call}),
        ("tool.refused", {"call_id": call}),
        ("tasks.updated", {}),
        ("memory.changed", {}),
        ("advisory.added", {}),
        ("tools.offered", {}),
        ("step.started", {}),
    ]
    for kind, fields in ordinary:
        assert change_of(log, draft(log, kind, **fields)) == HeaderChange()


def test_r_1_an_object_that_opens_and_closes_in_one_unit_is_not_open() -> None:
    """And one that closes and another that opens are both told."""
    log = claimed()
    gone = log.send()
    written = []
    state = log.state.overlay()
    kept = log.system.new_id("wait")
    short = log.system.new_id("wait")
    for record in (
        draft(log, "queue.consumed", entries=(gone,)),
        draft(log, "wait.opened", wait_id=kept),
        draft(log, "wait.opened", wait_id=short),
        draft(log, "wait.resolved", wait_id=short, how="cancelled", by=None),
    ):
        changes = step(state, record)
        state.apply(record, changes)
        written.append((record, changes))
    change = header_change(written, first_seq=10, crashes=0)
    assert change.opened == {kept: 11}
    assert set(change.closed) == {gone, short}


def test_r_7_crashes_rise_with_an_error_and_end_with_order() -> None:
    """A pause that doubles, at most a minute, and never overflows."""
    log = claimed()
    for crashes, pause in [(0, 1.0), (1, 2.0), (3, 8.0), (6, 60.0), (5000, 60.0)]:
        change = header_change(
            [(draft(log, "attempt.ended", reason="error"), [])], first_seq=3, crashes=crashes
        )
        assert (change.crashes, change.wake_at) == (crashes + 1, After(pause))
        assert (change.state, change.worker) == ("ready", None)
    orderly: list[tuple[str, dict[str, object]]] = [
        ("attempt.ended", {"reason": "drained"}),
        ("attempt.ended", {"reason": "blocked"}),
        ("run.suspended", {"wake_at": FAR}),
        ("run.settled", {}),
    ]
    for kind, fields in orderly:
        change = header_change([(draft(log, kind, **fields), [])], first_seq=3, crashes=4)
        assert (change.crashes, change.worker) == (0, None)


def test_r_7_a_claim_writes_what_attempt_started_says() -> None:
    """Worker, epoch and crashes; and a due wake-up is over."""
    log = claimed()
    log.suspend(wake_at=FAR)
    change = claim_change(log.header, worker="wrk_" + "1" * 26, crashes=2)
    assert change == HeaderChange(
        state="running", worker="wrk_" + "1" * 26, epoch=2, crashes=2, wake_at=None
    )


def test_r_14_a_run_that_waits_for_people_has_no_deadline_until_it_wakes() -> None:
    """The rest is kept, and counted on from the moment of waking, by the store's clock."""
    for wake in ("outside", "claim"):
        system = CountingSystem()
        log = LogBuilder(system=system)
        log.admit(deadline_seconds=60.0)
        start = log.header.created_at
        assert log.header.deadline_at == start + timedelta(seconds=60)
        log.claim()
        system.pass_time(20)
        log.wait("timer", due=FAR)
        log.suspend(wake_at=FAR)
        asleep = log.header
        left = asleep.remaining_seconds
        assert left == pytest.approx(40, abs=0.1)
        assert (asleep.deadline_at, asleep.wake_at) == (None, FAR)
        system.pass_time(3600)
        if wake == "outside":
            log.write(EventReceived, event_id=system.new_id("evt"), name="x", by="hook")
        else:
            log.claim()
        assert left is not None
        assert log.header.deadline_at == log.header.head_at + timedelta(seconds=left)
        assert (log.header.remaining_seconds, log.header.wake_at) == (None, None)


def test_r_14_a_run_parked_for_a_retry_keeps_its_deadline() -> None:
    """Nobody but the provider is waited for."""
    log = LogBuilder()
    log.admit(deadline_seconds=60.0)
    log.claim()
    deadline = log.header.deadline_at
    log.suspend(wake_at=FAR)
    assert (log.header.deadline_at, log.header.remaining_seconds) == (deadline, None)
    assert change_of(claimed(), draft(log, "run.suspended", wake_at=FAR)).deadline_at is UNSET
    log.claim()
    assert log.header.deadline_at == deadline


def test_r_14_an_approval_stops_the_clock_too() -> None:
    """Open approvals are listed as waits."""
    log, [call] = asked("pay")
    grant = log.request(call)
    change = change_of(log, draft(log, "run.suspended", waits=(grant,)))
    assert (change.deadline_at, change.remaining_seconds) == (None, REMAINING)


def test_r_14_a_run_without_a_deadline_gets_none_by_waiting() -> None:
    """There is nothing to keep."""
    log = claimed()
    log.wait()
    log.suspend()
    assert (log.header.deadline_at, log.header.remaining_seconds) == (None, None)
    log.claim()
    assert log.header.deadline_at is None


def test_r_14_a_settled_run_has_no_clock() -> None:
    """Neither deadline, nor rest, nor wake-up; a successor marks it referenced."""
    log = LogBuilder()
    log.admit(deadline_seconds=60.0)
    log.claim()
    log.send(queue="next_run")
    log.settle("failed")
    header = log.header
    assert (header.deadline_at, header.remaining_seconds, header.wake_at) == (None, None, None)
    assert (header.state, header.worker, header.open) == ("settled", None, {})
    assert header.referenced
    assert not two_turns().header.referenced


def test_r_13_an_outside_record_wakes_only_what_sleeps() -> None:
    """A running or ready Run stays as it is."""
    change = HeaderChange(abort="requested")
    for header in (claimed().header, two_turns().header):
        assert wake_change(change, header) == change
    log = claimed()
    log.suspend(wake_at=FAR)
    woken = wake_change(change, log.header)
    assert woken == HeaderChange(abort="requested", state="ready", wake_at=None)


def test_r_18_queued_entries_are_open_until_they_are_gone() -> None:
    """By whatever end."""
    log = claimed()
    one, two, three = (log.send() for _ in range(3))
    assert log.header.open == {one: 3, two: 4, three: 5}
    log.consume(two)
    log.write(QueueCancelled, entry_id=one, by="ann")
    assert log.header.open == {three: 5}
    log.settle("failed")
    assert log.header.open == {}


def test_r_12_a_decision_moves_its_approval_in_the_header() -> None:
    """`open` names the record that last moved it, until it is used."""
    log, [call] = asked("pay")
    grant = log.request(call)
    assert log.header.open == {grant: log.header.head}
    log.decide(grant)
    assert log.header.open == {grant: log.header.head}
    log.start(call, approval_id=grant)
    assert log.header.open == {}


def test_r_1_the_rebuilt_header_follows_the_fold() -> None:
    """The check itself reads a log from the first record on."""
    log = two_turns()
    assert_rebuilt(log)
    state = RunState()
    for entry in log.entries:
        advance(state, entry)
    assert state.phase == log.header.state == "settled"
