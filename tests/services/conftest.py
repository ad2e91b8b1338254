"""State folders of their own for tests of the command that starts and stops servers."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import control, mysql, packages, postgres, state
from tests.services.kinds import KINDS
from tests.services.stub_docker import StubDocker


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder into which a server can come that runs as another user; pytest's own is closed."""
    folder = Path(tempfile.mkdtemp(prefix="psych-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def docker(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> StubDocker:
    """The only `docker` there is; no daemon answers it unless a test wants one."""
    stub = StubDocker(reachable / "docker")
    monkeypatch.setenv("PATH", str(stub.programs), prepend=":")
    return stub


@pytest.fixture
def apart(reachable: Path, docker: StubDocker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second state folder, empty but for the programs that the first has fetched."""
    with state.turn():
        packages.python("aws")
        mysql.mariadb_programs("mariadb")
        postgres.postgres_home("postgres")
        fetched = state.folder("packages")
    for kind in KINDS.values():
        monkeypatch.delenv(kind.variable, raising=False)
    second = reachable / "state"
    monkeypatch.setenv("PSYCH_SERVICES_DIR", str(second))
    state.folder("packages").rmdir()
    (second / "packages").symlink_to(fetched)
    yield second
    monkeypatch.setenv("PSYCH_SERVICES_DIR", str(second))
    control.stop(KINDS)
