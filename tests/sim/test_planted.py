"""The simulation finds what it must find: faults planted into a copy of the engine."""

from pathlib import Path

import pytest

from tests.sim.planted import PLANTED, find


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_found_within_500_seeds(name: str, tmp_path: Path) -> None:
    """Some seed fails, and the command that replays it is printed."""
    printed = find(name, tmp_path, seeds=500)
    assert "FAILED: seed" in printed, printed
    assert "replay: python -m tests.sim --first" in printed
