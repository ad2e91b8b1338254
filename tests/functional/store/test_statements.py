"""What the SQLite statements are, which indexes they walk, and what a claim costs."""

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from psych_runtime.store._order import NOTHING_EXCLUDED
from psych_runtime.store.contract._build import admit
from psych_runtime.store.migrations import shipped, statements
from psych_runtime.store.sqlite._claims import Claims
from psych_runtime.store.sqlite._compile import rendered
from psych_runtime.store.sqlite._compile import statements as compiled
from psych_runtime.store.sqlite._many import statement_for, updating
from psych_runtime.store.sqlite._rows import header_values
from psych_runtime.store.sqlite._texts import STATEMENTS, Texts, texts
from psych_schema.store import CapRow, KeyRow, RecordRow, RunRow, WorkerRow
from psych_schema.tables import tables

NOW = datetime(2026, 11, 29, 20, tzinfo=UTC)
TEXTS = texts("")
WHOLE_TABLES = {
    "live_workers": "worker",
    "worker_rows": "worker",
    "lapsed_workers": "worker",
    "sweep_workers": "worker",
    "find_cap": "cap",
}
"""Statements that read all rows of a table of which there are few."""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    for migration in shipped("sqlite"):
        for statement in statements(migration.text, ""):
            opened.execute(statement)
    opened.execute(
        "CREATE TABLE psych_migration (number INTEGER PRIMARY KEY, name, sha256, applied_at)"
    )
    yield opened
    opened.close()


def test_st_8_the_shipped_text_is_what_the_tables_give() -> None:
    """After a change of a statement or a table: python -m psych_runtime.store.sqlite._compile."""
    shipped_text = files("psych_runtime.store.sqlite").joinpath(STATEMENTS).read_text("utf-8")
    assert shipped_text == rendered()
    assert tuple(compiled()) == Texts._fields


def test_st_8_a_prefix_is_before_every_table() -> None:
    """No statement reaches a table of another prefix."""
    names = {table.name for table in tables("p_") if table.name != "p_key"}
    for text in texts("p_"):
        quoted = set(re.findall(r'"(\w+)"', text)) - {"key", "limit"}
        assert quoted <= names | {"p_key", "p_psych_migration"}
        assert "{prefix}" not in text


def test_st_8_columns_come_in_the_order_of_the_models() -> None:
    """Rows are read by position."""
    for model, table in (
        (RunRow, tables().run),
        (RecordRow, tables().record),
        (KeyRow, tables().key),
        (WorkerRow, tables().worker),
        (CapRow, tables().cap),
    ):
        assert list(model.model_fields) == [column.name for column in table.c]


def test_r_1_ordinary_commits_set_no_indexed_column() -> None:
    """Moving the head and editing `open` rewrites no index."""
    run = tables().run
    indexed = {
        column.name
        for index in run.indexes
        for column in run.c
        if column.name in str(index.expressions)
    }
    indexed |= {column.name for column in run.primary_key}
    assert {"state", "worker", "deadline_at"} <= indexed
    sets = TEXTS.advance_head.partition(" SET ")[2].partition(" WHERE ")[0]
    assert re.findall(r"(\w+)=", sets)
    assert set(re.findall(r"(\w+)=", sets)) & indexed == set()


@pytest.mark.parametrize("text", [TEXTS.advance_head, TEXTS.change_header])
def test_st_8_many_changes_find_their_runs_by_the_key(
    connection: sqlite3.Connection, text: str
) -> None:
    """Whatever the list of changes is."""
    many = updating(text)
    names = [None] * (4 * len(many.columns))
    statement = f"EXPLAIN QUERY PLAN {statement_for(many, 4)}"
    plan = [row[3] for row in connection.execute(statement, names)]
    assert [step for step in plan if step.startswith("SEARCH run") and "(run_id=?)" in step]
    assert not [step for step in plan if step.startswith("SCAN run")]


@pytest.mark.parametrize("name", Texts._fields)
def test_st_8_no_statement_reads_a_whole_table(connection: sqlite3.Connection, name: str) -> None:
    """Each finds its rows by an index."""
    text: str = getattr(TEXTS, name)
    names = dict.fromkeys(re.findall(r":(\w+)", text), "1")
    plan = connection.execute(f"EXPLAIN QUERY PLAN {text}", names).fetchall()
    scans = [row[3] for row in plan if row[3].startswith("SCAN") and "migration" not in row[3]]
    scans = [scan for scan in scans if "VIRTUAL TABLE" not in scan]  # ids that were given
    sorts = [row[3] for row in plan if "TEMP B-TREE" in row[3]]
    if name in WHOLE_TABLES:
        assert [scan.split(" USING")[0] for scan in scans] == [f"SCAN {WHOLE_TABLES[name]}"]
    else:
        assert scans == []
    assert sorts == []


def _steps(connection: sqlite3.Connection, limit: int) -> int:
    """Return how many instructions SQLite's machine needs to look for work."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(step, 1)
    found = Claims(connection, TEXTS, NOW).ready(limit, "", NOTHING_EXCLUDED)
    Claims(connection, TEXTS, NOW).overdue(limit)
    Claims(connection, TEXTS, NOW).held_by("wrk_1")
    connection.set_progress_handler(None, 1)
    assert len(found.headers) == limit
    return count


def _fill(connection: sqlite3.Connection, count: int, **columns: object) -> None:
    rows = [header_values(admit(columns=columns).header) for _ in range(count)]
    connection.execute("BEGIN")
    connection.executemany(TEXTS.insert_run, rows)
    connection.execute("COMMIT")


def test_r_15_claims_cost_the_same_with_many_settled_runs(connection: sqlite3.Connection) -> None:
    """Nor do Runs that wait for somebody, or a long line of ready ones, make them dearer."""
    _fill(connection, 20)
    few = _steps(connection, 16)
    _fill(connection, 3000, state="settled")
    _fill(connection, 3000, state="settled", priority=9)
    assert _steps(connection, 16) == few
    _fill(connection, 3000)
    assert _steps(connection, 16) == few
