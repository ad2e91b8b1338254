"""Faults planted into a copy of the engine: the simulation is trusted while it finds each.

A fault is a change of the source. It must fit exactly once: an engine that has changed needs its
faults planted anew.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import psych_runtime

__all__ = ["PLANTED", "Edit", "find", "plant"]

_SIMULATE: Final = (sys.executable, "-m", "tests.sim", "--stop", "--jobs", "1")


class Edit(NamedTuple):
    """A text of one module, and what stands in its place."""

    module: str
    right: str
    wrong: str


PLANTED: Final[Mapping[str, tuple[Edit, ...]]] = {
    "a higher epoch is ignored among absorbed records, and there is no fence": (
        Edit(
            "runtime/journal.py",
            "if about.epoch > self.epoch:",
            "if about.epoch > self.epoch + 1000:",
        ),
        Edit(
            "runtime/journal.py",
            "            self.epoch,\n            tuple(sealed),",
            "            None,\n            tuple(sealed),",
        ),
    ),
    "leases end by the worker's clock": (
        Edit(
            "runtime/supervisor.py",
            "worker, lease_seconds=self._executor.lease.seconds, run_ids=held",
            "worker, lease_seconds=self._executor.lease.seconds + (self._system.now()"
            " - self._executor.lease.store_now()).total_seconds(), run_ids=held",
        ),
    ),
    "what was not acknowledged is written again, blindly": (
        Edit(
            "runtime/flusher.py",
            "                await asyncio.sleep(delay)\n"
            "                delay = longer(delay)\n"
            "                continue\n"
            "            except Exception",
            "                await asyncio.sleep(delay)\n"
            "                for journal, unit in batch:\n"
            "                    journal.refused(unit)\n"
            "                    self._spawn(self._look(journal))\n"
            "                return\n"
            "            except Exception",
        ),
        Edit(
            "runtime/journal.py",
            '            raise CorruptLog(reason="own_epoch_not_own",'
            " run_id=self.run_id, seq=row.seq)",
            "            self.state.position = about.position\n            return True",
        ),
    ),
    "an own commit is taken for a foreign one": (
        Edit(
            "runtime/journal.py",
            "if flight is not None and outline_commit(row) == flight.unit.commit_id:",
            "if flight is not None and not outline_commit(row):",
        ),
    ),
    "a decision is kept across a conflict": (
        Edit(
            "runtime/journal.py",
            "        self._flight = None\n"
            "        self._decisions = []\n"
            "        for decision in stale:\n"
            "            _fail(decision, Stale())\n"
            "        self._on_foreign()",
            "        self._flight = None\n"
            "        self._decisions = list(dict.fromkeys(stale))\n"
            "        self._on_foreign()",
        ),
    ),
    "a started unsafe call is run again": (
        Edit(
            "runtime/calls.py",
            'not (one.get("safe_to_retry") and one.epoch < state.epoch)',
            "not one.epoch < state.epoch",
        ),
        Edit(
            "core/guards.py",
            'safe = call.get("safe_to_retry") is True and call.epoch < state.epoch',
            "safe = call.epoch < state.epoch",
        ),
    ),
    "a call is looked up while it may still run": (
        Edit(
            "runtime/reconciling.py",
            "rest := tool.timeout_seconds - (attempt.now() - over).total_seconds()",
            "rest := -(attempt.now() - over).total_seconds()",
        ),
    ),
    "a call is over by the record of its start, whenever it began": (
        Edit(
            "runtime/reconciling.py",
            "over = max(over, attempt.awaited.claimed_at(epoch + 1) or over)",
            "over = max(over, started_at)",
        ),
    ),
    "what did not happen is taken for done": (
        Edit(
            "tools/reconciled.py",
            "return failed(NOT_HAPPENED, message, transient=True)",
            "return brought(message, max_bytes)",
        ),
    ),
    "failures are counted anew when a run is taken": (
        Edit("runtime/takeover.py", "        streaks.add(entry.record)\n", ""),
    ),
    "no clock is looked at before effects": (
        Edit(
            "runtime/attempt.py",
            "while not self.host.lease.fresh() and self.stop() is None:",
            "while self.host.lease.worker is None and self.stop() is None:",
        ),
        Edit(
            "runtime/attempt.py",
            "return not lost and self.host.lease.fresh()",
            "return not lost",
        ),
    ),
    "deaths are declared without a lease of contact": (
        Edit(
            "store/_contact.py",
            "return unbroken and not is_broken(row, now)",
            "return row.lease_until >= now",
        ),
    ),
    "a beat waits for the one before": (
        Edit(
            "runtime/supervisor.py",
            "self._spawn(self._beat(worker))",
            "await self._beat(worker)",
        ),
    ),
    "a run is taken under an epoch read later than it was judged": (
        Edit(
            "runtime/takeover.py",
            'if header.state in ("settled", "corrupt") or header.epoch != judged:',
            'if header.state in ("settled", "corrupt"):',
        ),
    ),
    "a run settles in one unit, and its successor is admitted in another": (
        Edit(
            "runtime/journal.py",
            "commit_id, self.tenant, (change, *linked), tuple(",
            "commit_id, self.tenant, (change,), tuple(",
        ),
    ),
}
"""What is wrong, and the change that makes it so."""


def plant(name: str, folder: Path) -> None:
    """Copy the library into `folder`, with one fault."""
    source = Path(psych_runtime.__file__).parent
    copy = folder / source.name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in PLANTED[name]:
        path = copy / edit.module
        text = path.read_text(encoding="utf-8")
        if text.count(edit.right) != 1:
            raise AssertionError(f"{edit.module} has {text.count(edit.right)} of {edit.right!r}")
        path.write_text(text.replace(edit.right, edit.wrong), encoding="utf-8")


def find(name: str, folder: Path, *, seeds: int) -> str:
    """Run seeds of the copy with the fault until one fails; return what was printed."""
    plant(name, folder)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [*_SIMULATE, "--seeds", str(seeds)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{root}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return done.stdout
