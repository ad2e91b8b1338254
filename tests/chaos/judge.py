"""Holds the logs against what the tools did; every number that must be 0 is counted here."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from psych_schema.model import AskedCall
from psych_schema.record import (
    AttemptEnded,
    AttemptStarted,
    ModelCompleted,
    RunSettled,
    ToolCompleted,
    ToolStarted,
)
from tests.chaos.evidence import Admission, Effect, Evidence, RunLog
from tests.chaos.work import TOOLS, UNKNOWN, answer_of, last_word
from tests.processes.nursery import Life

__all__ = ["Takeover", "Verdict", "judge", "takeovers"]

_SILENT_LEASES: Final = 3.0
"""For how many leases after a stop its worker may still not know that it was declared dead.

The store can be away for more than one of them.
"""


@dataclass(frozen=True)
class Takeover:
    """A Run that went from one worker to another without having been let go."""

    run_id: str
    former: str
    worker: str
    at: float


@dataclass
class Verdict:
    """What was found; the lists say what is wrong, one line each.

    Attributes:
        recoveries: attempts that took a Run from a killed or stopped worker.
        adoptions: attempts by which a worker took up anew what it already held.
        unknown: unsafe calls whose outcome nobody knows.
        repeated: executions of safe calls beyond the first.
        unnamed: executions of read-only calls that ran ahead of a record that was never written.
    """

    admitted: int = 0
    completed: int = 0
    recoveries: list[Takeover] = field(default_factory=list)
    adoptions: int = 0
    unknown: int = 0
    repeated: int = 0
    unnamed: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    taken_alive: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.lost, *self.doubled, *self.taken_alive, *self.wrong]


def judge(evidence: Evidence) -> Verdict:
    """Return what the evidence says."""
    verdict = Verdict(admitted=len(evidence.admissions))
    _judge_admissions(evidence, verdict)
    by_run: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        by_run[effect.run_id].append(effect)
    for admission in evidence.admissions:
        log = evidence.logs.get(admission.run_ids[0])
        if log is not None:
            _Judge(admission, log, by_run.pop(log.run_id, []), verdict).judge()
    for run_id in by_run:
        verdict.wrong.append(f"{run_id}: tools ran for a Run that nobody has admitted")
    _judge_takeovers(evidence, verdict)
    for pid in evidence.ended_alone:
        verdict.wrong.append(f"process {pid}: a worker ended that nobody has killed")
    verdict.wrong += [f"the API raised {error}" for error in evidence.raised]
    return verdict


def _judge_admissions(evidence: Evidence, verdict: Verdict) -> None:
    """Each order has one Run, and no Run is there that no order has."""
    expected = {admission.run_ids[0] for admission in evidence.admissions}
    for admission in evidence.admissions:
        if len(set(admission.run_ids)) > 1:
            verdict.doubled.append(f"{admission.order.text}: Runs {', '.join(admission.run_ids)}")
        if admission.run_ids[0] not in evidence.logs:
            verdict.lost.append(f"{admission.run_ids[0]}: admitted, and not in the store")
    for run_id in evidence.logs.keys() - expected:
        verdict.doubled.append(f"{run_id}: in the store, and no order's Run")


@dataclass
class _Judge:
    """Judges one Run."""

    admission: Admission
    log: RunLog
    effects: Sequence[Effect]
    verdict: Verdict

    def judge(self) -> None:
        verdict, run_id = self.verdict, self.log.run_id
        verdict.wrong += [f"{run_id}: {problem}" for problem in self.log.problems]
        last = self.log.records[-1] if self.log.records else None
        self._judge_effects()
        for one in self.log.records:
            if isinstance(one, AttemptEnded) and one.reason == "error":
                verdict.wrong.append(f"{run_id}: an attempt died of an error: {one.code}")
        if self.log.state != "settled" or not isinstance(last, RunSettled):
            verdict.lost.append(f"{run_id}: it is {self.log.state}, not settled")
            return
        if last.state != "completed":
            code = last.reason.code if last.reason else None
            verdict.wrong.append(f"{run_id}: it ended {last.state}: {code}")
            return
        verdict.completed += 1
        self._judge_result(last)

    def _asked(self) -> Iterator[tuple[int, AskedCall]]:
        """Yield each call that the model asked for, with its turn."""
        said = [one.said for one in self.log.records if isinstance(one, ModelCompleted)]
        for turn, one in enumerate(said, 1):
            for call in one.calls if one else ():
                yield turn, call

    def _judge_effects(self) -> None:
        """No unsafe call twice; nothing by an attempt that did not say so before."""
        started = Counter(
            (one.call_id, one.epoch) for one in self.log.records if isinstance(one, ToolStarted)
        )
        asked = {call.call_id for _, call in self._asked()}
        for (call_id, epoch), times in Counter((e.call_id, e.epoch) for e in self.effects).items():
            if times > 1:
                self._doubled(f"call {call_id} ran {times} times in attempt {epoch}")
        charged = Counter(effect.turn for effect in self.effects if effect.tool == "charge")
        for turn, times in charged.items():
            if times > 1:
                self._doubled(f"charge of turn {turn} was executed {times} times")
        for effect in self.effects:
            named = effect.call_id in asked
            if effect.tool == "look":
                self.verdict.unnamed += not named
            elif not named or not started[effect.call_id, effect.epoch]:
                self._wrong(f"{effect.tool} of turn {effect.turn} ran and no record says so")

    def _judge_result(self, settled: RunSettled) -> None:
        """Each call has its one outcome, which the effects bear out; the last word says so."""
        done = {one.call_id: one for one in self.log.records if isinstance(one, ToolCompleted)}
        turns = self.admission.order.turns
        asked = list(self._asked())
        expected = [(turn, name) for turn in range(1, turns + 1) for name in TOOLS]
        if [(turn, call.name) for turn, call in asked] != expected:
            self._wrong(f"the model was asked for other turns than {turns}")
        answers = []
        for turn, call in asked:
            outcome = self._judge_call(turn, call, done.get(call.call_id))
            known = outcome == "ok"
            answers.append(answer_of(call.name, turn, self.log.run_id) if known else UNKNOWN)
        if settled.output != last_word(answers):
            self._wrong(f"it ended with {settled.output!r}, not with {last_word(answers)!r}")

    def _judge_call(self, turn: int, call: AskedCall, done: ToolCompleted | None) -> str:
        outcome = done.outcome if done is not None else "none"
        times = sum(effect.call_id == call.call_id for effect in self.effects)
        what = f"{call.name} of turn {turn} is {outcome} and was executed {times} times"
        if call.name == "charge":
            if (outcome, times) not in {("ok", 1), ("unknown", 0), ("unknown", 1)} and times < 2:
                self._wrong(what)
            self.verdict.unknown += outcome == "unknown"
            return outcome
        if outcome != "ok" or times < 1:
            self._wrong(what)
        self.verdict.repeated += max(0, times - 1)
        return outcome

    def _doubled(self, what: str) -> None:
        self.verdict.doubled.append(f"{self.log.run_id}: {what}")

    def _wrong(self, what: str) -> None:
        self.verdict.wrong.append(f"{self.log.run_id}: {what}")


def takeovers(logs: Sequence[RunLog]) -> list[Takeover]:
    """Return every attempt that took a Run which had not been let go."""
    found = []
    for log in logs:
        former = ""
        for one in log.records:
            if isinstance(one, AttemptStarted):
                if one.reason == "reclaimed":
                    found.append(Takeover(log.run_id, former, one.worker, one.at.timestamp()))
                former = one.worker
    return found


def _judge_takeovers(evidence: Evidence, verdict: Verdict) -> None:
    for taken in takeovers(list(evidence.logs.values())):
        if taken.former == taken.worker:
            verdict.adoptions += 1
        elif _was_gone(evidence, taken):
            verdict.recoveries.append(taken)
        else:
            verdict.taken_alive.append(
                f"{taken.run_id}: {taken.worker} took it from {taken.former}, which was alive"
                f"{_excuse(evidence, taken)}"
            )


def _was_gone(evidence: Evidence, taken: Takeover) -> bool:
    """Tell whether the former worker was killed before, or declared dead for having stood still.

    A process that stood still learns soon afterwards that it is dead, and takes a new id: one
    that takes it much later was buried for another reason. So was one whose process lives under
    the same id to the end.
    """
    found = [one for one in evidence.workers if one.id == taken.former]
    if not found:
        return False
    [worker] = found
    if worker.pid in evidence.ended_alone:
        return True  # which is wrong enough
    life = evidence.lives[worker.pid]
    same = (worker.pid, worker.number)
    later = [w.made for w in evidence.workers if (w.pid, w.number) == same]
    known = min((made for made in later if made > worker.made), default=None)
    if known is None and life.killed is not None and life.killed <= taken.at:
        return True
    return _stood_still(life, worker.made, known, taken.at, evidence.lease_seconds)


def _stood_still(
    life: Life, made: float, known: float | None, taken_at: float, lease_seconds: float
) -> bool:
    """Tell whether a stop explains the death; `known` is when the process took its next id."""
    last = known if known is not None else life.killed
    for stop in life.stops:
        if not made <= stop.begun <= taken_at:
            continue
        if stop.ended is None or stop.ended - stop.begun < lease_seconds / 2:
            if stop.ended is None:
                return True
            continue
        if last is not None and last <= stop.ended + _SILENT_LEASES * lease_seconds:
            return True
    return False


def _excuse(evidence: Evidence, taken: Takeover) -> str:
    """Return the longest pause that the former worker's process told of, if there is any."""
    pids = {one.pid for one in evidence.workers if one.id == taken.former}
    pauses = [one.seconds for one in evidence.pauses if one.pid in pids]
    return f"; its process once had no turn for {max(pauses):.1f} s" if pauses else ""
