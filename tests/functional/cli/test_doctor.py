"""`psych doctor` says what keeps Runs from going on, and exits with 1 when something does."""

import sqlite3
from pathlib import Path

from psych_runtime.core.canonical import canonical_text, spec_hash
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.testing import CountingSystem, LogBuilder
from psych_schema.spec import AgentSpec, CodeTool, ModelRef
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import Ran
from tests.functional.cli.stored import do, killed, stored, waiting

SPEC = AgentSpec(
    name="biller",
    instructions="Bill.",
    model=ModelRef(model="any"),
    tools=(CodeTool(name="charge"),),
)


def enlist(url: str, *tools: str, lease_seconds: float = 3600.0) -> None:
    """Let a worker be alive for an hour."""

    async def write(store: Store) -> None:
        await store.enlist(
            "wrk_00000000000000000000000009", lease_seconds=lease_seconds, build="1", tools=tools
        )

    do(url, write)


def problems(ran: Ran) -> list[object]:
    found = ran.json()
    assert isinstance(found, dict)
    named = found["problems"]
    assert isinstance(named, list)
    return list(named)


def test_cli_1_doctor_of_a_healthy_store_is_0(tmp_path: Path) -> None:
    """Settled Runs need nobody."""
    url = stored(tmp_path, killed())
    ran = psych("doctor", "--store", url)

    assert ran.code == 0
    assert "journal mode wal" in ran.out
    assert "1 settled" in ran.out
    assert ran.out.endswith("all is well\n")


def test_cli_1_doctor_as_json(tmp_path: Path) -> None:
    """Facts, workers, Runs by state, problems."""
    url = stored(tmp_path, killed(), waiting())
    enlist(url, "code:look")
    ran = psych("doctor", "--json", PSYCH_STORE=url)
    found = ran.json()

    assert ran.code == 0
    assert isinstance(found, dict)
    assert found["store"] == url
    assert found["facts"] == {"sqlite_version": sqlite3.sqlite_version, "journal_mode": "wal"}
    assert found["runs"] == {"ready": 1, "running": 0, "suspended": 0, "settled": 1, "corrupt": 0}
    assert found["problems"] == []
    [worker] = found["workers"] if isinstance(found["workers"], list) else []
    assert isinstance(worker, dict)
    assert (worker["alive"], worker["tools"]) == (True, ["code:look"])


def test_cli_1_doctor_finds_runs_that_nobody_can_take(tmp_path: Path) -> None:
    """A Run waits, and no worker lives."""
    url = stored(tmp_path, waiting())
    ran = psych("doctor", "--store", url)

    assert ran.code == 1
    assert "problem  1 run needs a worker and none is alive: start one" in ran.out


def test_cli_1_doctor_does_not_count_a_worker_whose_lease_is_over(tmp_path: Path) -> None:
    """Its row is there until a live worker buries it."""
    url = stored(tmp_path, waiting())
    enlist(url, lease_seconds=0.001)
    ran = psych("doctor", "--store", url, "--json")

    assert ran.code == 1
    assert problems(ran) == ["1 run needs a worker and none is alive: start one"]


def test_pub_3_doctor_finds_runs_whose_tool_no_live_worker_has(tmp_path: Path) -> None:
    """As their status says."""
    log = LogBuilder(tenant="local", system=CountingSystem())
    log.admit("hi", version=spec_hash(SPEC))
    url = stored(tmp_path, log)

    async def publish(store: Store) -> None:
        await store.put_version("local", spec_hash(SPEC), canonical_text(SPEC))

    do(url, publish)
    enlist(url, "code:look")
    ran = psych("doctor", "--store", url, "--json")

    assert ran.code == 1
    assert problems(ran) == [f"{log.run_id} is blocked: no live worker has tool charge"]


def test_log_3_doctor_finds_corrupt_runs(tmp_path: Path) -> None:
    """They are left as they are, and named."""
    log = waiting()
    url = stored(tmp_path, log)

    async def mark(store: Store) -> None:
        change = Change(log.run_id, 1, None, (), HeaderChange(state="corrupt"))
        await store.commit([Unit("com_x", "local", (change,))])

    do(url, mark)
    ran = psych("doctor", "--store", url)

    assert ran.code == 1
    assert f"problem  {log.run_id} is failed: marked_corrupt at seq 1;" in ran.out
    assert "1 corrupt" in ran.out


def test_cli_1_doctor_finds_a_store_that_was_not_migrated(tmp_path: Path) -> None:
    """In JSON, too: the problem is a problem, not an error of the command."""
    (tmp_path / "runs.db").touch()
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    ran = psych("doctor", "--store", url, "--json")
    found = ran.json()

    assert ran.code == 1
    assert isinstance(found, dict)
    assert found["runs"] is None
    [problem] = problems(ran)
    assert "migrate" in str(problem)


def test_cli_1_doctor_finds_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Whatever it is, it stays as it is."""
    file = tmp_path / "runs.db"
    file.write_bytes(b"not a database, but a letter " * 100)
    ran = psych("doctor", "--store", f"sqlite:///{file}")

    assert ran.code == 1
    assert "problem" in ran.out
    assert file.read_bytes() == b"not a database, but a letter " * 100


def test_st_3_doctor_finds_a_url_that_names_no_store(tmp_path: Path) -> None:
    """A scheme of a later build, and a file that is not there."""
    for url in ("cassandra://db", f"sqlite:///{tmp_path / 'none.db'}"):
        ran = psych("doctor", "--store", url)
        assert ran.code == 1
        assert "problem" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_sec_2_doctor_does_not_print_a_password() -> None:
    """Neither as text nor as JSON."""
    url = "postgresql://psych:hunter2@127.0.0.1:1/runs"
    for arguments in ([], ["--json"]):
        ran = psych("doctor", "--store", url, *arguments)
        assert ran.code == 1
        assert "hunter2" not in ran.out + ran.err
        assert "psych:***@127.0.0.1:1" in ran.out


def test_cli_1_doctor_finds_another_journal_mode(tmp_path: Path) -> None:
    """Readers and the writer block each other without WAL."""
    url = stored(tmp_path, killed())
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    ran = psych("doctor", "--store", url)

    assert ran.code == 1
    assert "problem  journal mode is delete, not wal" in ran.out
