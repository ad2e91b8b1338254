"""`psych verify` says whether logs are what was written, and proves it by a head (LOG-6, CLI-1)."""

import json
import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
        "erased": 0,
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
    assert (nobody.code, nobody.out) == (0, "no runs of tenant 'nobody' in this store\n")
    as_json = psych("verify", "--store", url, "--tenant", "nobody", "--json")
    assert (as_json.code, as_json.out) == (0, "")


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


def test_cli_1_verify_of_an_unknown_run_is_2(tmp_path: Path) -> None:
    """Another tenant's Run, too: nothing was checked."""
    url = stored(tmp_path, killed(tenant="globex"))
    for run_id in ("run_x", killed().run_id):
        ran = psych("verify", run_id, "--store", url)
        assert (ran.code, ran.out) == (2, "")
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
        assert (ran.code, ran.out) == (2, "")
        assert "code: unsupported_store\n" in ran.err
    assert list(tmp_path.iterdir()) == []


@contextmanager
def a_store_of_no_use(folder: Path, how: str) -> Iterator[tuple[str, str]]:
    """Yield a URL that no store can be read from, and the code of the error."""
    path = folder / "other.db"
    url, code = f"sqlite:///{path}", "unsupported_store"
    match how:
        case "no file":
            yield url, code
        case "no URL":
            yield str(path), code
        case "a folder":
            path.mkdir()
            yield url, code
        case "no database":
            path.write_text("no database " * 1000)
            yield url, code
        case "no schema":
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("CREATE TABLE other (one TEXT)")
            yield url, "schema_missing"
        case _:
            stored(folder, killed())
            with closing(sqlite3.connect(folder / "runs.db")) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("BEGIN EXCLUSIVE")
                yield f"sqlite:///{folder / 'runs.db'}", "store_unavailable"


@pytest.mark.parametrize(
    "how", ["no file", "no URL", "a folder", "no database", "no schema", "locked"]
)
def test_cli_1_what_keeps_the_check_from_being_made_is_2(tmp_path: Path, how: str) -> None:
    """1 is for what a check has found; a plain `psych doctor` has found this."""
    with a_store_of_no_use(tmp_path, how) as (url, code):
        for arguments in ([], [killed().run_id]):
            ran = psych("verify", *arguments, "--store", url)
            assert (ran.code, ran.out) == (2, "")
            assert ran.err.endswith(f"code: {code}\n")
        rebuilt = psych("doctor", "--rebuild", "--store", url)
        assert (rebuilt.code, rebuilt.err) == (2, "")
        assert "problem  " in rebuilt.out
        assert psych("doctor", "--store", url).code == 1


def test_log_6_verify_finds_a_version_that_was_changed(tmp_path: Path) -> None:
    """In the database, beside logs that are what they were."""
    log = killed()
    url = stored(tmp_path, log)
    change(tmp_path, "UPDATE version SET document = 'x'")
    ran = psych("verify", log.run_id, "--store", url)
    assert ran.code == 1
    what = f"the version {log.header.version} that it names is another text in the store"
    assert ran.out.splitlines()[-2:] == [
        f"problem  version_differs at seq 1: {what}",
        "not consistent",
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_r_1_verify_goes_on_behind_a_header_that_cannot_be_read(tmp_path: Path, place: int) -> None:
    """It is the problem of its Run: the newest, one in the middle, the oldest."""
    logs = [killed(first_id=1 + number * 1000) for number in range(3)]
    url = stored(tmp_path, *logs)
    change(tmp_path, "UPDATE run SET head_at = 'junk' WHERE run_id = ?", logs[place].run_id)
    ran = psych("verify", "--store", url)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines()[0] == logs[place].run_id
    assert ran.out.splitlines()[1].startswith("problem  corrupt_row: the row ")
    assert ran.out.splitlines()[2:] == ["3 runs, 45 records: 1 not consistent"]
    lines = psych("verify", "--store", url, "--json").out.splitlines()
    verdicts = {view["run_id"]: view["consistent"] for view in map(json.loads, lines)}
    assert verdicts == {log.run_id: log is not logs[place] for log in logs}


def test_r_1_verify_says_where_the_list_of_runs_ended(tmp_path: Path) -> None:
    """A header whose place in the list is no instant: which Runs come next, nobody can tell."""
    log, other = killed(), killed(first_id=2000)
    url = stored(tmp_path, log, other)
    change(tmp_path, "UPDATE run SET created_at = 'junk' WHERE run_id = ?", log.run_id)
    ran = psych("verify", "--store", url)
    assert ran.code == 1
    assert "problem  listing_ended: the list of runs ends here" in ran.out
    assert ran.out.endswith("1 run, 15 records: 1 not consistent\n")


def test_r_11_verify_counts_what_was_erased(tmp_path: Path) -> None:
    """One Run and all: the log is consistent, and its words are not there any more."""
    log = killed()
    log.erase()
    url = stored(tmp_path, log, killed(first_id=2000))
    change(
        tmp_path,
        "UPDATE record SET content = NULL, salt = NULL WHERE seq = 1 AND run_id = ?",
        log.run_id,
    )
    one = psych("verify", log.run_id, "--store", url)
    assert (one.code, one.out.splitlines()[-1]) == (0, "consistent, 1 content erased")
    change(tmp_path, "UPDATE record SET content = NULL, salt = NULL WHERE run_id = ?", log.run_id)
    erased = sum(row.content is not None for row in log.rows)
    every = psych("verify", "--store", url)
    assert every.out == f"2 runs, 31 records: consistent, {erased} contents erased\n"


def test_cli_1_one_problem_of_records_in_a_row_is_one_line(tmp_path: Path) -> None:
    """In the text; a program gets each."""
    log = killed()
    url = stored(tmp_path, log)
    change(tmp_path, "UPDATE record SET body = 'x' WHERE seq IN (3, 4, 5, 9)")
    ran = psych("verify", log.run_id, "--store", url)
    unreadable = "its body is no record of any build"
    assert ran.out.splitlines()[3:-1] == [
        f"problem  unreadable at seq 3 to 5: {unreadable}",
        f"problem  prev_does_not_fit at seq 6: {PREV}",
        f"problem  unreadable at seq 9: {unreadable}",
        f"problem  prev_does_not_fit at seq 10: {PREV}",
    ]
    document = psych("verify", log.run_id, "--store", url, "--json").json()
    assert isinstance(document, dict)
    assert isinstance(document["problems"], list)
    assert len(document["problems"]) == 6
    doctor = psych("doctor", "--rebuild", "--store", url)
    assert f"problem  {log.run_id}: unreadable at seq 3 to 5: {unreadable}\n" in doctor.out


@pytest.mark.parametrize(
    "command", [["verify", "--json"], ["verify"], ["doctor", "--json"], ["runs"], ["log", "RUN"]]
)
def test_cli_1_a_closed_output_is_an_error_and_no_traceback(
    tmp_path: Path, command: list[str]
) -> None:
    """`psych verify >&-` in a shell: said on standard error, as when the disk is full."""
    log = killed()
    url = stored(tmp_path, log)
    line = [log.run_id if word == "RUN" else word for word in command]
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "psych_runtime.cli", *line],
        env={**os.environ, "PSYCH_STORE": url},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output cannot be written: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_cli_1_help_says_what_is_not_checked(command: str) -> None:
    """A column that other Runs decide, Runs that vanished, and what each exit code means."""
    text = " ".join(psych(command, "--help", COLUMNS="200").out.replace("│", " ").split())
    for words in ("referenced", "capped", "gone with its header", "xit code 1", "2 when"):
        assert words in text


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
