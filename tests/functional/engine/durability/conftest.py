"""Crashes, leases and recovery on every store, and the crucial files also through a pooler."""

from typing import Final

import pytest

from tests.stores.kinds import EVERY_STORE

THROUGH_A_POOLER: Final = frozenset(
    {"test_ambiguity", "test_drain", "test_hung", "test_recovery", "test_zombies"}
)
"""Where it may matter that nothing is heard there and no connection is one's own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test run on each store in turn, unless it names some itself."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "kind" in metafunc.fixturenames and all(mark.args[0] != "kind" for mark in marks):
        file = metafunc.module.__name__.rpartition(".")[2]
        pooled = ("pooled",) if file in THROUGH_A_POOLER else ()
        metafunc.parametrize("kind", (*EVERY_STORE, *pooled), indirect=True)


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """The name of the store."""
    name: str = request.param
    return name
