"""Rows of many Runs in few statements, as SQLite executes them."""

import sqlite3
from collections.abc import Iterator

import pytest

from psych_runtime.store.sqlite._many import inserting, updating

type Row = dict[str, str | int | float | None]

INSERT = 'INSERT INTO "p_run" (run_id, "limit", head) VALUES (:run_id, :limit, :head)'
UPDATE = 'UPDATE "p_run" SET head=:head, "limit"=:limit WHERE "p_run".run_id = :run_id'


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.execute('CREATE TABLE "p_run" (run_id TEXT PRIMARY KEY, "limit" INT, head INT) STRICT')
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 3, 4, 15, 16, 63, 64, 65, 127, 200])
def test_as_many_rows_as_there_are(connection: sqlite3.Connection, count: int) -> None:
    """Each once, in order, whatever sizes of statements they are cut into."""
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    rows: list[Row] = [{"run_id": f"{n:03}", "limit": n, "head": -n} for n in range(count)]
    assert inserting(INSERT).execute(connection, rows) == count
    assert len(asked) <= count // 64 + 9
    found = connection.execute('SELECT run_id, "limit", head FROM "p_run" ORDER BY rowid')
    assert found.fetchall() == [(f"{n:03}", n, -n) for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 5, 70])
def test_each_row_changes_its_own_run(connection: sqlite3.Connection, count: int) -> None:
    """And no other; those that are not there are not counted."""
    rows: list[Row] = [{"run_id": f"{n:03}", "limit": 0, "head": 0} for n in range(100)]
    inserting(INSERT).execute(connection, rows)
    changes: list[Row] = [
        {"run_id": f"{n:03}", "limit": n, "head": n + 1, "more": 7} for n in range(count)
    ]
    lost: list[Row] = [{"run_id": "gone", "limit": 1, "head": 1}]
    assert updating(UPDATE).execute(connection, changes + lost) == count
    found = connection.execute('SELECT "limit", head FROM "p_run" ORDER BY run_id').fetchall()
    assert found == [(n, n + 1) for n in range(count)] + [(0, 0)] * (100 - count)


@pytest.mark.parametrize("text", ["", "SELECT 1", "DELETE FROM t"])
def test_what_is_no_such_statement_is_a_bug(text: str) -> None:
    """Nothing is guessed."""
    for read in (inserting, updating):
        with pytest.raises(ValueError, match="no "):
            read(text)
