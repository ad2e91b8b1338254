"""`psych verify` says whether logs are what was written, and proves it by a head (LOG-6, CLI-1)."""

import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process
from tests.functional.cli.stored import asking, killed, stored, waiting

UNKNOWN_HEAD: Final = "a" * 64
CONTENT: Final = "its content is not the one that was written with it"
PREV: Final = "the record before it is not the one that it was written behind"


def change(folder: Path, statement: str, *values: object) -> None:
    """Write into the store by hand."""
    with closing(sqlite3.connect(folder / "runs.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def test_log_6_verify_of_a_sound_run_is_0(tmp_path: Path) -> None:
    """With the head to keep."""
    log = killed()
    url = stored(tmp_path, log)
    ran = psych("verify", log.run_id, "--store", url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        f"run      {log.run_id}",
        "records  15",
        f"head     {log.header.head_hash}",
        "consistent",
    ]


def test_log_6_verify_proves_a_head_that_was_kept(tmp_path: Path) -> None:
    """And says how far it reaches."""
    log = killed()
    url = stored(tmp_path, log)
    ran = psych("verify", log.run_id, "--head", log.entries[8].hash, "--store", url)
    assert ran.code == 0
    assert ran.out.splitlines()[-2:] == ["proven   up to seq 9", "consistent"]


def test_log_6_verify_refutes_a_head_that_is_not_there(tmp_path: Path) -> None:
    """Exit code 1 although the log fits together."""
    log = killed()
    url = stored(tmp_path, log)
    ran = psych("verify", log.run_id, "--head", UNKNOWN_HEAD, "--store", url)
    assert ran.code == 1
    assert ran.out.splitlines()[-2:] == [
        "proven   no: no record of this log has that hash",
        "consistent, but not what it was",
    ]


def test_log_6_verify_finds_what_was_changed(tmp_path: Path) -> None:
    """In the log and in the header; a head behind the change proves nothing."""
    log = killed()
    url = stored(tmp_path, log)
    change(tmp_path, "UPDATE record SET content = '\"other\"' WHERE seq = 1")
    change(tmp_path, "UPDATE run SET crashes = 3")
    ran = psych("verify", log.run_id, "--head", log.header.head_hash, "--store", url)
    assert ran.code == 1
    assert ran.out.splitlines()[3:] == [
        "proven   no: seq 15 has that hash, what is before it was changed",
        f"problem  content_does_not_fit at seq 1: {CONTENT}",
        "problem  header_differs: crashes is 3, the log makes it 0",
        "not consistent",
    ]


def test_log_6_verify_as_json(tmp_path: Path) -> None:
    """One document on one line, the verdict in full."""
    log = killed()
    url = stored(tmp_path, log)
    change(tmp_path, "UPDATE run SET crashes = 3")
    ran = psych("verify", log.run_id, "--head", log.entries[8].hash, "--json", PSYCH_STORE=url)
    assert ran.code == 1
    assert ran.out.count("\n") == 1
    assert ran.json() == {
        "run_id": log.run_id,
        "records": 15,
        "head_hash": log.header.head_hash,
        "consistent": False,
        "expected_head": log.entries[8].hash,
        "expected_seq": 9,
        "proven": True,
        "problems": [
            {
                "code": "header_differs",
                "message": "crashes is 3, the log makes it 0",
                "seq": None,
                "column": "crashes",
                "found": "3",
                "wanted": "0",
            }
        ],
    }


def test_log_6_verify_without_a_run_verifies_every_run_of_the_tenant(tmp_path: Path) -> None:
    """Whatever their state; another tenant's are not looked at."""
    theirs = killed(tenant="globex", first_id=9000)
    url = stored(tmp_path, killed(), asking(first_id=2000), waiting(first_id=3000), theirs)
    change(tmp_path, "UPDATE run SET crashes = 3 WHERE tenant = 'globex'")
    ran = psych("verify", "--store", url)
    assert (ran.code, ran.out) == (0, "3 runs, 27 records: consistent\n")
    assert psych("verify", "--store", url, "--tenant", "globex").code == 1
    nobody = psych("verify", "--store", url, "--tenant", "nobody")
    assert (nobody.code, nobody.out) == (0, "0 runs, 0 records: consistent\n")


def test_log_6_verify_without_a_run_names_those_that_are_not_sound(tmp_path: Path) -> None:
    """Each with its problems, and how many there are."""
    log, other = killed(), killed(first_id=2000)
    url = stored(tmp_path, log, other)
    change(tmp_path, "UPDATE record SET body = 'x' WHERE seq = 3 AND run_id = ?", log.run_id)
    ran = psych("verify", "--store", url)
    assert ran.code == 1
    assert ran.out.splitlines() == [
        log.run_id,
        "problem  unreadable at seq 3: its body is no record of any build",
        f"problem  prev_does_not_fit at seq 4: {PREV}",
        "2 runs, 30 records: 1 not consistent",
    ]
    lines = psych("verify", "--store", url, "--json").out.splitlines()
    verdicts = {view["run_id"]: view["consistent"] for view in map(json.loads, lines)}
    assert verdicts == {log.run_id: False, other.run_id: True}


def test_cli_1_verify_of_an_unknown_run_is_1(tmp_path: Path) -> None:
    """Another tenant's Run, too."""
    url = stored(tmp_path, killed(tenant="globex"))
    for run_id in ("run_x", killed().run_id):
        ran = psych("verify", run_id, "--store", url)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"error: no run '{run_id}' in this tenant")
        assert ran.err.endswith("code: run_not_found\n")


@pytest.mark.parametrize("head", ["", "abc", "A" * 64, "a" * 65, "\udcff"])
def test_cli_1_verify_with_what_is_no_hash_is_wrong_usage(tmp_path: Path, head: str) -> None:
    """It says what a hash is; the store is not opened."""
    ran = psych("verify", "run_x", "--head", head, "--store", f"sqlite:///{tmp_path}/none.db")
    assert (ran.code, ran.out) == (2, "")
    assert "64 characters" in " ".join(ran.err.split())


def test_cli_1_verify_with_a_head_of_no_run_is_wrong_usage(tmp_path: Path) -> None:
    """A head is one Run's."""
    url = stored(tmp_path, killed())
    ran = psych("verify", "--head", UNKNOWN_HEAD, "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert "name the Run" in " ".join(ran.err.split())


def test_cli_1_verify_of_no_store_says_so(tmp_path: Path) -> None:
    """A file that is not there is not made."""
    url = f"sqlite:///{tmp_path / 'none.db'}"
    for arguments in ([], ["run_x"]):
        ran = psych("verify", *arguments, "--store", url)
        assert (ran.code, ran.out) == (1, "")
        assert "code: unsupported_store\n" in ran.err
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(*arguments: str) -> str:
    """Return what a process prints whose outputs are a terminal."""
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "psych_runtime.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
    finally:
        os.close(theirs)
    said = bytearray()
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # the last process that had the terminal is gone
        pass
    finally:
        os.close(ours)
    assert child.wait(60) == 0
    return said.decode()


@pytest.mark.parametrize(
    "command", [["verify"], ["verify", "RUN"], ["doctor", "--rebuild"]], ids=" ".join
)
def test_cli_1_long_work_has_a_bar_on_a_terminal_only(tmp_path: Path, command: list[str]) -> None:
    """How many records are done; neither a pipe nor JSON for a program gets one."""
    log = killed()
    url = stored(tmp_path, log)
    line = [log.run_id if word == "RUN" else word for word in command] + ["--store", url]

    shown = on_a_terminal(*line)
    assert "records" in shown
    assert "15/15" in shown
    assert "15/15" not in on_a_terminal(*line, "--json")
    piped = psych_process(*line)
    assert (piped.code, piped.err) == (0, "")
    assert "15/15" not in piped.out
    assert "\x1b" not in piped.out


def test_ref_1_verify_loads_no_worker(tmp_path: Path) -> None:
    """Nor a bar that nobody sees."""
    code = (
        "import sys\n"
        "from psych_runtime.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code\n"
        "heavy = ('psych_runtime.runtime.worker', 'httpx2', 'sqlalchemy', 'rich.progress')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    url = stored(tmp_path, killed())
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", "--store", url],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("consistent\n[]\n")
