"""Migrations give exactly the generated tables, on a real database (ST-4)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, create_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, CreateTable

from psych_runtime.errors import SchemaMissing
from psych_runtime.store.contract._build import admit
from psych_runtime.store.migrations import LEDGER, shipped, statements
from psych_runtime.store.open import open_store
from psych_runtime.store.sqlite._rows import header_values
from psych_schema.tables import metadata
from tests.functional.store.processes import url_of


def _engine(path: Path) -> Engine:
    return create_engine(f"sqlite:///{path}", poolclass=NullPool)


def _tables(prefix: str) -> MetaData:
    """Return the generated tables with the indexes that SQLite has."""
    tables = metadata(prefix)
    for table in tables.tables.values():
        for index in tuple(table.indexes):
            if "sqlite" not in index.info.get("dialects", ("sqlite",)):
                table.indexes.discard(index)
    return tables


def _definitions(path: Path, prefix: str) -> dict[str, str]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    names: dict[str, str] = dict(found.fetchall())
    connection.close()
    names.pop(prefix + LEDGER, None)
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in names.items()}


@pytest.mark.parametrize("prefix", ["", "psych_"])
async def test_st_4_migrated_tables_are_the_generated_ones(tmp_path: Path, prefix: str) -> None:
    """Tables, columns, keys and indexes by alembic; checks and STRICT by their text."""
    migrated, created = tmp_path / "migrated.db", tmp_path / "created.db"
    async with open_store(url_of(migrated), prefix=prefix) as store:
        await store.migrate()
    tables = _tables(prefix)
    engine = _engine(migrated)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_name": lambda name, kind, parents: name != prefix + LEDGER,
            },
        )
        assert compare_metadata(context, tables) == []
    with _engine(created).begin() as connection:
        for table in tables.sorted_tables:
            connection.execute(CreateTable(table))
            for index in table.indexes:
                connection.execute(CreateIndex(index))
    found = _definitions(migrated, prefix)
    assert found == _definitions(created, prefix)
    checked = {name for name, sql in found.items() if "CHECK" in sql}
    assert checked == {f"{prefix}run", f"{prefix}document"}
    assert all("STRICT" in sql for sql in found.values() if sql.startswith("CREATE TABLE"))


async def test_st_4_the_ledger_says_what_was_applied(tmp_path: Path) -> None:
    """Number, name, hash and when; a second migrate adds nothing."""
    path = tmp_path / "runs.db"
    async with open_store(url_of(path)) as store:
        await store.migrate()
        await store.migrate()
    connection = sqlite3.connect(path)
    rows = connection.execute(f"SELECT * FROM {LEDGER}").fetchall()
    connection.close()
    initial, capped = shipped("sqlite")
    assert [row[:3] for row in rows] == [
        (1, "initial", initial.sha256),
        (2, "capped", capped.sha256),
    ]
    assert len(rows[0][3]) == 27


def _at_0001(path: Path, prefix: str) -> list[str]:
    """Make a file as the first build did, with two Runs; return their ids."""
    [initial, *_] = shipped("sqlite")
    rows = [admit(columns={"priority": 9}).header, admit(columns={"referenced": True}).header]
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements(initial.text, prefix):
            connection.execute(statement)
        ledger = f'"{prefix}{LEDGER}"'
        connection.execute(
            f"CREATE TABLE {ledger} (number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, "
            "sha256 TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT"
        )
        connection.execute(f"INSERT INTO {ledger} VALUES (1, 'initial', ?, '')", (initial.sha256,))
        for row in rows:
            values = header_values(row)
            del values["capped"]
            names = ", ".join(f'"{name}"' for name in values)
            marks = ", ".join("?" * len(values))
            connection.execute(
                f'INSERT INTO "{prefix}run" ({names}) VALUES ({marks})', list(values.values())
            )
    return [row.run_id for row in rows]


@pytest.mark.parametrize("prefix", ["", "psych_"])
async def test_st_4_a_file_of_the_first_build_keeps_its_runs(tmp_path: Path, prefix: str) -> None:
    """Each column as it was, no Run capped; the tables are those of a new file."""
    path, new = tmp_path / "runs.db", tmp_path / "new.db"
    one, two = _at_0001(path, prefix)
    async with open_store(url_of(new), prefix=prefix) as store:
        await store.migrate()
    async with open_store(url_of(path), prefix=prefix) as store:
        with pytest.raises(SchemaMissing):
            await store.header("acme", one)
        await store.migrate()
        headers = [await store.header("acme", run_id) for run_id in (one, two)]
        found = await store.ready(9)
    assert [(row.priority, row.referenced, row.capped) for row in headers] == [
        (9, False, False),
        (0, True, False),
    ]
    assert [row.run_id for row in found.headers] == [one, two]
    assert _definitions(path, prefix) == _definitions(new, prefix)


async def test_st_4_opening_creates_no_table(tmp_path: Path) -> None:
    """Nothing migrates by itself."""
    path = tmp_path / "runs.db"
    async with open_store(url_of(path)):
        pass
    assert path.exists()
    assert _definitions(path, "") == {}


async def test_st_4_two_prefixes_share_a_file(tmp_path: Path) -> None:
    """Each has its own ledger and its own Runs."""
    url = url_of(tmp_path / "runs.db")
    async with open_store(url) as one, open_store(url, prefix="b_") as two:
        await one.migrate()
        await two.migrate()
        await one.put_version("acme", "a" * 64, "{}")
        assert await two.version("acme", "a" * 64) is None
    assert {LEDGER, f"b_{LEDGER}"} <= _definitions(tmp_path / "runs.db", "none").keys()
