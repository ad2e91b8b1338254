"""The engine holds in 500 simulated worlds (protocol.md, section 7)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.program import main

_ROOT = Path(__file__).parents[2]


def test_run_1_run_2_run_3_run_8_run_9_500_seeds_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """No invariant breaks, every Run ends, and each kind of fault strikes."""
    failed = main(["--seeds", "500"])
    printed = capsys.readouterr().out
    assert not failed, printed
    assert printed.startswith("500 seeds"), printed


def _fingerprint(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--first", "7", "--seeds", "4", "--jobs", "1"],
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[0].rpartition(" ")[2]


def test_a_seed_gives_the_same_schedule_in_every_process() -> None:
    """Neither addresses nor the hash seed decide what happens: a seed replays exactly."""
    assert _fingerprint("1") == _fingerprint("2")
