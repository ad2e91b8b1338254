"""`python -m tests.chaos`: harm done to real workers and servers, and exact results demanded."""

import argparse
import asyncio
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.judge import judge
from tests.chaos.places import PLACES, place
from tests.chaos.storm import QUIET_RUNS, Plan, endure
from tests.chaos.table import quiet_recoveries, table

__all__ = ["main", "one"]

_SHOWN = 20


async def one(kind: str, plan: Plan, folder: Path) -> tuple[str, list[str]]:
    """Do one run on one kind of store; return the report and what speaks against it."""
    async with (
        place(kind, folder, lease_seconds=plan.lease_seconds) as here,
        endure(plan, here, folder) as storm,
    ):
        evidence = await storm.run()
        verdict = judge(evidence)
        against = list(verdict.faults)
        against += [f"no {harm} ever struck" for harm in here.harms if not storm.struck[harm]]
        if not quiet_recoveries(storm, evidence, verdict):
            against.append("no Run of the worker killed in quiet went on elsewhere")
        return table(kind, storm, evidence, verdict), against


def main(arguments: Sequence[str] | None = None) -> int:
    """Run on each store in turn; 1 when a number is not 0 that must be, or no harm was done."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--store", choices=PLACES, help="one kind of store; each in turn unless told"
    )
    parser.add_argument("--runs", type=int, default=300, help="Runs to admit on each (300)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of harm on each (60)")
    parser.add_argument("--workers", type=int, default=3, help="worker processes (3)")
    parser.add_argument("--seed", type=int, help="of the schedule; printed when none is given")
    given = parser.parse_args(arguments)
    if given.runs <= QUIET_RUNS or given.workers < 2:
        parser.error(f"it takes more than {QUIET_RUNS} Runs, and 2 workers")
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    plan = Plan(seed, runs=given.runs, seconds=given.seconds, workers=given.workers)
    kinds = PLACES if given.store is None else (given.store,)
    failed = [kind for kind in kinds if _run(kind, plan)]
    return int(bool(failed))


def _run(kind: str, plan: Plan) -> bool:
    """Run on one kind of store and say how it went; True when it failed, with all that is left."""
    folder = Path(tempfile.mkdtemp(prefix=f"psych-chaos-{kind}-"))
    report, against = asyncio.run(one(kind, plan, folder))
    print(report, flush=True)
    if not against:
        shutil.rmtree(folder)
        return False
    print("FAILED:", *against[:_SHOWN], sep="\n  ")
    print(f"what the workers said and did is in {folder}", flush=True)
    return True
