"""The stores that a session is tried on."""

from pathlib import Path

import pytest


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """What a session is given as its store: nothing, or a file."""
    return None if request.param == "memory" else f"sqlite:///{tmp_path / 'runs.db'}"
