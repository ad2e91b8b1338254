"""What must hold at every commit, whatever fails (protocol.md, section 7).

Sees each unit that the store applies, each death it declares and each effect that begins. The
first thing that does not hold is kept: code under test may swallow what is raised.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NoReturn, Protocol, Self, override

from psych_runtime._system import System
from psych_runtime.core.codec import Entry, decode_anew
from psych_runtime.core.conversation import Conversation
from psych_runtime.core.fold import RunState, advance, step
from psych_runtime.core.rebuild import Traces, compare
from psych_runtime.core.streaks import Streaks
from psych_runtime.errors import PsychError
from psych_runtime.ports.answers import Answer, Committed
from psych_runtime.ports.store import Admit, Change, Renewed, Unit
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing.simulation.lookups import Lookups
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    QueueConsumed,
    Record,
    RunSettled,
    ToolStarted,
)
from psych_schema.store import RunRow

__all__ = ["Machines", "Violation", "Watch", "WatchedStore"]

_RISKY_CRASHES: Final = 2


class Violation(AssertionError):
    """Something that must hold in every simulation does not."""


class Machines(Protocol):
    """What the watch asks of the simulated processes."""

    def attempts(self, run_id: str) -> Iterable[Attempt]:
        """Return the attempts of a Run in processes that were not killed."""

    def well(self, worker: str) -> str | None:
        """Return the process of a worker id that nothing has befallen lately, else None."""

    def now(self) -> datetime:
        """Return the true time."""

    def at(self) -> str:
        """Return where and when this happens, for a message."""


class Watch:
    """The log of every Run as it is folded beside the store, and what was seen to happen."""

    def __init__(self, machines: Machines) -> None:
        self.verdict: Violation | None = None
        self.counts: Counter[str] = Counter()
        self.headers: dict[str, RunRow] = {}
        self.effects: dict[tuple[str, str], list[int]] = {}  # (run, call): epochs of executions
        self.lookups = Lookups(self.fail, machines.now, self.counts)
        self._machines = machines
        self._states: dict[str, RunState] = {}
        self._traces: dict[str, Traces] = {}
        self._conversations: dict[str, Conversation] = {}
        self._streaks: dict[str, Streaks] = {}
        self._renewed: set[str] = set()  # workers that have renewed their lease: they are used
        self._buried: set[str] = set()

    def fail(self, problem: str) -> NoReturn:
        """Keep the first violation, and raise it."""
        if self.verdict is None:
            self.verdict = Violation(f"{problem} ({self._machines.at()})")
        raise self.verdict

    # before and after a commit

    def comes(self, units: Sequence[Unit]) -> None:
        """Compare live states with the fold before `units` are judged (invariant 5)."""
        for unit in units:
            for change in unit.changes:
                for attempt in self._machines.attempts(change.run_id):
                    self.compare(attempt)

    def compare(self, attempt: Attempt) -> None:
        """Compare an attempt's live state with the fold of the log and its unwritten notes."""
        state = self._states.get(attempt.run_id)
        if state is None or not attempt.begun or attempt.journal.lost is not None:
            return
        journal = attempt.journal
        if journal.position != state.position:
            return  # what others wrote is not known there yet
        unwritten = journal.unwritten()
        wanted = state.overlay()
        for record in unwritten:
            wanted.apply(record, step(wanted, record))
        self.counts["states compared"] += 1
        live = _facts(journal.state)
        for name, fact in _facts(wanted).items():
            if live[name] != fact:
                self.fail(f"live {name} of {attempt.run_id} is {live[name]}, the fold's {fact}")
        said = self._conversations[attempt.run_id]
        if not unwritten and journal.conversation.settled() != said.settled():
            self.fail(f"the live conversation of {attempt.run_id} is not that of its log")
        counted = self._streaks[attempt.run_id]
        if not unwritten and _counts(journal.streaks) != _counts(counted):
            self.fail(f"the live streaks of {attempt.run_id} are not those of its log")

    def committed(self, unit: Unit, header_of: dict[str, RunRow]) -> None:
        """Fold what was written, and compare each header with its recomputation."""
        self.counts["commits"] += 1
        for change in unit.changes:
            before = self.headers.get(change.run_id)
            header = self.headers[change.run_id] = header_of[change.run_id]
            self._judge_starts(change)
            entries = self._fold(change)
            if before is not None:
                self._judge_taking(before, [entry.record for entry in entries])
            self._judge_header(header, entries)
            self._judge_links(unit, [entry.record for entry in entries])

    def _fold(self, change: Change | Admit) -> list[Entry]:
        state = self._states.setdefault(change.run_id, RunState())
        traces = self._traces.setdefault(change.run_id, Traces())
        said = self._conversations.get(change.run_id)
        if said is None:
            said = self._conversations[change.run_id] = self._begun(change)
        streaks = self._streaks.setdefault(change.run_id, Streaks())
        entries: list[Entry] = []
        try:
            for sealed in change.records:
                entry = decode_anew(sealed.row)
                if entry != Entry(sealed.record, sealed.hash):
                    self.fail(f"{sealed.record.type} is read otherwise than it was written")
                traces.take(entry.record, advance(state, entry))
                said.add(entry.record)
                streaks.add(entry.record)
                self.lookups.add(entry.record)
                entries.append(entry)
                self.counts[f"record {entry.record.type}"] += 1
        except PsychError as error:
            self.fail(f"a record that may not follow was committed: {error}")
        self.counts["records"] += len(entries)
        return entries

    def _judge_starts(self, change: Change | Admit) -> None:
        """See that nothing is decided to start behind an abort that was there first (R-2)."""
        state = self._states.get(change.run_id)
        if state is None or state.get("abort").phase == "none":
            return
        for sealed in change.records:
            record = sealed.record
            ahead = isinstance(record, ToolStarted) and record.safe_to_retry
            if isinstance(record, ToolStarted | QueueConsumed) and not ahead:
                self.fail(f"{record.type} of {change.run_id} was decided behind an abort")

    def _begun(self, change: Change | Admit) -> Conversation:
        """Return the conversation that a new Run goes on with."""
        previous = change.header.previous if isinstance(change, Admit) else None
        before = self._conversations.get(previous or "")
        return Conversation() if before is None else Conversation(before.settled(), before.wholes)

    def _judge_header(self, header: RunRow, entries: Sequence[Entry]) -> None:
        state, traces = self._states[header.run_id], self._traces[header.run_id]
        if header.state == "corrupt":
            self.fail(f"{header.run_id} was called corrupt, and its log folds")
        for one in compare(header, state, traces):
            last = entries[-1].record.type if entries else "no record"
            self.fail(
                f"{one.column} in the header of {header.run_id} is {one.found}, "
                f"by its log {one.wanted}, after {last}"
            )

    def _judge_links(self, unit: Unit, records: Sequence[Record]) -> None:
        """See that the next Run is admitted in the unit that names it (ST-8)."""
        admitted = {one.run_id for one in unit.changes if isinstance(one, Admit)}
        for record in records:
            if isinstance(record, RunSettled):
                self.counts[f"runs {record.state}"] += 1
                if record.next_run is not None and record.next_run not in admitted:
                    self.fail(f"{record.run_id} names a next Run that its unit does not admit")
            if isinstance(record, AttemptEnded):
                self.counts[f"attempts {record.reason}"] += 1

    # who may take what

    def _judge_taking(self, before: RunRow, records: Sequence[Record]) -> None:
        for record in records:
            if not isinstance(record, AttemptStarted):
                continue
            self.counts[f"claims {record.reason}"] += 1
            if record.crashes >= _RISKY_CRASHES and not _settles(records):
                self._judge_risk(record)
            if before.worker is None:
                continue
            if before.worker == record.worker:
                hung = _settles(records)
                self.counts["taken from a hung executor" if hung else "adoptions"] += 1
            elif before.worker not in self._buried:
                self.fail(f"{record.run_id} was taken from {before.worker}, which is not dead")

    def _judge_risk(self, started: AttemptStarted) -> None:
        """See that a worker holds one Run at most that may kill it (R-7)."""
        others = [
            header.run_id
            for header in self.headers.values()
            if header.worker == started.worker
            and header.crashes >= _RISKY_CRASHES
            and header.run_id != started.run_id
        ]
        if others:
            self.fail(f"{started.worker} takes {started.run_id} beside {others[0]}: both crash")

    def renewed(self, worker: str) -> None:
        """Hear that a worker is alive."""
        self._renewed.add(worker)

    def buried(self, observer: str, workers: Sequence[str]) -> None:
        """Judge deaths: nobody dies that nothing has befallen (R-6)."""
        self._buried.update(workers)
        for worker in workers:
            self.counts["deaths"] += 1
            process = self._machines.well(worker) if worker in self._renewed else None
            if process is not None:
                self.fail(f"{worker} of {process} is well and was declared dead by {observer}")

    # effects

    def begins(self, tool: RegisteredTool, context: ToolContext, worker: str | None) -> None:
        """Judge the execution of a call right before it begins (invariant 3, R-8, R-9)."""
        self.counts["effects"] += 1
        run_id, call_id = context.run_id, context.call_id
        named = f"{tool.name} {call_id} of {run_id} in epoch {context.epoch}"
        header = self.headers[run_id]
        if header.epoch != context.epoch:
            self.fail(f"{named} begins, but the Run is at epoch {header.epoch}")
        if worker is None or worker in self._buried:
            self.fail(f"{named} begins on a worker that is dead")
        call = self._states[run_id].get("call", call_id)
        if call.phase == "done":
            self.fail(f"{named} begins, but the call has its outcome")
        ahead = tool.risk == "read_only" and tool.safe_to_retry
        if call.phase != "started" and not ahead:
            self.fail(f"{named} begins ahead of its record")
        epochs = self.effects.setdefault((run_id, call_id), [])
        if epochs and not tool.safe_to_retry:
            self.fail(f"{named} begins, and it began before in epoch {epochs[0]}")
        epochs.append(context.epoch)
        self.lookups.begins(context)


def _settles(records: Sequence[Record]) -> bool:
    return any(isinstance(one, RunSettled) for one in records)


def _facts(state: RunState) -> dict[str, object]:
    """Return all that a fold knows."""
    return {
        "objects": {name: one for name, one in state.objects.items() if one.phase != "none"},
        "epoch": state.epoch,
        "last turn": state.last_turn,
        "last model call": state.last_model,
        "last offer": state.last_offer,
        "failures of the turn": state.turn_failures,
    }


def _counts(streaks: Streaks) -> dict[str, object]:
    """Return all that was counted."""
    return {name: getattr(streaks, name) for name in Streaks.__slots__}


class WatchedStore(MemoryStore):
    """An in-memory store that shows all it does to a watch."""

    def __init__(self, system: System, watch: Watch) -> None:
        super().__init__(system)
        self._watch = watch

    @override
    async def commit(self, units: Sequence[Unit]) -> list[Answer]:
        """Apply units, and have each looked at."""
        self._watch.comes(units)
        answers: list[Answer] = []
        for unit in units:
            answers += self._rows.commit([unit])
            if isinstance(answers[-1], Committed):
                headers = {
                    one.run_id: self._rows.header(unit.tenant, one.run_id) for one in unit.changes
                }
                self._watch.committed(unit, headers)
        return answers

    @override
    async def renew(
        self, worker: str, *, lease_seconds: float, run_ids: Sequence[str]
    ) -> Renewed | None:
        """Prolong a lease, and have it known."""
        renewed = self._rows.renew(worker, lease_seconds, run_ids)
        if renewed is not None:
            self._watch.renewed(worker)
        return renewed

    @override
    async def bury(self, observer: str) -> list[str]:
        """Mark workers dead, and have it judged."""
        dead = self._rows.bury(observer)
        self._watch.buried(observer, dead)
        return dead

    @override
    def twin(self) -> Self:
        """Return another handle, watched as well."""
        return super().twin()
