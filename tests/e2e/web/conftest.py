"""What the tests of the example are given: a store, processes on it, and a browser."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.store.open import open_store
from tests.e2e.web.browser import Browser
from tests.e2e.web.programs import Job
from tests.e2e.web.running import Site
from tests.processes.nursery import Nursery
from tests.stores.kinds import tables_of

_REAL = ("OPENAI_API_KEY", "PSYCH_BASE_URL", "PSYCH_MODEL")


@pytest.fixture(params=["sqlite", "postgresql"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """URL and prefix of a store that processes can share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/runs.db", ""
    tables = tables_of(request.param)
    await tables.empty()
    return tables.url, tables.prefix


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery[Job]]:
    """The process that the others are forked from; its environment names no real model."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _REAL:
            patch.delenv(name, raising=False)
        made = Nursery[Job]("tests.e2e.web.programs")
    with made:
        yield made


@pytest.fixture
def site(tmp_path: Path, place: tuple[str, str], nursery: Nursery[Job]) -> Iterator[Site]:
    """What starts servers and workers; nothing that they log is an error."""
    environment = {
        "PSYCH_STORE": place[0],
        "PSYCH_PREFIX": place[1],
        "HEARTBEAT_SECONDS": "0.2",
        "LEASE_SECONDS": "2",
        "PYTHONPATH": os.environ["PYTHONPATH"],
    }
    made = Site(tmp_path, environment, nursery)
    yield made
    nursery.empty()
    assert "Traceback" not in made.said(), made.said()


@pytest.fixture
async def store(place: tuple[str, str]) -> AsyncIterator[Store]:
    """The store that all of them share."""
    url, prefix = place
    async with open_store(url, prefix=prefix) as opened:
        await opened.migrate()
        yield opened


@pytest.fixture
async def browser(site: Site) -> AsyncIterator[Browser]:
    """Ann, at a server of her own."""
    _, address = await site.serve()
    made = Browser(address)
    yield made
    await made.close()
