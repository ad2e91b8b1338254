"""The small programs of tools/: each says no where it should."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.files import ROOT
from tools.strip_npm_lock import strip


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose generator copies schema/ to generated/, all committed."""
    for folder in ("schema", "generated"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text("{}\n", encoding="utf-8")
    run(tmp_path, "git", "init", "--quiet")
    run(tmp_path, "git", "add", ".")
    return tmp_path


def check(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run tools/check_generated there."""
    return run(checkout, str(ROOT / "tools/check_generated"), "cp", "-r", "schema/.", "generated")


def test_check_generated_passes_on_what_the_generator_gives(checkout: Path) -> None:
    """Nothing changed, nothing said."""
    done = check(checkout)
    assert (done.returncode, done.stdout) == (0, "")


def test_check_generated_finds_an_edit_by_hand(checkout: Path) -> None:
    """Although generating would undo it."""
    (checkout / "generated/a.json").write_text("[]\n", encoding="utf-8")
    done = check(checkout)
    assert done.returncode == 1
    assert "+[]" in done.stdout
    assert "make generate" in done.stderr


def test_check_generated_finds_a_committed_edit_by_hand(checkout: Path) -> None:
    """Also where it is already in the index."""
    (checkout / "generated/a.json").write_text("[]\n", encoding="utf-8")
    run(checkout, "git", "add", ".")
    done = check(checkout)
    assert done.returncode == 1
    assert "is not what the schema gives" in done.stderr


def test_check_generated_finds_a_new_file(checkout: Path) -> None:
    """A plain `git diff` does not see files that nobody added."""
    (checkout / "schema/b.json").write_text("{}\n", encoding="utf-8")
    done = check(checkout)
    assert done.returncode == 1
    assert "generated/b.json" in done.stdout


def test_check_generated_finds_a_schema_that_went_on(checkout: Path) -> None:
    """The schema was changed and nothing generated."""
    (checkout / "schema/a.json").write_text('{"x": 1}\n', encoding="utf-8")
    done = check(checkout)
    assert done.returncode == 1
    assert "is not what the schema gives" in done.stderr


def test_check_generated_fails_when_the_generator_does(checkout: Path) -> None:
    """A generator that stops has not agreed."""
    assert run(checkout, str(ROOT / "tools/check_generated"), "false").returncode == 1


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (None, "No node on PATH"),
        ("echo v18.19.0", "node is v18.19.0, too old"),
        ("exit 127", "does not start"),
        ("echo nonsense", "says its version is 'nonsense'"),
    ],
)
def test_need_node_says_what_is_missing(tmp_path: Path, node: str | None, says: str) -> None:
    """And what to install."""
    done = need_node(tmp_path, node)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Node.js 20 or newer and its npm" in done.stderr


@pytest.mark.parametrize("node", ["echo v20.0.0", "echo v22.1.0"])
def test_need_node_takes_20_and_newer(tmp_path: Path, node: str) -> None:
    """Silently."""
    done = need_node(tmp_path, node)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def need_node(folder: Path, node: str | None) -> subprocess.CompletedProcess[str]:
    """Run tools/need_node where `node` behaves like that, and npm is there."""
    for name, body in (("node", node), ("npm", "exit 0")):
        if body is not None:
            (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "tools/need_node")],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_strip_npm_lock_leaves_names_versions_and_hashes() -> None:
    """A field that `npm ci` reads stays, one that names a host goes."""
    lock = {
        "lockfileVersion": 3,
        "packages": {
            "node_modules/a": {
                "version": "1.0.0",
                "resolved": "https://registry.invalid/a.tgz",
                "integrity": "sha512-x",
                "funding": {"url": "https://a.invalid"},
                "dependencies": {"b": "^1"},
            }
        },
    }
    assert json.loads(strip(json.dumps(lock)))["packages"] == {
        "node_modules/a": {
            "version": "1.0.0",
            "integrity": "sha512-x",
            "dependencies": {"b": "^1"},
        }
    }
