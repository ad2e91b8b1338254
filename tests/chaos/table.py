"""What a chaos run says at its end."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

from tests.chaos.evidence import Evidence
from tests.chaos.judge import Takeover, Verdict
from tests.chaos.storm import Storm

__all__ = ["quiet_recoveries", "table"]


def table(kind: str, storm: Storm, evidence: Evidence, verdict: Verdict) -> str:
    """Return the report; its last line has the numbers that matter."""
    plan = storm.plan
    head = (
        f"chaos on {kind} {storm.place.version}, seed {plan.seed}: {plan.workers} workers of "
        f"{plan.concurrency} Runs, lease {plan.lease_seconds:g} s, {plan.seconds:g} s of harm"
    )
    rows = [f"  {name:22}{value}" for name, value in _rows(storm, evidence, verdict)]
    again = (
        f"  again: python -m tests.chaos --store {kind} --runs {plan.runs} "
        f"--seconds {plan.seconds:g} --workers {plan.workers} --seed {plan.seed}"
    )
    return "\n".join([head, *rows, again, _last_line(verdict)])


def _last_line(verdict: Verdict) -> str:
    return (
        f"Runs admitted {verdict.admitted}, completed {verdict.completed}, "
        f"lost {len(verdict.lost)}, doubled effects {len(verdict.doubled)}, "
        f"takeovers of live workers {len(verdict.taken_alive)}"
    )


def _rows(storm: Storm, evidence: Evidence, verdict: Verdict) -> Iterator[tuple[str, str]]:
    struck = storm.struck
    yield "kills", f"{struck['kill']}, and one in quiet"
    yield "stops", f"{struck['stop']}, each longer than a lease"
    if "restart" in storm.place.harms:
        yield "database restarts", _restarts(storm)
    if "cut" in storm.place.harms:
        yield "cuts", str(struck["cut"])
        yield "delays", str(struck["delay"])
        yield "lost answers", str(struck["lose"])
        yield "refused admissions", f"{storm.refusals}, each repeated with its key"
    executed = Counter(effect.tool for effect in evidence.effects)
    yield "executions", ", ".join(f"{name} {times}" for name, times in sorted(executed.items()))
    yield "recoveries", _recoveries(verdict)
    yield "after the quiet kill", _quiet(storm, evidence, verdict)
    yield "adoptions", str(verdict.adoptions)
    yield "unknown outcomes", f"{verdict.unknown} of unsafe calls"
    yield "repeated safe calls", str(verdict.repeated)
    yield "ahead of a record", f"{verdict.unnamed} executions of a read-only tool"
    yield "longest loop pause", f"{_longest_pause(evidence):.1f} s, stops left aside"
    yield "wrong results", str(len(verdict.wrong))
    yield "took", f"{storm.seconds:.0f} s"


def _restarts(storm: Storm) -> str:
    hows = Counter(how for how, _ in storm.restarts)
    words = ", ".join(f"{times} {how}" for how, times in sorted(hows.items()))
    longest = max((seconds for _, seconds in storm.restarts), default=0.0)
    away = sum(seconds > storm.plan.lease_seconds for _, seconds in storm.restarts)
    return (
        f"{len(storm.restarts)} ({words}), {away} longer than a lease, "
        f"the longest took {longest:.1f} s"
    )


def _recoveries(verdict: Verdict) -> str:
    runs = {taken.run_id for taken in verdict.recoveries}
    return f"{len(verdict.recoveries)} of {len(runs)} Runs"


def quiet_recoveries(storm: Storm, evidence: Evidence, verdict: Verdict) -> list[float]:
    """Return how long each Run of the worker killed in quiet waited for another one, in seconds."""
    if storm.quiet_kill is None:
        return []
    killed, pid = storm.quiet_kill
    ids = {worker.id for worker in evidence.workers if worker.pid == pid}
    found: list[Takeover] = [one for one in verdict.recoveries if one.former in ids]
    return sorted(one.at - killed for one in found if one.at >= killed)


def _quiet(storm: Storm, evidence: Evidence, verdict: Verdict) -> str:
    waited = quiet_recoveries(storm, evidence, verdict)
    if not waited:
        return "no Run went on elsewhere"
    due = storm.plan.lease_seconds + 1
    return (
        f"{len(waited)} Runs went on elsewhere, after {median(waited):.2f} s, "
        f"at most {max(waited):.2f} s (lease + 1 s is {due:g} s)"
    )


def _longest_pause(evidence: Evidence) -> float:
    """Return the longest time without a turn for a process that nobody had stopped."""
    longest = 0.0
    for pause in evidence.pauses:
        stops = evidence.lives[pause.pid].stops
        begun = pause.ended - pause.seconds
        stood = any(s.begun <= pause.ended and (s.ended or s.begun) >= begun for s in stops)
        longest = longest if stood else max(longest, pause.seconds)
    return longest
