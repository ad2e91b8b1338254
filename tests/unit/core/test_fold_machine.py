"""LOG-1, R-3, R-1: the fold as a machine; any record at any moment, against a second opinion.

The state is that of a ledger without any table; every way to the same state gives the same
state; what is refused is refused for a reason that is true, and leaves nothing behind.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic import JsonValue

from psych_runtime.core.codec import decode_anew
from psych_runtime.core.fold import RunState, advance, fold, step
from psych_runtime.errors import CorruptLog
from psych_runtime.ports.store import Admit, HeaderChange
from psych_runtime.store.units import admitted, changed
from psych_runtime.testing import LogBuilder
from psych_schema.base import format_instant
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    BaseRef,
    Record,
    RunSettled,
    RunSuspended,
    ToolCompleted,
)
from psych_schema.store import RunRow
from psych_schema.transitions import PHASES, TRANSITIONS
from tests.unit.core.drafts import H, draft
from tests.unit.core.ledger import Ledger
from tests.unit.core.logs import CHILD, copied, placed
from tests.unit.core.reasons import REASONS
from tests.unit.core.test_fold_walk import check_commutes, is_note, is_outside, judged
from tests.unit.core.twist import twisted
from tests.unit.core.walk import KINDS, OTHER_DIGEST, SHARES, propose, recover
from tests.unit.effort import effort

LEFT_OUT = {"wake_at", "deadline_at", "remaining_seconds", "referenced", "capped"}
OUTSIDE = [kind for kind, row in TRANSITIONS.items() if "outside" in row.by]
OPEN_IN_HEADER = {
    "approval": ("open", "granted"),
    "wait": ("open",),
    "entry": ("queued",),
    "event": ("kept",),
    "child": ("live",),
}
SELDOM = dict.fromkeys(
    (
        "queue.enqueued",
        "event.received",
        "advisory.added",
        "memory.changed",
        "tasks.updated",
        "tools.offered",
        "child.messaged",
        "tool.progress",
        "step.started",
        "run.suspended",
    ),
    0.15,
)
"""How often a record is chosen that may nearly always follow, beside those that seldom may."""
WANTED = [
    "abort.requested",
    "approval.decided",
    "approval.requested",
    "attempt.ended",
    "child.messaged",
    "context.compacted",
    "queue.enqueued",
    "run.suspended",
    "tool.progress",
    "tool.started",
    "wait.resolved",
]
PLACES = ("seq", "back", "prev", "none", "at", "epoch", "writer")
seeds = st.integers(0, 2**32 - 1)


class Snapshot(NamedTuple):
    """A state that was, behind so many records."""

    length: int
    state: RunState
    kept: RunState  # what it was then, sharing nothing


def refusal(judge: Callable[[], object]) -> str:
    """Return why a record may not follow, "" when it may."""
    reason = ""
    try:
        judge()
    except CorruptLog as error:
        reason = error.reason
    assert not reason or reason in REASONS
    return reason


def named(record: Record) -> set[str]:
    """Return every id that a record names, a turn's number among them."""
    found = {""}
    for _, value in record:
        values = value if isinstance(value, tuple) else (value,)
        found |= {str(one) for one in values if isinstance(one, str | int)}
    return found


class FoldMachine(RuleBasedStateMachine):
    """A log that grows by any legal record, and is asked about any other at each moment."""

    @initialize(
        records_per_unit=st.sampled_from([1, 2, 7, 90]),
        is_fork=st.booleans(),
        seed=seeds,
        records=st.integers(0, 80),
        decision=st.sampled_from([None, "approve", "edit", "deny"]),
    )
    def admit(
        self, records_per_unit: int, is_fork: bool, seed: int, records: int, decision: str | None
    ) -> None:
        self.log = LogBuilder(records_per_unit=records_per_unit)
        self.ledger = Ledger()
        self.live = RunState()  # of drafts, as a writer folds them
        self.crashes = 0
        self.snapshots = [Snapshot(0, RunState(), RunState())]
        base = BaseRef(run=CHILD, seq=1, hash=H) if is_fork else None
        self.write(draft(self.log, "run.admitted", root=self.log.run_id, base=base))
        if decision is not None:
            self.write(draft(self.log, "attempt.started"))
            self.consent(Random(seed), decision)
        self.grow(seed, records)

    def write(self, record: Record) -> None:
        """Write what is legal; every way there leads to the same state."""
        changes = step(self.live, record)
        overlay = self.live.overlay()
        before = copied(self.live)
        overlay.apply(record, changes)
        assert self.live == before
        self.live.apply(record, changes)
        written = self.log.add(record)
        self.ledger.take(written)
        self.count_crashes(written)
        overlay.position = self.live.position = self.log.state.position
        assert copied(overlay) == self.live == self.log.state

    def count_crashes(self, record: Record) -> None:
        match record:
            case AttemptStarted():
                self.crashes = record.crashes
            case AttemptEnded():
                self.crashes = self.crashes + 1 if record.reason == "error" else 0
            case RunSuspended() | RunSettled():
                self.crashes = 0
            case _:
                pass

    def candidates(self, random: Random) -> Iterator[Record]:
        """Yield one proposal of every type, in any order; those that lead nowhere come late."""
        running = self.ledger.phase("run") == "running"
        weights = dict.fromkeys(KINDS, 1.0) | SELDOM | dict(SHARES)
        if not running:
            weights["attempt.started"] = 1.0
        for kind in sorted(KINDS, key=lambda kind: -(random.random() ** (1 / weights[kind]))):
            record = propose(self.log, random, kind)
            if record is not None:
                share = 0.5 if kind == "attempt.ended" else 0.1
                yield twisted(self.log, random, record) if random.random() < share else record

    @rule(seed=seeds, records=st.integers(1, 20))
    def grow(self, seed: int, records: int) -> None:
        """Append records that may follow."""
        random = Random(seed)
        for _ in range(records):
            if self.ledger.phase("run") in ("settled", "erased"):
                return
            for record in self.candidates(random):
                if self.ledger.may(record):
                    self.write(record)
                    break
            if random.random() < 0.2:
                self.ask(random)

    @precondition(lambda self: self.ledger.phase("run") == "running")
    @rule(random=seeds.map(Random))
    def take_over(self, random: Random) -> None:
        """The worker died over a call, if one can begin: another goes on, with what is open."""
        for call in self.ledger.those("call", "asked")[:1]:
            start = draft(
                self.log, "tool.started", call_id=call, safe_to_retry=random.random() < 0.5
            )
            self.write(start)
        crashes = self.crashes + 1
        self.write(draft(self.log, "attempt.started", reason="reclaimed", crashes=crashes))
        self.ask(random)

    @precondition(lambda self: self.ledger.phase("run") in ("ready", "running", "suspended"))
    @rule(kinds=st.permutations(WANTED), random=seeds.map(Random))
    def want(self, kinds: list[str], random: Random) -> None:
        """Append a record that chance alone brings too seldom, and look what follows from it."""
        for kind in kinds:
            for _ in range(4):
                record = propose(self.log, random, kind)
                if record is None:
                    continue
                record = twisted(self.log, random, record) if kind == "attempt.ended" else record
                if self.ledger.may(record):
                    self.write(record)
                    self.ask(random)
                    return

    @rule(random=seeds.map(Random), decision=st.sampled_from(["approve", "edit", "deny"]))
    def consent(self, random: Random, decision: str) -> None:
        """Let the model ask for two calls, and somebody decide on one of them."""
        number = self.ledger.last_turn + 1
        turn = draft(self.log, "turn.started", turn=number)
        if not self.ledger.may(turn) or self.ledger.phase("abort") != "none":
            return
        if self.ledger.those("model", "open"):
            return
        self.write(turn)
        model, grant, *calls = map(self.log.system.new_id, ("mc", "apr", "call", "call"))
        of_turn: dict[str, object] = {"call": model, "turn": number}
        digest = OTHER_DIGEST if decision == "edit" else H
        self.write(draft(self.log, "model.started", **of_turn))
        self.write(draft(self.log, "model.completed", **of_turn, calls=tuple(calls)))
        self.write(draft(self.log, "approval.requested", approval_id=grant, call_id=calls[0]))
        decided = {"approval_id": grant, "decision": decision, "digest": digest}
        self.write(draft(self.log, "approval.decided", **decided))
        for call, approval, named in product(calls, (grant, None), (H, OTHER_DIGEST)):
            fields = {"call_id": call, "approval_id": approval, "digest": named}
            self.judge(draft(self.log, "tool.started", **fields))
        self.ask(random)

    @precondition(lambda self: self.ledger.phase("run") == "settled")
    @rule()
    def erase(self) -> None:
        """What was said goes; the state stays."""
        self.write(draft(self.log, "run.erased"))

    def ask(self, random: Random) -> None:
        """Propose a record of every type, as it may be and off by one field."""
        for kind in KINDS:
            record = propose(self.log, random, kind)
            if record is not None:
                for one in (record, twisted(self.log, random, record)):
                    reason = self.judge(one)
                    if reason and random.random() < 0.25:
                        self.read(one, reason)

    @precondition(lambda self: self.ledger.phase("run") != "erased")
    @rule(random=seeds.map(Random))
    def ask_now(self, random: Random) -> None:
        """Ask where the other rules lead, too."""
        self.ask(random)

    def judge(self, record: Record) -> str:
        """Return why the writer may not write a record; both judges agree, the reason is true."""
        reason = refusal(lambda: step(self.log.state, record))
        assert (not reason) == self.ledger.may(record), (record.type, reason)
        assert not reason or self.is_true(reason, record), reason
        return reason

    def read(self, record: Record, reason: str) -> None:
        """Let a reader find a record that may not be there; no refusal leaves a trace."""
        kind, epoch = record.type, self.epoch_of(record)
        entry = placed(self.log, record, epoch=epoch)
        expected = {reason}
        if epoch == 0 and "outside" not in TRANSITIONS[kind].by:
            expected = {"written_from_outside"}  # nobody has claimed the Run yet
        elif epoch and kind != "attempt.started" and self.ledger.phase("run") != "running":
            expected = {f"run_is_{self.ledger.phase('run')}"}
        assert refusal(lambda: advance(self.log.state, entry)) in expected
        assert self.log.state == self.live

    def epoch_of(self, record: Record) -> int:
        """Return the epoch under which a record of this type is written now."""
        by = TRANSITIONS[record.type].by
        if "attempt" not in by or (len(by) > 1 and is_outside(record)):
            return 0
        if isinstance(record, ToolCompleted) and record.source == "stubbed":
            return 0
        return self.ledger.epoch + (record.type == "attempt.started")

    def is_true(self, reason: str, record: Record) -> bool:
        """Tell whether the reason says what is so."""
        row = TRANSITIONS[record.type]
        if reason in row.guards:
            return True
        kind, _, phase = reason.partition("_is_")
        if phase:
            return any(self.ledger.phase(kind, key) == phase for key in named(record))
        kind, _, phase = reason.partition("_still_")
        if phase:
            return bool(self.ledger.those(kind, phase))
        lists = [value for _, value in record if isinstance(value, tuple)]
        return reason.endswith("_twice") and any(len(set(one)) < len(one) for one in lists)

    @rule(seed=seeds, what=st.sampled_from(PLACES))
    def misplace(self, seed: int, what: str) -> None:
        """Place a record that may follow where it may not."""
        record = next(filter(self.ledger.may, self.candidates(Random(seed))), None)
        head = self.log.state.position
        if record is None or head.at is None:
            return
        epoch, by = self.epoch_of(record), TRANSITIONS[record.type].by
        fields: dict[str, JsonValue] = {}
        match what:
            case "seq" | "back":
                fields["seq"] = head.seq + 2 if what == "seq" else head.seq
                reason = "seq_not_next"
            case "prev" | "none":
                fields["prev"] = "0" * 64 if what == "prev" else None
                reason = "prev_does_not_fit"
            case "at":
                fields["at"] = format_instant(head.at - timedelta(microseconds=1))
                reason = "at_falls"
            case "epoch" if epoch:
                epoch, reason = epoch + 1, "epoch_not_current"
            case "writer" if len(by) == 1 and record.type != "attempt.started":
                epoch = 0 if epoch else self.ledger.epoch
                reason = "written_by_attempt" if epoch else "written_from_outside"
                if "outside" in by and not epoch:
                    return  # nobody has claimed the Run yet
            case _:
                return
        entry = placed(self.log, record, epoch=epoch, **fields)
        assert refusal(lambda: advance(self.log.state, entry)) == reason
        assert self.log.state == self.live

    @rule()
    def snapshot(self) -> None:
        """Remember this moment."""
        state = copied(self.log.state)
        self.snapshots.append(Snapshot(len(self.log.entries), state, copied(state)))

    @rule(data=st.data())
    def refold(self, data: st.DataObject) -> None:
        """From any moment on, and up to any moment, the fold is the same."""
        then = data.draw(st.sampled_from(self.snapshots))
        entries = self.log.entries
        assert fold(entries[: then.length]) == then.state == then.kept
        assert fold(entries[then.length :], copied(then.state)) == self.log.state

    @precondition(lambda self: self.ledger.phase("run") == "running")
    @rule(seed=seeds)
    def commute(self, seed: int) -> None:
        """A note and an outside record: either first, both legal or neither, the same state."""
        random = Random(seed)
        notes = [one for one in self.candidates(random) if is_note(one) and not is_outside(one)]
        for note in (one for one in notes if judged(self.live, one) is not None):
            for kind in OUTSIDE:
                other = propose(self.log, random, kind)
                if other is not None and is_outside(other):
                    check_commutes(self.live, note, other, f"record {len(self.log.entries)}")

    @invariant()
    def the_ledger_says_the_same(self) -> None:
        """Every object, every phase, every count."""
        state, ledger = self.log.state, self.ledger
        assert {key: one.phase for key, one in state.objects.items()} == ledger.phases
        for kind, phases in PHASES.items():
            for phase in phases:
                if (kind, phase) in state.live:
                    assert list(state.ids(kind, phase)) or not state.any(kind, phase)
                    assert sorted(state.ids(kind, phase)) == sorted(ledger.those(kind, phase))
        assert (state.epoch, state.last_turn) == (ledger.epoch, ledger.last_turn)
        assert all(one.opened == ledger.made[key].id for key, one in state.objects.items())

    @invariant()
    def the_header_is_what_the_log_says(self) -> None:
        """R-1, step by step."""
        ledger, header, head = self.ledger, self.log.header, self.log.entries[-1]
        phase, abort = ledger.phase("run"), ledger.phase("abort")
        assert header.state == ("settled" if phase == "erased" else phase)
        assert header.abort == (None if abort == "none" else abort)
        assert (header.epoch, header.crashes) == (ledger.epoch, self.crashes)
        assert (header.head, header.head_hash) == (head.record.seq, head.hash)
        assert (header.worker is not None) == (phase == "running")
        assert header.open == {
            key: ledger.moved[kind, key].seq
            for kind, phases in OPEN_IN_HEADER.items()
            for key in ledger.those(kind, *phases)
        }

    def teardown(self) -> None:
        """Read back what was written; and whatever it is, somebody can take and settle it."""
        if not hasattr(self, "log") or not self.log.entries:
            return
        assert fold(map(decode_anew, self.log.rows)) == self.log.state
        self.the_units_leave_the_same_header()
        if self.ledger.phase("run") not in ("settled", "erased"):
            length = len(self.log.entries)
            recover(self.log)
            for entry in self.log.entries[length:]:
                self.ledger.take(entry.record)
            self.the_ledger_says_the_same()
            assert self.log.state.phase == "settled"

    def the_units_leave_the_same_header(self) -> None:
        header: RunRow | None = None
        for unit in self.log.units():
            [change] = unit.changes
            if isinstance(change, Admit):
                header = admitted(change, change.header.created_at)
            elif header is not None:
                now = change.records[-1].record.at
                header = header.model_copy(update=changed(header, change, now))
        assert header is not None
        assert header.model_dump(exclude=LEFT_OUT) == self.log.header.model_dump(exclude=LEFT_OUT)


def test_log_1_r_3_any_record_at_any_moment_is_judged_as_the_protocol_says() -> None:
    """By the fold and by the ledger alike; the state is the same, however it was come by."""
    run_state_machine_as_test(FoldMachine, settings=effort(36, steps=30))


def test_r_1_a_unit_that_takes_a_run_and_fails_counts_from_its_own_claim() -> None:
    """Crashes are the claim's and one more, as when the two are committed one by one."""
    for records_per_unit in (1, 2):
        log = LogBuilder(records_per_unit=records_per_unit)
        log.admit()
        log.claim()
        log.claim(crashes=1)
        log.end("error")
        assert log.header.crashes == 2
        changes = [unit.changes[0].header for unit in log.units()]
        assert isinstance(changes[-1], HeaderChange)
        assert changes[-1].crashes == 2
