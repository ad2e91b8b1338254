"""`python -m tests.sim`: many seeds, in several processes; one printed command replays one."""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from psych_runtime.store.faults import FAULT_KINDS, FaultKind
from psych_runtime.testing.simulation import SimulationFailed, live_through
from tests.sim.crowd import crowd

__all__ = ["ALL", "ENOUGH", "Batch", "live", "main", "missing"]

ALL: Final[tuple[FaultKind, ...]] = tuple(FAULT_KINDS)
"""Every kind of fault that may strike a world."""

ENOUGH: Final = 500
"""Seeds in which each kind of fault must have struck."""

_BATCH = 50
_STORM_SECONDS = 20.0
_SHOWN = 10
_TOLD = 1_000  # seeds between two lines of progress in a file
_CHECKED = ("records", "commits", "states compared", "effects", "deaths")
"""What was judged each time that it happened."""
_MUST_HAPPEN = (
    *(
        f"record {kind}"
        for kind in (
            "abort.requested",
            "approval.decided",
            "approval.expired",
            "approval.requested",
            "event.received",
            "model.delta",
            "model.failed",
            "queue.cancelled",
            "queue.consumed",
            "queue.enqueued",
            "run.suspended",
            "tool.refused",
            "wait.opened",
            "wait.resolved",
        )
    ),
    "attempts drained",
    "claims handed_over",
    "claims reclaimed",
    "claims woken",
    "looked up: happened",
    "looked up: not_happened",
    "runs aborted",
    "runs completed",
    "runs failed",
    "runs timed_out",
    "taken from a hung executor",
)
"""What a simulation of so many seeds must have lived through to prove anything."""


class Batch(NamedTuple):
    """What some seeds brought."""

    seeds: int = 0
    happened: Mapping[str, int] = MappingProxyType({})
    struck: Mapping[str, int] = MappingProxyType({})
    virtual_seconds: float = 0.0
    failures: tuple[tuple[int, str], ...] = ()
    fingerprint: int = 0  # of all their schedules, in order

    def plus(self, other: "Batch") -> "Batch":
        """Return both together."""
        return Batch(
            self.seeds + other.seeds,
            Counter(self.happened) + Counter(other.happened),
            Counter(self.struck) + Counter(other.struck),
            self.virtual_seconds + other.virtual_seconds,
            self.failures + other.failures,
            (self.fingerprint * 31 + other.fingerprint) & 0xFFFF_FFFF,
        )


def live(seeds: Sequence[int], *, stop: bool = False, faults: Sequence[FaultKind] = ALL) -> Batch:
    """Live through seeds; failures are collected, or the first one ends it."""
    found = Batch()
    for seed in seeds:
        try:
            world = live_through(crowd, seed, faults=faults, storm_seconds=_STORM_SECONDS)
        except SimulationFailed as failed:
            failure = (seed, f"{type(failed.cause).__name__}: {failed.cause}")
            found = found.plus(Batch(1, failures=(failure,)))
            if stop:
                break
            continue
        lived = Batch(
            1,
            world.watch.counts,
            {str(kind): count for kind, count in world.faults.struck.items()},
            world.lived_seconds,
            fingerprint=world.fingerprint,
        )
        found = found.plus(lived)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds as told, print what happened, and return 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many (500)")
    parser.add_argument("--first", type=int, default=0, help="the first one (0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument("--stop", action="store_true", help="end at the first failure")
    parser.add_argument(
        "--faults", nargs="+", default=ALL, choices=ALL, help="kinds that strike (all)"
    )
    parser.add_argument("--planted", action="store_true", help="also find each planted fault")
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.seeds)
    begun = time.perf_counter()
    faults = tuple(given.faults)
    found = _all(seeds, given.jobs, stop=given.stop, faults=faults)
    whole = faults == ALL and not found.failures and found.seeds >= ENOUGH
    lacking = list(missing(found)) if whole else []
    for line in _lines(found, time.perf_counter() - begun, faults):
        print(line)
    for problem in lacking:
        print(f"FAILED: {problem}")
    unfound = _planted(given.seeds) if given.planted else 0
    return 1 if found.failures or lacking or unfound else 0


def _all(seeds: Sequence[int], jobs: int, *, stop: bool, faults: Sequence[FaultKind]) -> Batch:
    if jobs < 2:
        return live(seeds, stop=stop, faults=faults)
    found = Batch()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        parts = [seeds[start : start + _BATCH] for start in range(0, len(seeds), _BATCH)]
        for one in pool.map(partial(live, faults=faults), parts):
            found = found.plus(one)
            _tell(one, found.seeds, len(seeds))
            if stop and found.failures:
                pool.shutdown(cancel_futures=True)
                break
    return found


def _tell(part: Batch, so_far: int, seeds: int) -> None:
    """Say how far it came, and at once what failed: a long run may be cut short."""
    for seed, problem in part.failures:
        print(f"seed {seed}: {problem}", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(f"\r{so_far} of {seeds} seeds", end="", file=sys.stderr)
    elif so_far % _TOLD == 0:
        print(f"{so_far} of {seeds} seeds", file=sys.stderr, flush=True)


def missing(found: Batch) -> Iterator[str]:
    """Yield what so many seeds should have lived through and did not."""
    for kind, meaning in FAULT_KINDS.items():
        if not found.struck.get(kind):
            yield f"no fault of the kind {kind!r} struck: {meaning}"
    for name in _MUST_HAPPEN:
        if not found.happened.get(name):
            yield f"this never happened: {name}"


def _lines(found: Batch, seconds: float, faults: Sequence[FaultKind]) -> Iterator[str]:
    crashes = sum(found.struck.get(kind, 0) for kind in ("crash_after", "crash_before"))
    checks = sum(found.happened.get(name, 0) for name in _CHECKED)
    yield (
        f"{found.seeds} seeds, {found.virtual_seconds:,.0f} simulated seconds in {seconds:.0f} s, "
        f"{len(found.failures)} failures, fingerprint {found.fingerprint:08x}"
    )
    yield (
        f"  {crashes:,} crashes, {checks:,} checks of invariants, "
        f"{found.happened.get('adoptions', 0)} adoptions"
    )
    for title, counted in (("happened", found.happened), ("faults", found.struck)):
        for name, count in sorted(counted.items()):
            yield f"  {title:9} {count:>10,}  {name}"
    only = "" if faults == ALL else f" --faults {' '.join(faults)}"
    for seed, problem in found.failures[:_SHOWN]:
        yield f"FAILED: seed {seed}: {problem}"
        yield f"  replay: python -m tests.sim --first {seed} --seeds 1 --jobs 1{only}"


def _planted(seeds: int) -> int:
    """Find each planted fault; return how many were not found."""
    from tests.sim.planted import PLANTED, find

    unfound = 0
    print("planted faults, and the first seed that finds each:")
    for name in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            lines = find(name, Path(folder), seeds=min(seeds, ENOUGH)).splitlines()
        failed = [line for line in lines if line.startswith("FAILED: seed")]
        unfound += not failed
        print(f"  {name}\n    {failed[0][:160] if failed else 'NOT FOUND'}")
    return unfound
