"""`psych new` writes a project that runs as it is (CLI-1)."""

import sqlite3
from pathlib import Path

import pytest

from psych_runtime import load_spec
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process
from tests.functional.cli.runner import run_python


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("option", "names"), [("--yaml", ["agent.yaml", "run.py"]), ("--python", ["run.py"])]
)
def test_cli_1_what_new_writes_runs(tmp_path: Path, option: str, names: list[str]) -> None:
    """Offline, with a scripted model; the Run and its answer are in a file that stays."""
    ran = psych_process("new", "word-counter", "--dir", tmp_path, option)
    assert ran.code == 0
    assert f"Next: python {tmp_path}/word-counter/run.py" in ran.out
    project = tmp_path / "word-counter"
    assert files(project) == names
    for _ in range(2):
        run = run_python(project / "run.py", cwd=tmp_path)
        assert run.code == 0, run.err
        assert run.out == "There are 4 words.\n"
    with sqlite3.connect(project / "runs.db") as database:
        assert database.execute("SELECT state, count(*) FROM run GROUP BY 1").fetchall() == [
            ("settled", 2)
        ]
    database.close()


def test_cli_1_the_agent_that_new_writes_is_valid(tmp_path: Path) -> None:
    """It validates, has a hash, and is the same agent in both languages."""
    assert psych("new", "hello", cwd=tmp_path).code == 0
    file = tmp_path / "hello" / "agent.yaml"
    assert psych("validate", file).code == 0
    spec = load_spec(file)
    assert (spec.name, [tool.name for tool in spec.tools]) == ("hello", ["count_words"])
    assert psych("new", "hello", "--dir", tmp_path / "python", "--python").code == 0
    code = "import runpy; print(repr(runpy.run_path('run.py')['AGENT']))"
    python = run_python("-c", code, cwd=tmp_path / "python" / "hello")
    assert python.out == f"{spec!r}\n"


def test_cli_1_new_overwrites_nothing(tmp_path: Path) -> None:
    """One file that is there, and nothing is written."""
    project = tmp_path / "hello"
    project.mkdir()
    (project / "run.py").write_text("mine")
    ran = psych("new", "hello", "--dir", tmp_path)
    assert ran.code == 1
    assert ran.err == (
        f"error: {project}/run.py exists; nothing was written. Choose another name or --dir\n"
    )
    assert files(project) == ["run.py"]
    assert (project / "run.py").read_text() == "mine"


def test_cli_1_new_keeps_what_is_in_the_folder(tmp_path: Path) -> None:
    """A folder with other files is no reason to refuse."""
    project = tmp_path / "hello"
    project.mkdir()
    (project / "notes.txt").write_text("mine")
    ran = psych("new", "hello", "--dir", tmp_path, "--json")
    assert ran.code == 0
    assert ran.json() == {"files": [f"{project}/agent.yaml", f"{project}/run.py"]}
    assert files(project) == ["agent.yaml", "notes.txt", "run.py"]


@pytest.mark.parametrize("name", ["Hello", "1st", "a b", "../x", "", "a" * 64, "a\n"])
def test_cli_1_new_wants_a_name_that_a_spec_may_have(tmp_path: Path, name: str) -> None:
    """Wrong usage; nothing is written."""
    assert psych("new", name, "--dir", tmp_path).code == 2
    assert files(tmp_path) == []


def test_cli_1_new_says_what_it_cannot_write(tmp_path: Path) -> None:
    """A path that leads through a file."""
    (tmp_path / "file").write_text("")
    ran = psych("new", "hello", "--dir", tmp_path / "file" / "sub")
    assert ran.code == 1
    assert ran.err == f"error: {tmp_path}/file/sub/hello cannot be written: not a directory\n"
    assert files(tmp_path) == ["file"]
