"""Crashes, leases and recovery are tested on every store."""

import pytest


@pytest.fixture(params=["memory", "sqlite", "postgresql", "mysql", "mariadb", "dynamodb"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn."""
    name: str = request.param
    return name
