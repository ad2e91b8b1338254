"""The command that starts and stops servers, tried in a state folder of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import (
    ServiceError,
    control,
    greetings,
    process,
    restart_server,
    servers,
    start_server,
    state,
    stop_server,
)
from tests.services.kinds import KINDS

ROOT = Path(__file__).parents[2]


def command(*arguments: str, account: process.Account | None = None) -> subprocess.Popen[str]:
    """Begin `python -m tests.services`, as whoever runs the tests or as somebody else."""
    program = ["tests.services"]
    if account is not None:
        program = ["tests.services.as_user", str(account.uid), str(account.gid)]
    return subprocess.Popen(
        [sys.executable, "-m", *program, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_services_all_come_up() -> None:
    """Six servers, each of the kind that its name says, at the usual superuser's URL."""
    found = servers()
    schemes = {name: getattr(found, name).url.partition(":")[0] for name in KINDS}
    assert schemes == {
        "postgres": "postgresql",
        "postgres_new": "postgresql",
        "pgbouncer": "postgresql",
        "mysql": "mysql",
        "mariadb": "mariadb",
        "aws": "http",
    }
    assert "MariaDB" in found.mariadb.version
    assert "MariaDB" not in found.mysql.version


def test_services_the_second_start_finds_the_server(apart: Path) -> None:
    """The same process, and the same answer."""
    first = start_server("aws")
    pid = state.read("aws")
    assert first.version == "ministack 1.5.33"
    assert start_server("aws") == first
    assert state.read("aws") == pid
    assert control.status()["aws"] == first


def test_services_the_second_stop_has_nothing_to_do(apart: Path) -> None:
    """A stopped server is gone, and comes back at its port."""
    first = start_server("aws")
    stop_server("aws")
    assert control.status()["aws"] is None
    stop_server("aws")
    assert start_server("aws").url == first.url


def test_services_a_crash_ends_the_process(apart: Path) -> None:
    """Killed and started again: another process at the same port."""
    first, before = start_server("aws"), state.read("aws")
    second, after = restart_server("aws", "immediate"), state.read("aws")
    assert before is not None
    assert after is not None
    assert first.url == second.url
    assert before.pid != after.pid


def told(*arguments: str, account: process.Account | None = None) -> tuple[int, str, str]:
    """Run the command; return its status and what it says."""
    began = command(*arguments, account=account)
    out, err = began.communicate()
    return began.returncode, out, err


def starts_and_stops_twice(
    folder: Path, names: tuple[str, ...], account: process.Account | None = None
) -> None:
    """Check what each command says, and that the second has nothing to do."""

    def kept() -> dict[str, state.Record]:
        files = {name: folder / name / "record.json" for name in names}
        texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        return {name: state.Record(**json.loads(text)) for name, text in texts.items()}

    try:
        first = told("start", *names, account=account)
        assert (first[0], first[2]) == (0, "")
        records = kept()
        for name, line in zip(names, first[1].splitlines(), strict=True):
            assert line.startswith(f"{name:13}")
            assert line.endswith(f" {KINDS[name].url.format(port=records[name].port)}")
        assert told("start", *names, account=account) == first
        assert kept() == records
    finally:
        ended = told("stop", *names, account=account)
    assert ended == (0, "", "")
    assert not any(map(process.alive, records.values()))
    stopped = "".join(f"{name:13}stopped\n" for name in names)
    assert told("status", *names, account=account) == (1, stopped, "")
    assert told("stop", *names, account=account) == (0, "", "")


def test_services_the_command_starts_twice_and_stops_twice(apart: Path) -> None:
    """The second start finds the servers; a stop says nothing."""
    starts_and_stops_twice(apart, ("aws", "mariadb"))


def test_services_nobody_needs_to_be_root(
    reachable: Path, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that root has to start in another way, in a folder of somebody without rights."""
    account = process.unprivileged()
    theirs = reachable / "theirs"
    theirs.mkdir()
    (theirs / "packages").symlink_to((apart / "packages").resolve())
    if account is not None:
        account.own(theirs)
    monkeypatch.setenv("PSYCH_SERVICES_DIR", str(theirs))
    starts_and_stops_twice(theirs, ("postgres", "mariadb"), account)


def test_services_one_role_of_postgresql_needs_a_password(apart: Path) -> None:
    """All others are trusted."""
    url = start_server("postgres").url
    assert greetings.postgres_version(url) != greetings.UNKNOWN
    locked_out = url.replace("//postgres@", "//psych_locked_out@")
    assert greetings.postgres_version(locked_out) == greetings.UNKNOWN


def test_services_two_starts_at_once_take_turns(apart: Path) -> None:
    """Both succeed, with one server."""
    both = [command("start", "aws"), command("start", "aws")]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0] == said[1]
    assert said[0][0].startswith("aws          ministack 1.5.33 ")


def test_services_status_and_env_tell_what_runs(apart: Path) -> None:
    """A server that is down has a line, and makes the status 1."""
    url = start_server("aws").url
    assert told("env", "aws") == (0, f"export PSYCH_TEST_AWS_ENDPOINT={url}\n", "")
    assert told("status", "mysql") == (1, "mysql        stopped\n", "")


def test_services_a_broken_server_is_named_with_its_log(apart: Path) -> None:
    """MariaDB on an empty data folder ends; the error has its name, command and last words."""
    state.folder("mariadb", "data")
    with pytest.raises(ServiceError) as caught:
        start_server("mariadb")
    assert caught.value.name == "mariadb"
    log = apart / "mariadb" / "server.log"
    text = str(caught.value)
    assert text.startswith("mariadb: it ended by itself\ncommand: ")
    assert f"--datadir={apart}/mariadb/data" in text
    assert f"the end of {log}:" in text
    assert "[ERROR]" in text
    assert log.read_text(encoding="utf-8").splitlines()[-1] in text
    assert control.status()["mariadb"] is None


def test_services_a_server_of_the_environment_is_used(
    apart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is started beside it, and it is not ours to stop."""
    elsewhere = start_server("aws")
    monkeypatch.setenv("PSYCH_TEST_AWS_ENDPOINT", elsewhere.url)
    monkeypatch.setenv("PSYCH_SERVICES_DIR", str(tmp_path / "third"))
    assert start_server("aws") == elsewhere
    assert state.read("aws") is None
    with pytest.raises(ServiceError, match="PSYCH_TEST_AWS_ENDPOINT names it"):
        stop_server("aws")
    control.stop(["aws"])
    assert control.status()["aws"] == elsewhere


def test_services_a_silent_server_of_the_environment_is_an_error(
    apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the variable and the place, and keeps the password."""
    port = state.free_port(())
    url = f"postgresql://someone:hidden@127.0.0.1:{port}/x"
    monkeypatch.setenv("PSYCH_TEST_POSTGRES_URL", url)
    with pytest.raises(ServiceError) as caught:
        start_server("postgres")
    assert f"PSYCH_TEST_POSTGRES_URL, at 127.0.0.1:{port}, does not answer" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_services_another_program_with_the_pid_is_left_alone(apart: Path) -> None:
    """A pid can be given to somebody else after a crash."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as stranger:
        record = state.Record(state.free_port(()), stranger.pid, ("/usr/sbin/mariadbd", "-x"))
        state.write("mariadb", record)
        assert control.status()["mariadb"] is None
        control.stop(["mariadb"], "immediate")
        assert stranger.stdin is not None
        stranger.stdin.close()
        assert stranger.wait() == 0


def test_services_an_unknown_name_is_refused() -> None:
    """With the names that there are."""
    known = "postgres, postgres_new, pgbouncer, mysql, mariadb, aws"
    assert told("start", "oracle") == (1, "", f"oracle: is no server; there are {known}\n")
