"""The finder takes a Python 3.12 or newer wherever an older one is first, and else says why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.repository.files import ROOT

FINDER = ROOT / "tools/find_python"

# Answers the finder's program as that version of Python would.
POSING = """#!/bin/sh
exec {python} -I -c "
import sys
sys.version_info = {version!r}
if {bare!r}:
    sys.modules['ensurepip'] = None
exec(sys.argv[1])
" "$3"
"""


def plant(folder: Path, name: str, version: tuple[int, int, int], *, bare: bool = False) -> Path:
    """Put a Python of `version` into `folder`; a bare one cannot make environments."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    text = POSING.format(python=sys.executable, version=version, bare=bare)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def find(*path: Path, home: Path, chosen: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the finder with `path` and the system's tools, but no Python of the system's."""
    environment = {"PATH": os.pathsep.join(map(str, path)), "HOME": str(home)}
    environment["PSYCH_SEARCH_ROOT"] = str(home / "root")
    if chosen is not None:
        environment["PSYCH_PYTHON"] = str(chosen)
    return subprocess.run(
        ["/bin/sh", str(FINDER)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the few commands that the finder uses."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for command in ("cat", "tail"):
        found = next(path for path in (Path("/usr/bin"), Path("/bin")) if (path / command).exists())
        (folder / command).symlink_to(found / command)
    return folder


def test_finder_passes_over_an_older_python_that_is_first(tmp_path: Path, tools: Path) -> None:
    """`python3` is 3.11 on some machines; the newer one is behind it, or has another name."""
    plant(tmp_path / "old", "python3", (3, 11, 7))
    plant(tmp_path / "new", "python3.12", (3, 12, 1))
    found = find(tmp_path / "old", tmp_path / "new", tools, home=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == f"{sys.executable}\n"


def test_finder_looks_where_version_managers_put_it(tmp_path: Path, tools: Path) -> None:
    """Nothing but 3.11 on PATH, and a 3.13 in the usual place."""
    plant(tmp_path / "old", "python3", (3, 11, 7))
    plant(tmp_path / ".pyenv/versions/3.11.7/bin", "python", (3, 11, 7))
    plant(tmp_path / ".pyenv/versions/3.13.0/bin", "python", (3, 13, 0))
    found = find(tmp_path / "old", tools, home=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == f"{sys.executable}\n"


def test_finder_looks_beside_the_system(tmp_path: Path, tools: Path) -> None:
    """A Python that an installer put where PATH does not lead."""
    plant(tmp_path / "root/opt/homebrew/bin", "python3.13", (3, 13, 0))
    found = find(tools, home=tmp_path)
    assert found.stdout == f"{sys.executable}\n"


def test_finder_says_what_it_looked_at_and_what_to_install(tmp_path: Path, tools: Path) -> None:
    """An old one, one that cannot make environments, one that does not start: each named."""
    old = plant(tmp_path / "bin", "python3", (3, 11, 7))
    bare = plant(tmp_path / "bin", "python3.13", (3, 13, 0), bare=True)
    broken = tmp_path / "bin/python3.12"
    broken.write_text("#!/bin/sh\necho shim: not installed >&2\nexit 127\n", encoding="utf-8")
    broken.chmod(0o755)
    found = find(tmp_path / "bin", tools, home=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert f"{old}: is Python 3.11, too old" in found.stderr
    assert f"{bare}: is new enough but cannot make virtual environments" in found.stderr
    assert "apt install python3.13-venv" in found.stderr
    assert f"{broken}: shim: not installed" in found.stderr
    assert "PSYCH_PYTHON=" in found.stderr


def test_finder_says_so_when_there_is_none(tmp_path: Path, tools: Path) -> None:
    """Not even an old one."""
    found = find(tools, home=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert "no python3 on PATH" in found.stderr


def test_finder_takes_the_chosen_one_only(tmp_path: Path, tools: Path) -> None:
    """PSYCH_PYTHON is obeyed or refused, never passed over silently."""
    good = plant(tmp_path / "bin", "python3", (3, 13, 0))
    old = plant(tmp_path / "chosen", "python", (3, 11, 7))
    refused = find(tmp_path / "bin", tools, home=tmp_path, chosen=old)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"PSYCH_PYTHON names no Python that will do:\n  {old}: is Python 3.11" in refused.stderr
    taken = find(tmp_path / "chosen", tools, home=tmp_path, chosen=good)
    assert taken.stdout == f"{sys.executable}\n"
