"""What is shipped: both packages, typed, with the published schemas and the SQL, and no more."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.repository.files import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Build the wheel from the tree, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def files(folder: str, suffix: str) -> set[str]:
    """Return the files under a folder of generated/."""
    root = ROOT / "generated" / folder
    return {f"{folder}/{path.relative_to(root).as_posix()}" for path in root.rglob(f"*{suffix}")}


def test_wheel_has_both_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """Neither the generator nor the tests."""
    names = set(wheel.namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"psych_runtime", "psych_schema", "psych_runtime-0.1.0.dist-info"}
    assert {"psych_runtime/py.typed", "psych_schema/py.typed"} <= names
    assert "psych_runtime-0.1.0.dist-info/licenses/LICENSE" in names
    assert files("psych_schema", ".py") <= names


def test_wheel_has_the_published_schemas_and_the_sql(wheel: zipfile.ZipFile) -> None:
    """Under psych_schema/published/, each as generated."""
    published = files("schema", ".json") | files("sql", ".sql")
    assert {"schema/agent.json", "sql/sqlite.sql"} <= published
    assert {f"psych_schema/published/{name}" for name in published} <= set(wheel.namelist())


def test_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    """`psych` is the command line."""
    text = wheel.read("psych_runtime-0.1.0.dist-info/entry_points.txt").decode()
    assert text == "[console_scripts]\npsych = psych_runtime.cli:main\n"


def test_wheel_schema_package_stands_alone(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Importing psych_schema takes neither psych_runtime nor anything but pydantic."""
    wheel.extractall(tmp_path)
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import psych_schema.record, psych_schema.spec, psych_schema.view\n"
        "import psych_schema.transitions\n"
        "print(psych_schema.__file__)\n"
        "print(sorted({'psych_runtime', 'sqlalchemy', 'httpx2', 'jsonschema'} & {*sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [str(tmp_path / "psych_schema/__init__.py"), "[]"]
