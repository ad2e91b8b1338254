"""`psych migrate` and `psych ddl`: tables are made when they are asked for (ST-4)."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from psych_runtime.store.contract._build import TENANT, admission, admit, unit, write
from psych_runtime.store.open import open_store
from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process
from tests.stores.dynamo import dynamo_place
from tests.stores.kinds import SQL_SERVERS, tables_of


def test_st_4_migrate_makes_the_tables_and_may_be_repeated(tmp_path: Path) -> None:
    """The file is made, too."""
    url = f"sqlite:///{tmp_path}/runs.db"
    for _ in range(2):
        ran = psych_process("migrate", "--store", url)
        assert ran.code == 0
        assert ran.out == f"{url} has this build's tables\n"
    assert psych_process("runs", "--store", url).code == 0


async def admitted(url: str, prefix: str) -> str:
    """Admit a Run; return its id."""
    async with open_store(url, prefix=prefix) as store:
        return await admission(store)


@pytest.mark.parametrize("kind", [*SQL_SERVERS, "dynamodb"])
def test_st_4_migrate_makes_the_tables_of_every_server(kind: str) -> None:
    """Runs are listed behind it, and not before: nothing else makes tables."""
    if kind == "dynamodb":
        url, prefix = dynamo_place()
    else:
        tables = tables_of(kind)
        asyncio.run(tables.empty())  # the database is there
        asyncio.run(tables.drop())
        url, prefix = tables.url, tables.prefix
    place = ("--store", url, "--prefix", prefix)

    early = psych("runs", *place)
    assert (early.code, early.out) == (1, "")
    assert "psych migrate" in early.err
    for _ in range(2):
        assert psych("migrate", *place) == (0, f"{url} has this build's tables\n", "")
    none = psych("runs", *place, "--tenant", TENANT)
    assert none == (0, f"no runs of tenant {TENANT!r}\n", "")
    run_id = asyncio.run(admitted(url, prefix))
    listed = psych("runs", *place, "--tenant", TENANT, "--json")
    assert (listed.code, listed.err) == (0, "")
    assert [line["run_id"] for line in json.loads(listed.out)["runs"]] == [run_id]


def test_st_4_migrate_shows_no_password() -> None:
    """Not when nobody answers either."""
    ran = psych("migrate", "--store", "postgresql://me:s3cret@127.0.0.1:1/db")
    assert ran.code == 1
    assert "s3cret" not in ran.out + ran.err
    assert "127.0.0.1:1/db" in ran.err


async def test_st_4_ddl_is_what_a_migration_makes(tmp_path: Path) -> None:
    """Applied by hand, the store takes the tables for its own."""
    ran = psych_process("ddl", "--dialect", "sqlite", "--prefix", "p_")
    connection = sqlite3.connect(tmp_path / "runs.db")
    connection.executescript(ran.out)
    connection.close()
    async with open_store(f"sqlite:///{tmp_path}/runs.db", prefix="p_") as store:
        await write(store, unit(admit()))
        await store.migrate()
        assert len((await store.list_runs(TENANT)).headers) == 1


@pytest.mark.parametrize("dialect", ["postgresql", "mysql", "mariadb"])
def test_st_4_ddl_has_the_prefix_before_every_table(dialect: str) -> None:
    """And no placeholder is left."""
    ran = psych("ddl", "--dialect", dialect, "--prefix", "acme_")
    assert ran.code == 0
    assert 'CREATE TABLE IF NOT EXISTS "acme_psych_migration"' in ran.out
    assert ran.out.count('"acme_run"') >= 1
    assert '"run"' not in ran.out
    assert "{" not in ran.out


def test_st_4_ddl_of_dynamodb_is_one_request_for_each_table() -> None:
    """For infrastructure code."""
    requests = json.loads(psych("ddl", "--dynamodb", "--prefix", "acme_").out)
    names = [request["CreateTable"]["TableName"] for request in requests]
    assert names == ["acme_run", "acme_log", "acme_item"]


def test_st_4_ddl_refuses_what_is_no_prefix() -> None:
    """It says what one is."""
    ran = psych("ddl", "--prefix", "No-Name")
    assert ran.code == 1
    assert "lower-case letters" in ran.err
