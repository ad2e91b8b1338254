"""R-2, R-20, R-22: journal and flusher as a machine, whatever the store and others do.

Several attempts of two Runs note and decide through one flusher; what arrives at the store,
when, how often, and what is heard of it is chosen at random. The log is held to what each
attempt was told: notes once and in order, decisions that resolved once, stale ones never.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from functools import partial
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from psych_runtime.core.codec import Position, seal, sha256
from psych_runtime.core.fold import step
from psych_runtime.core.header import header_change, wake_change
from psych_runtime.errors import StoreUnavailable
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.store import MAX_UNIT_RECORDS, Change, Unit
from psych_runtime.runtime.flusher import Flusher
from psych_runtime.runtime.journal import Linked
from psych_runtime.runtime.signals import Lost
from psych_runtime.runtime.takeover import Claim, claim_unit
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.record import Record
from psych_schema.store import KeyRow
from psych_schema.transitions import TRANSITIONS
from tests.unit.core.logs import copied
from tests.unit.core.walk import propose
from tests.unit.effort import effort
from tests.unit.runtime.pens import TENANT, Decided, Pen, Told, refused
from tests.unit.runtime.scripted import HandLoop, Scripted

OUTSIDE = [
    kind
    for kind, row in TRANSITIONS.items()
    if "outside" in row.by and kind not in ("run.admitted", "run.erased", "tool.completed")
]
GONE = StoreUnavailable(problem="gone")
RUNS = 2
ACTS = ("note",) * 5 + ("decide",) * 4 + ("nudge", "key", "link", "end", "flood")
CALM_STEPS = 8
DISASTERS = ("taken", "taken", "given up", "given up", "purged", "broken", "broken")
seeds = st.integers(0, 2**32 - 1)
numbers = st.integers(0, 7)
acts = st.lists(st.tuples(numbers, st.sampled_from(ACTS), seeds), min_size=1, max_size=6)


class JournalMachine(RuleBasedStateMachine):
    """Attempts, a store that is not to be relied on, and others who write to the same Runs."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = HandLoop()
        self.troubles: list[object] = []
        self.loop.set_exception_handler(lambda _, context: self.troubles.append(context))
        self.system = CountingSystem()
        self.store = Scripted(self.watch)
        self.tasks: set[asyncio.Task[None]] = set()
        self.flusher = Flusher(self.store, self.spawn, Context())
        self.runs: list[str] = []
        self.told: dict[str, Told] = {}
        self.pens: list[Pen] = []
        self.units: dict[str, Unit] = {}  # that were sent
        self.latest: dict[tuple[str, int], Unit] = {}
        self.is_fine = False  # all that was looked at, so far
        self.calm = 0  # how long nothing happened after which a Run is lost

    def spawn(self, work: Coroutine[None, None, None]) -> object:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        return task

    def watch(self, units: Sequence[Unit]) -> None:
        """Look at what is sent: whose it is, and that it may be."""
        for unit in units:
            change = unit.changes[0]
            assert isinstance(change, Change)
            [pen] = [one for one in self.pens if one.place == place(unit)]
            under_way = [one for call in self.store.sent for one in call.units]
            for says, trouble in (
                (pen.is_lost, "sent for a Run that is lost"),
                (self.units.setdefault(unit.commit_id, unit) != unit, "sent again, but altered"),
                (len(change.records) > MAX_UNIT_RECORDS, "too many records"),
                (place(unit) in map(place, under_way), "two flights of one Run"),
            ):
                if says:
                    self.troubles.append((trouble, unit))
            self.latest[place(unit)] = unit

    def refresh(self) -> None:
        """Read what stands in the logs."""
        for run, told in self.told.items():
            told.read(self.store.rows(TENANT, run, len(told.records)))

    def inside(self, act: Callable[[], None]) -> None:
        """Do something in the loop, then let it come to rest."""

        async def run() -> None:
            act()

        task = self.loop.create_task(run())
        self.loop.turn()
        task.result()

    # what attempts do

    @initialize()
    def begin(self) -> None:
        for _ in range(RUNS):
            log = LogBuilder(system=self.system)
            log.admit()
            assert self.store.committed(log.units()) == [Committed()]
            self.runs.append(log.run_id)
            self.told[log.run_id] = Told()
            self.claim(log.run_id)

    @rule(acts=acts)
    def go_on(self, acts: list[tuple[int, str, int]]) -> None:
        """Let attempts do something, and the store do its work."""
        self.act(acts)
        self.settle_down(3)

    @rule(acts=acts)
    def act(self, acts: list[tuple[int, str, int]]) -> None:
        """Let attempts do several things in one step of the loop."""

        def run() -> None:
            for number, what, seed in acts:
                pen = self.pens[number % len(self.pens)]
                if not pen.is_lost:
                    self.do(pen, what, Random(seed))

        self.inside(run)

    def do(self, pen: Pen, what: str, random: Random) -> None:
        in_flight = self.in_flight(pen)
        match what:
            case "note":
                pen.note(random, in_flight)
            case "flood" if not in_flight:
                pen.note_many(random.choice((80, 100, 200)))
            case "decide":
                pen.decide(random)
            case "end":
                pen.decide(random, ends=True)
            case "key":
                pen.decide(random, keys=self.key(pen, random))
            case "link":
                pen.decide(random, linked=self.link(pen))
            case "nudge":
                pen.journal.nudge()
            case _:
                return

    def in_flight(self, pen: Pen) -> list[Record]:
        """Return decided records that were sent, and of which the attempt does not know."""
        unit = self.latest.get(pen.place)
        sent = {one.record.id for one in unit.changes[0].records} if unit else set()
        seqs, known = self.told[pen.run_id].seqs, pen.journal.position.seq
        return [
            record
            for one in pen.decided
            if one.outcome() in ("open", "cancelled")
            for record in one.records
            if record.id in sent and not 0 < seqs.get(record.id, 0) <= known
        ]

    def key(self, pen: Pen, random: Random) -> tuple[KeyRow, ...]:
        """Return a key that may be taken; never twice in one unit."""
        if any(one.special for one in pen.decided if one.outcome() in ("open", "cancelled")):
            return ()
        key, digest = random.choice("abc"), sha256("request")
        return (KeyRow(tenant=TENANT, run_id=pen.run_id, key=key, digest=digest, receipt="{}"),)

    def link(self, pen: Pen) -> Linked | None:
        """Return what makes a change of the other Run, once at a time."""
        if any(one.special for one in pen.decided if one.outcome() in ("open", "cancelled")):
            return None
        [other] = [run for run in self.runs if run != pen.run_id]

        def linked(commit_id: str) -> list[Change]:
            record = self.outsider(other, Random(0), ["queue.enqueued"])
            return [] if record is None else [self.behind_the_head(other, record, commit_id)]

        return linked

    @rule(number=numbers, which=numbers)
    def cancel(self, number: int, which: int) -> None:
        """Cancel who waits for a decision; the decision stays."""
        pen = self.pens[number % len(self.pens)]
        waiting = [one for one in pen.decided if one.open()]
        if waiting:
            waiting[which % len(waiting)].task.cancel()
            self.loop.turn()

    @rule(number=numbers, seed=seeds)
    def forsake(self, number: int, seed: int) -> None:
        """Cancel who waits for a decision before it is sent; it is written all the same."""
        pen = self.pens[number % len(self.pens)]
        self.settle_down(60)
        count = len(pen.decided)
        self.inside(self.all_note)
        if not pen.is_lost:
            self.inside(lambda: pen.decide(Random(seed)))
        for one in pen.decided[count:]:
            one.task.cancel()
            self.loop.turn()
            self.settle_down(60)
            told = self.told[pen.run_id]
            written = all(record.id in told.seqs for record in one.records)
            assert written or pen.is_lost or self.was_disturbed(pen, one, told), "taken back"

    def all_note(self) -> None:
        for pen in self.living():
            pen.note(Random(len(pen.noted)), self.in_flight(pen))

    # what the store does

    @precondition(lambda self: self.store.sent)
    @rule(which=numbers, how=st.sampled_from(["answer", "answer", "answer", "first", "arrive"]))
    def commit(self, which: int, how: str) -> None:
        """Let a commit arrive, or its answer come back."""
        call = self.store.sent[which % len(self.store.sent)]
        if how == "arrive":
            self.store.arrive(call)
        else:
            self.store.answer(call, first=how == "first")
        self.loop.turn()

    @precondition(lambda self: self.store.sent)
    @rule(which=numbers, arrives=st.booleans())
    def fail(self, which: int, arrives: bool) -> None:
        """Lose an answer, whether or not the commit arrived."""
        call = self.store.sent[which % len(self.store.sent)]
        self.store.lose(call, GONE, arrives=arrives)
        self.loop.turn()

    @precondition(lambda self: self.units)
    @rule(which=st.integers(0, 1000))
    def deliver_again(self, which: int) -> None:
        """Let a unit that was sent at any time arrive now: late, or once more."""
        units = [one for key, one in self.units.items() if key not in self.store.poison]
        self.store.land(units[which % len(units) :][:1] if units else [])

    @precondition(lambda self: self.store.reads)
    @rule(which=numbers, how=st.sampled_from(["answer", "answer", "look", "fail"]))
    def read(self, which: int, how: str) -> None:
        """Let a read arrive, be answered, or fail."""
        call = self.store.reads[which % len(self.store.reads)]
        match how:
            case "answer":
                self.store.answer_read(TENANT, call)
            case "look":
                self.store.look(TENANT, call)
            case _:
                self.store.lose_read(call, GONE)
        self.loop.turn()

    @rule()
    def time_passes(self) -> None:
        """Let every back-off end."""
        self.loop.pass_time(2.0)
        self.loop.turn()

    # what others do

    @rule(number=numbers, seed=seeds)
    def write_from_outside(self, number: int, seed: int) -> None:
        """Let somebody write to a Run who does not hold it."""
        run, random = self.runs[number % RUNS], Random(seed)
        kinds = random.sample(OUTSIDE, len(OUTSIDE))
        if random.random() < 0.9:
            kinds.remove("abort.requested")
        record = self.outsider(run, random, kinds)
        if record is not None:
            commit_id = self.system.new_id("com")
            unit = Unit(commit_id, TENANT, (self.behind_the_head(run, record, commit_id),))
            assert self.store.committed([unit]) == [Committed()]

    def outsider(self, run: str, random: Random, kinds: Sequence[str]) -> Record | None:
        """Return what somebody may write to a Run now."""
        self.refresh()
        paper = LogBuilder(system=self.system)
        paper.run_id, paper.state = run, copied(self.told[run].state)
        for kind in kinds:
            record = propose(paper, random, kind)
            if record is not None and record.by is not None and not refused(paper.state, record):
                return record
        return None

    def behind_the_head(self, run: str, record: Record, commit_id: str) -> Change:
        header = self.store.head(TENANT, run)
        changes = step(copied(self.told[run].state), record)
        sealed = seal(
            [record],
            Position(header.head, header.head_hash, header.head_at),
            tenant=TENANT,
            epoch=0,
            commit_id=commit_id,
            salts=iter(self.system.salt, ""),
        )
        change = header_change([(record, changes)], first_seq=header.head + 1, crashes=0)
        return Change(run, header.head, None, tuple(sealed), wake_change(change, header))

    @precondition(lambda self: self.calm > CALM_STEPS)
    @rule(number=numbers, what=st.sampled_from(DISASTERS))
    def disaster(self, number: int, what: str) -> None:
        """Let an attempt lose its Run, in any of the ways that there are."""
        self.calm = 0
        pen = self.pens[number % len(self.pens)]
        match what:
            case "taken":  # by another attempt; this one does not know
                self.claim(pen.run_id)
            case "purged":  # also for who would write to it from the other one
                self.store.gone.add(pen.run_id)
                others = [one for one in self.living() if one.run_id != pen.run_id]
                for other in others:
                    link = self.link(other)
                    self.inside(partial(other.decide, Random(number), linked=link))
            case "given up":  # while nobody knows what became of what it sent
                self.inside(self.all_note)
                for call in [one for one in self.store.sent if pen.place in map(place, one.units)]:
                    self.store.lose(call, GONE, arrives=False)
                self.loop.turn()
                pen.given_up = True
                self.inside(lambda: pen.journal.lose(Lost("drained")))
                self.time_passes()
            case _:  # the adapter has a bug that one unit meets, of a batch if there is one
                self.settle_down(60)
                self.inside(self.all_note)
                sent = max((call.units for call in self.store.sent), key=len, default=())
                for unit in sent[number % max(1, len(sent)) :][:1]:
                    self.store.poison.add(unit.commit_id)
                    [pen] = [one for one in self.pens if one.place == place(unit)]
                    pen.given_up = True

    def claim(self, run: str) -> None:
        header = self.store.head(TENANT, run)
        if header.state not in ("ready", "running", "suspended"):
            return
        claim = Claim.of(header, worker=self.system.new_id("wrk"), crashes=0)
        unit = claim_unit(header, claim, system=self.system)
        assert self.store.committed([unit]) == [Committed()]
        self.refresh()
        self.pens.append(Pen.made(self.told[run], run, self.flusher, self.system))

    # what must hold

    @invariant()
    def nothing_is_wrong(self) -> None:
        self.calm += 1
        self.is_fine = False
        self.refresh()
        for task in self.tasks:
            assert not task.done() or task.exception() is None, "a flush died"
        for pen in self.pens:
            told = self.told[pen.run_id]
            self.notes_are_there_in_order(pen, told)
            for one in pen.decided:
                self.decision_is_what_was_told(pen, one, told)
            if pen.is_lost:
                over = told.state.epoch > pen.epoch or pen.run_id in self.store.gone
                assert pen.given_up or over, pen.journal.lost
            else:
                self.state_is_that_of_the_log(pen, told)
        assert not self.troubles
        self.is_fine = True

    def notes_are_there_in_order(self, pen: Pen, told: Told) -> None:
        """Those that are written are the first ones, each once, in order."""
        seqs = [told.seqs[one.id] for one in pen.noted if one.id in told.seqs]
        assert all(one.id in told.seqs for one in pen.noted[: len(seqs)])
        assert seqs == sorted(seqs)

    def decision_is_what_was_told(self, pen: Pen, one: Decided, told: Told) -> None:
        """All of it or nothing, behind the notes before it; done means written, stale never."""
        written = [told.records[told.seqs[r.id] - 1] for r in one.records if r.id in told.seqs]
        outcome = one.outcome()
        if written:
            assert [r.id for r in written] == [r.id for r in one.records]
            assert len({r.commit for r in written}) == 1
            assert [r.seq - written[0].seq for r in written] == list(range(len(written)))
            assert all(told.seqs[r.id] < written[0].seq for r in pen.noted[: one.behind])
            between = told.records[one.known : written[0].seq - 1]
            assert all(r.epoch == pen.epoch for r in between), "decided on what is past"
        if outcome == "done":
            assert written
        if outcome == "stale":
            assert not written
            assert self.was_disturbed(pen, one, told), "stale for nothing"
        if outcome == "lost":
            assert pen.is_lost

    def was_disturbed(self, pen: Pen, one: Decided, told: Told) -> bool:
        """Tell whether there is a reason for a decision to be stale."""
        foreign = any(r.epoch != pen.epoch and r.seq > one.known for r in told.records)
        return foreign or one.special or one.company or len(pen.noted) > one.behind

    def state_is_that_of_the_log(self, pen: Pen, told: Told) -> None:
        """Live state: the log as far as it is known, and then the notes that are not in it."""
        journal = pen.journal
        position = journal.position.seq
        assert told.states[position].epoch == pen.epoch, "it read that the Run was taken"
        state = copied(told.states[position])
        for note in pen.noted:
            if told.seqs.get(note.id, position + 1) > position:
                state.apply(note, step(state, note))
        assert copied(journal.state) == state
        foreign = [r for r in told.records[pen.seen : position] if r.epoch != pen.epoch]
        assert not foreign or pen.kicks > pen.kicked
        pen.seen, pen.kicked = position, pen.kicks

    def teardown(self) -> None:
        """Let the store be well again: everything ends, and every promise is kept."""
        try:
            if self.is_fine:
                assert self.settle_down(60), "it never comes to rest"
                self.inside(self.nudge)
                assert self.settle_down(60), "it never comes to rest"
                self.everything_is_over()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.turn()
            self.loop.close()

    def nudge(self) -> None:
        for pen in self.living():
            pen.journal.nudge()

    def living(self) -> list[Pen]:
        return [pen for pen in self.pens if not pen.is_lost]

    def settle_down(self, rounds: int) -> bool:
        """Answer everything, truthfully; tell whether nothing more is asked."""
        for _ in range(rounds):
            for call in list(self.store.sent):
                self.store.answer(call)
            for read in list(self.store.reads):
                self.store.answer_read(TENANT, read)
            self.loop.pass_time(2.0)
            self.loop.turn()
            self.nothing_is_wrong()
            if not (self.store.sent or self.store.reads):
                return True
        return False

    def everything_is_over(self) -> None:
        """Each note is written, each decision answered; nothing that was sent lands once more."""
        for pen in self.pens:
            assert not any(one.open() for one in pen.decided), "a caller waits for ever"
        heads = {pen.run_id: len(self.told[pen.run_id].records) for pen in self.living()}
        for pen in self.living():
            told = self.told[pen.run_id]
            assert pen.journal.idle()
            assert all(note.id in told.seqs for note in pen.noted)
            for one in (one for one in pen.decided if not self.was_disturbed(pen, one, told)):
                assert all(r.id in told.seqs for r in one.records), "a decision taken back"
            assert pen.journal.position == told.state.position
            said = told.conversation(len(told.records))
            assert pen.journal.conversation.messages == said.messages
            assert pen.journal.conversation.last == said.last
        for pen in (one for one in self.pens if one.is_lost):
            self.loop.run_until_complete(pen.refuses())
        self.store.poison.clear()
        self.store.land(list(self.units.values()))
        self.refresh()
        assert all(len(self.told[run].records) == head for run, head in heads.items())


def place(unit: Unit) -> tuple[str, int]:
    """Return whose unit it is: the Run and the epoch."""
    change = unit.changes[0]
    assert isinstance(change, Change)
    assert change.fence is not None
    return change.run_id, change.fence


def test_r_2_r_20_what_an_attempt_is_told_of_its_records_is_what_the_log_says() -> None:
    """Whatever arrives late, twice or not at all, and whoever else writes or takes the Run."""
    run_state_machine_as_test(JournalMachine, settings=effort(60, steps=40))
