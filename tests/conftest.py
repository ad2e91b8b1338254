"""What holds for every test: no network but loopback, no listener of the library (REF-1)."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.netguard import psych_netguard
from tests.stores.aws import emulator_alone

psych_netguard.install()

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session", autouse=True)
def no_account() -> Iterator[None]:
    """Let nothing lead to an AWS account of whoever runs the tests."""
    with emulator_alone():
        yield


@pytest.fixture(scope="session", autouse=True)
def netguard_reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Put the guard also into started Pythons; give the folder where all of them report."""
    folder = tmp_path_factory.mktemp("netguard")
    guard = str(Path(psych_netguard.__file__).parent)
    patch = pytest.MonkeyPatch()
    patch.setenv(psych_netguard.REPORTS, str(folder))
    patch.setenv("PYTHONPATH", guard, prepend=os.pathsep)
    yield folder
    patch.undo()


@pytest.fixture(autouse=True)
def nothing_was_refused(netguard_reports: Path) -> Iterator[None]:
    """Fail a test in which the guard refused something, also where the refusal was caught."""
    yield
    refused = psych_netguard.take_reports(str(netguard_reports))
    if refused:
        pytest.fail("\n".join(refused), pytrace=False)


def pytest_sessionfinish() -> None:
    """Leave no tables on servers that this process has used."""
    if "tests.stores.kinds" in sys.modules:
        from tests.stores.kinds import drop_all

        asyncio.run(drop_all())
