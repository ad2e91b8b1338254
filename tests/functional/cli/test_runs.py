"""`psych runs` lists the headers of a tenant's Runs (CLI-1, ST-5)."""

from pathlib import Path

import pytest

from psych_runtime.ports.store import Store
from psych_schema.record import ThreadRef
from psych_schema.view import RunLine, RunsView
from tests.functional.cli import runner
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import Ran
from tests.functional.cli.stored import asking, do, killed, stored, waiting


def lines(ran: Ran) -> tuple[RunLine, ...]:
    return RunsView.model_validate_json(ran.out).runs


def test_cli_1_runs_are_listed_with_their_state(tmp_path: Path) -> None:
    """One line each; numbers and ids whole, however narrow the terminal."""
    done, ready = killed(), waiting()
    ran = psych("runs", "--store", stored(tmp_path, done, ready), COLUMNS="20")

    head, *rest = ran.out.splitlines()
    assert ran.code == 0
    assert head.split()[:2] == ["RUN", "STATE"]
    assert {tuple(line.split()[:3]) for line in rest} == {
        (done.run_id, "settled", str(len(done.rows))),
        (ready.run_id, "ready", "1"),
    }


def test_cli_1_runs_as_json_are_the_headers(tmp_path: Path) -> None:
    """Each says what the store keeps of its Run, but for what only stores need."""
    log = asking()
    ran = psych("runs", "--json", PSYCH_STORE=stored(tmp_path, log))

    [line] = lines(ran)
    header = log.header.model_dump()
    for kept in ("schema_version", "referenced", "open", "capped"):
        header.pop(kept)
    place = ThreadRef(id=header.pop("thread"), position=1, previous=header.pop("previous"))
    assert header.pop("position") == 1
    assert line.thread == place
    assert line.model_dump(exclude={"thread"}) == header
    assert (line.state, line.head) == ("suspended", len(log.rows))


def test_cli_1_reading_commands_work_as_processes(tmp_path: Path) -> None:
    """The same answers as inside this one, and no colours, warnings or threads left behind."""
    log = killed()
    url = stored(tmp_path, log)

    for arguments in (["runs", "--json"], ["log", log.run_id], ["report", log.run_id], ["doctor"]):
        assert runner.psych(*arguments, PSYCH_STORE=url) == psych(*arguments, PSYCH_STORE=url)


def test_st_5_runs_of_one_state(tmp_path: Path) -> None:
    """The filter is the store's."""
    ready = waiting()
    url = stored(tmp_path, killed(), ready)

    found = lines(psych("runs", "--store", url, "--state", "ready", "--json"))

    assert [line.run_id for line in found] == [ready.run_id]


def test_st_5_runs_come_in_pages(tmp_path: Path) -> None:
    """People read on standard error how to go on; a program finds it in the document."""
    url = stored(tmp_path, killed(), waiting())
    first = psych("runs", "--store", url, "--limit", "1", "--json")
    cursor = RunsView.model_validate_json(first.out).cursor
    assert cursor is not None
    second = psych("runs", "--store", url, "--limit", "1", "--json", "--cursor", cursor)

    assert RunsView.model_validate_json(second.out).cursor is None
    assert len({line.run_id for line in lines(first) + lines(second)}) == 2
    assert first.err + second.err == ""
    text = psych("runs", "--store", url, "--limit", "1")
    assert text.err == f"there are more: --cursor {cursor}\n"


def test_sec_4_runs_of_another_tenant_are_not_listed(tmp_path: Path) -> None:
    """Each tenant has its own."""
    url = stored(tmp_path, killed(tenant="acme"))

    assert psych("runs", "--store", url).out == "no runs of tenant 'local'\n"
    assert psych("runs", "--store", url, "--json").json() == {"runs": [], "cursor": None}
    assert "settled" in psych("runs", "--store", url, "--tenant", "acme").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("runs", "--store", "memory://", "--state", "sleeping"),
        ("runs", "--store", "memory://", "--limit", "0"),
        ("runs", "--store", "memory://", "--tenant", ""),
        ("runs", "--store", "memory://", "--tenant", "\udcff"),
    ],
)
def test_cli_1_wrong_usage_of_runs_is_2(arguments: tuple[str, ...]) -> None:
    """No store, a state that is none, no lines, no tenant."""
    ran = psych(*arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert "Usage" in ran.err


def test_cli_1_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Reading creates no file."""
    ran = psych("runs", "--store", f"sqlite:///{tmp_path / 'other.db'}")

    assert ran.code == 1
    assert ran.err == (
        f"error: no file {tmp_path / 'other.db'}; check --store; migrate() creates it\n"
        "code: unsupported_store\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_cli_1_a_store_that_was_not_migrated_says_what_to_run(tmp_path: Path) -> None:
    """Nothing migrates by itself (ST-4)."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    (tmp_path / "runs.db").touch()

    ran = psych("runs", "--store", url)

    assert ran.code == 1
    assert "code: schema_missing" in ran.err
    assert "migrate" in ran.err


@pytest.mark.parametrize("command", ["runs", "doctor"])
def test_ref_1_reading_commands_write_nothing(tmp_path: Path, command: str) -> None:
    """Headers, rows and workers are as they were."""
    log = waiting()
    url = stored(tmp_path, log)
    seen: list[object] = []

    async def see(store: Store) -> None:
        header = await store.header("local", log.run_id)
        rows = await store.read("local", log.run_id)
        seen.append((header, rows, await store.workers()))

    do(url, see)
    psych(command, "--store", url)
    do(url, see)

    assert seen[0] == seen[1]
