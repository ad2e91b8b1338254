"""`psych doctor --rebuild` finds each header column that its log contradicts (R-1, LOG-6)."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue

from psych_runtime.core.codec import sha256
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import Ran
from tests.functional.cli.stored import asking, busy, do, killed, stored, unreadable, waiting

OTHER: Final = "run_00000000000000000000000077"
LATER: Final = "2031-01-01T00:00:00.000000Z"

ALTERED: Final[Mapping[str, tuple[object, str, str]]] = {
    "tenant": ("globex", "globex", "local"),
    "version": ("f" * 64, "f" * 64, sha256("version")),
    "state": ("ready", "ready", "settled"),
    "head": (14, "14", "15"),
    "head_hash": ("e" * 64, "e" * 64, ""),
    "head_at": (LATER, LATER, ""),
    "worker": ("wrk_x", "wrk_x", "null"),
    "epoch": (7, "7", "2"),
    "crashes": (3, "3", "0"),
    "priority": (9, "9", "0"),
    "schema_version": (2, "2", "1"),
    "abort": ("forced", "forced", "null"),
    "thread": ("another", "another", "run_00000000000000000000000001"),
    "position": (5, "5", "1"),
    "previous": (OTHER, OTHER, "null"),
    "parent": (OTHER, OTHER, "null"),
    "root": (OTHER, OTHER, "run_00000000000000000000000001"),
    "created_at": (LATER, LATER, "2026-11-29T20:00:00.001000Z"),
    "open": ('{"wait_x":2}', '{"wait_x": 2}', "{}"),
    "wake_at": (LATER, LATER, "null"),
    "deadline_at": (LATER, LATER, "null"),
    "remaining_seconds": (1.5, "1.5", "null"),
}
"""For each column of a settled Run's header: another value, how it is shown, what is right.

"" stands for what the log itself says.
"""

ASIDE: Final[Mapping[str, object]] = {"referenced": 1, "capped": 1}
"""Columns that other Runs decide, and what was counted in the tenant's cap."""

KEY: Final = {"run_id"}
"""Which log a header belongs to: with another one it has none."""


def alter(folder: Path, column: str, value: object) -> None:
    """Write one value into the only header of the store."""
    with closing(sqlite3.connect(folder / "runs.db")) as connection, connection:
        assert connection.execute(f'UPDATE run SET "{column}" = ?', (value,)).rowcount == 1


def rebuilt(ran: Ran) -> dict[str, JsonValue]:
    """Return what the document says of headers."""
    found = ran.json()
    assert isinstance(found, dict)
    part = found["rebuilt"]
    assert isinstance(part, dict)
    return part


def test_log_6_every_column_of_the_table_is_judged_here(tmp_path: Path) -> None:
    """A new column fails until somebody has said on which side it is."""
    stored(tmp_path)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(run)")}
    assert columns == set(ALTERED) | set(ASIDE) | KEY


@pytest.mark.parametrize("column", sorted(ALTERED))
def test_r_1_doctor_finds_an_altered_column(tmp_path: Path, column: str) -> None:
    """That one, with what is there and what should be; nothing is mended."""
    log = killed()
    url = stored(tmp_path, log)
    value, shown, wanted = ALTERED[column]
    told = {"head_hash": log.rows[-1].body, "head_at": log.rows[-1].body}
    alter(tmp_path, column, value)
    tenant = "globex" if column == "tenant" else "local"

    for _ in range(2):  # the second one finds it as it was
        ran = psych("doctor", "--rebuild", "--store", url, "--tenant", tenant, "--json")
        assert ran.code == 1
        part = rebuilt(ran)
        assert (part["runs"], part["records"]) == (1, 15)
        [difference] = part["altered"] if isinstance(part["altered"], list) else []
        assert isinstance(difference, dict)
        assert difference["run_id"] == log.run_id
        assert (difference["column"], difference["found"]) == (column, shown)
        if column not in told:
            assert difference["wanted"] == wanted
        line = f"{log.run_id}: header_differs: {column} is {shown}, the log makes it "
        assert line in ran.out.replace("\\", "")


def test_r_1_doctor_finds_nothing_in_headers_as_they_were_written(tmp_path: Path) -> None:
    """Of Runs in every state; --rebuild adds what it looked at, and no problem."""
    logs = (killed(), asking(first_id=2000), busy(first_id=3000), waiting(first_id=4000))
    url = stored(tmp_path, *logs)
    plain = psych("doctor", "--store", url, "--json").json()
    ran = psych("doctor", "--rebuild", "--store", url, "--json")
    full = ran.json()

    assert isinstance(plain, dict)
    assert isinstance(full, dict)
    records = sum(len(log.rows) for log in logs)
    assert plain["rebuilt"] is None
    assert full["rebuilt"] == {"runs": 4, "records": records, "altered": [], "unsound": []}
    assert full["problems"] == plain["problems"]


def test_r_1_doctor_of_healthy_headers_is_0(tmp_path: Path) -> None:
    """As text, too."""
    url = stored(tmp_path, killed())
    ran = psych("doctor", "--rebuild", "--store", url)
    assert ran.code == 0
    assert "rebuilt  1 header from 15 records\n" in ran.out
    assert ran.out.endswith("all is well\n")
    assert ran.err == ""


@pytest.mark.parametrize("column", sorted(ASIDE))
def test_r_1_doctor_leaves_what_other_runs_decide(tmp_path: Path, column: str) -> None:
    """The log of this one cannot tell."""
    url = stored(tmp_path, killed())
    alter(tmp_path, column, ASIDE[column])
    assert psych("doctor", "--rebuild", "--store", url).code == 0


def test_r_1_doctor_finds_a_header_without_a_log(tmp_path: Path) -> None:
    """Its id is another one: the log that it counts is not there."""
    url = stored(tmp_path, killed())
    alter(tmp_path, "run_id", OTHER)
    ran = psych("doctor", "--rebuild", "--store", url, "--json")
    assert ran.code == 1
    altered = [{"run_id": OTHER, "column": "head", "found": "15", "wanted": "0"}]
    assert rebuilt(ran) == {"runs": 1, "records": 0, "altered": altered, "unsound": []}


def test_log_3_doctor_finds_logs_that_are_not_what_was_written(tmp_path: Path) -> None:
    """Of settled Runs, too, which nobody else looks at; each Run once."""
    sound, broken, open_ = killed(), killed(first_id=2000), waiting(first_id=3000)
    url = stored(tmp_path, sound, broken, open_)
    unreadable(url, open_, "no record")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("DELETE FROM record WHERE run_id = ? AND seq = 4", (broken.run_id,))
    assert psych("doctor", "--store", url, "--json").json() != {}
    ran = psych("doctor", "--rebuild", "--store", url, "--json")
    found = ran.json()

    assert ran.code == 1
    assert isinstance(found, dict)
    assert found["problems"] == [
        "1 run needs a worker and none is alive: start one",
        f"{open_.run_id}: unreadable at seq 2: its body is no record of any build",
        f"{broken.run_id}: seq_not_next at seq 5: records before it are missing",
    ]
    assert rebuilt(ran)["unsound"] == [open_.run_id, broken.run_id]
    assert rebuilt(ran)["altered"] == []


def test_log_3_doctor_finds_a_run_that_is_called_corrupt_and_is_not(tmp_path: Path) -> None:
    """Once: not also as a corrupt one."""
    log = waiting()
    url = stored(tmp_path, log)

    async def mark(store: Store) -> None:
        change = Change(log.run_id, 1, None, (), HeaderChange(state="corrupt"))
        await store.commit([Unit("com_x", "local", (change,))])

    do(url, mark)
    ran = psych("doctor", "--rebuild", "--store", url)
    assert ran.code == 1
    lines = [line for line in ran.out.splitlines() if line.startswith("problem")]
    words = "the header calls the log corrupt, and nothing is wrong with it"
    assert lines == [f"problem  {log.run_id}: marked_corrupt: {words}"]


def test_cli_1_doctor_rebuilds_every_run_of_the_tenant_and_no_other(tmp_path: Path) -> None:
    """More than a page of them; a column of the oldest is found."""
    logs = [waiting(first_id=1 + number * 100) for number in range(503)]
    url = stored(tmp_path, killed(tenant="globex", first_id=90_000))

    async def admit(store: Store) -> None:
        await store.commit([unit for log in logs for unit in log.units()])

    do(url, admit)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE run SET crashes = 5 WHERE tenant = 'globex'")
        connection.execute("UPDATE run SET crashes = 5 WHERE run_id = ?", (logs[0].run_id,))
    part = rebuilt(psych("doctor", "--rebuild", "--store", url, "--json"))
    assert (part["runs"], part["records"]) == (503, 503)
    assert part["altered"] == [
        {"run_id": logs[0].run_id, "column": "crashes", "found": "5", "wanted": "0"}
    ]


def test_cli_1_doctor_rebuild_of_no_store_says_so(tmp_path: Path) -> None:
    """A problem like any other in words; nothing was rebuilt, which the exit code says."""
    ran = psych("doctor", "--rebuild", "--store", f"sqlite:///{tmp_path / 'none.db'}", "--json")
    found = ran.json()
    assert ran.code == 2
    assert isinstance(found, dict)
    assert found["rebuilt"] is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "value"), [("head_at", "x"), ("open", "["), ("state", "asleep"), ("epoch", -1)]
)
@pytest.mark.parametrize("command", [("doctor", "--rebuild"), ("verify",), ("runs",)])
def test_r_1_a_column_that_no_build_writes_is_a_typed_error(
    tmp_path: Path, command: tuple[str, ...], column: str, value: object
) -> None:
    """It names the run and what is wrong; nothing is a traceback."""
    log = killed()
    url = stored(tmp_path, log)
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f'UPDATE run SET "{column}" = ?', (value,))
    ran = psych(*command, "--store", url)
    assert ran.code == 1
    said = ran.out + ran.err
    assert log.run_id in said
    assert "cannot be read" in said
    assert "Traceback" not in said


def break_row(folder: Path, statement: str, *values: object) -> None:
    """Write into one row what the tables would not take."""
    with closing(sqlite3.connect(folder / "runs.db")) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(statement, values).rowcount == 1


def enlist(url: str) -> None:
    """Let a worker be alive for an hour."""

    async def write(store: Store) -> None:
        await store.enlist("wrk_" + "9" * 26, lease_seconds=3600.0, build="1", tools=())

    do(url, write)


@pytest.mark.parametrize("flags", [(), ("--rebuild",)])
def test_r_1_doctor_goes_on_behind_a_header_that_cannot_be_read(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Workers and the other Runs are there; the broken one is named once."""
    logs = [killed(first_id=1 + number * 1000) for number in range(3)]
    url = stored(tmp_path, *logs)
    enlist(url)
    break_row(tmp_path, "UPDATE run SET state = 'asleep' WHERE run_id = ?", logs[1].run_id)
    ran = psych("doctor", *flags, "--store", url)
    assert (ran.code, ran.err) == (1, "")
    assert "workers  1\n" in ran.out
    assert "runs     2 settled\n" in ran.out
    [line] = [line for line in ran.out.splitlines() if line.startswith("problem")]
    assert f"the row {logs[1].run_id} of table run cannot be read" in line


def test_r_1_doctor_rebuild_names_a_run_whose_header_cannot_be_read(tmp_path: Path) -> None:
    """Its log is read, and it is not sound."""
    log, other = killed(), killed(first_id=2000)
    url = stored(tmp_path, log, other)
    break_row(tmp_path, "UPDATE run SET epoch = -1 WHERE run_id = ?", log.run_id)
    part = rebuilt(psych("doctor", "--rebuild", "--store", url, "--json"))
    assert part == {"runs": 2, "records": 30, "altered": [], "unsound": [log.run_id]}


@pytest.mark.parametrize("column", ["lease_until", "tools"])
@pytest.mark.parametrize("flags", [(), ("--rebuild",)])
def test_r_5_doctor_goes_on_behind_a_worker_that_cannot_be_read(
    tmp_path: Path, flags: tuple[str, ...], column: str
) -> None:
    """It is a problem, said once; nobody says that no worker is alive."""
    url = stored(tmp_path, killed(), waiting())
    enlist(url)
    break_row(tmp_path, f"UPDATE worker SET {column} = 'junk'")
    ran = psych("doctor", *flags, "--store", url)
    assert (ran.code, ran.err) == (1, "")
    assert "runs     1 ready, 1 settled\n" in ran.out
    [line] = [line for line in ran.out.splitlines() if line.startswith("problem")]
    assert f"the row wrk_{'9' * 26} of table worker cannot be read" in line


def test_log_6_doctor_rebuild_finds_a_document_that_is_gone(tmp_path: Path) -> None:
    """As `psych verify` does."""
    log = killed()
    url = stored(tmp_path, log)
    break_row(tmp_path, "DELETE FROM document WHERE hash = ?", sha256("system prompt"))
    ran = psych("doctor", "--rebuild", "--store", url, "--json")
    assert ran.code == 1
    assert rebuilt(ran)["unsound"] == [log.run_id]
    assert "document_missing at seq 4" in ran.out
