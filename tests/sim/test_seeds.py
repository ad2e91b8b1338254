"""The engine holds in 500 simulated worlds (protocol.md, section 7)."""

import os
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest

from tests.sim.program import ENOUGH, Batch, live, missing
from tests.together import Together

_ROOT = Path(__file__).parents[2]
_PART = 25
_PARTS = range(0, ENOUGH, _PART)


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """What happened in the parts."""
    return Together(tmp_path_factory, "lived", _PARTS)


@pytest.mark.parametrize("first", _PARTS)
def test_run_1_run_2_run_3_run_8_run_9_500_seeds_hold(first: int, lived: Together) -> None:
    """No invariant breaks, and every Run ends; in 500 worlds together each fault strikes.

    The part that ends last looks at what happened in all of them.
    """
    found = live(range(first, first + _PART))
    assert not found.failures, [
        f"{problem}; python -m tests.sim --first {seed} --seeds 1 --jobs 1"
        for seed, problem in found.failures
    ]
    assert found.seeds == _PART
    parts = lived.add(first, {"happened": found.happened, "struck": found.struck})
    if parts is not None:
        batches = [Batch(_PART, part["happened"], part["struck"]) for part in parts]
        assert list(missing(reduce(Batch.plus, batches))) == []


def _fingerprint(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim", "--first", "7", "--seeds", "24"],
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
