"""A short chaos run on each store; `make chaos` does long ones."""

from pathlib import Path

import pytest

from tests.chaos.places import PLACES
from tests.chaos.program import one
from tests.chaos.storm import Plan


@pytest.mark.parametrize("kind", PLACES)
async def test_run_1_every_run_ends_exactly_whatever_is_done_to_its_workers(
    kind: str, tmp_path: Path
) -> None:
    """40 Runs while workers are killed and stopped, connections broken, the server restarted."""
    plan = Plan(seed=4, runs=40, seconds=12.0, settle_seconds=40.0)
    report, against = await one(kind, plan, tmp_path)
    assert against == [], report
