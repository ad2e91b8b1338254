"""What SQLite's errors mean, and which SQLite is too old (ST-3)."""

import sqlite3
from pathlib import Path

import pytest

from psych_runtime.errors import (
    SchemaMissing,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
)
from psych_runtime.store.sqlite._connect import SqliteOptions, connect
from psych_runtime.store.sqlite._failures import is_busy, translate


def _error(code: int, text: str = "text") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (sqlite3.SQLITE_BUSY, "database is locked", StoreUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "database is locked", StoreUnavailable),
        (sqlite3.SQLITE_LOCKED, "database table is locked", StoreUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error", StoreUnavailable),
        (sqlite3.SQLITE_CANTOPEN, "unable to open database file", StoreUnavailable),
        (sqlite3.SQLITE_FULL, "database or disk is full", StoreFull),
        (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", StoreReadOnly),
        (sqlite3.SQLITE_READONLY_DBMOVED, "attempt to write a readonly database", StoreReadOnly),
        (sqlite3.SQLITE_NOTADB, "file is not a database", UnsupportedStore),
        (sqlite3.SQLITE_CORRUPT, "database disk image is malformed", UnsupportedStore),
        (sqlite3.SQLITE_ERROR, "no such table: run", SchemaMissing),
        (sqlite3.SQLITE_ERROR, "no such column: run.new", SchemaMissing),
    ],
)
def test_st_3_each_error_has_a_meaning(code: int, text: str, kind: type[Exception]) -> None:
    """By its code; the path and SQLite's words are in the text."""
    found = translate(_error(code, text), "runs.db")
    assert type(found) is kind
    assert f"runs.db: {text}" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        _error(sqlite3.SQLITE_ERROR, "near x: syntax error"),
        _error(sqlite3.SQLITE_CONSTRAINT),
        sqlite3.ProgrammingError("closed"),
        ValueError("x"),
    ],
)
def test_st_3_a_bug_stays_a_bug(error: Exception) -> None:
    """Nobody should retry it."""
    assert translate(error, "runs.db") is error


def test_st_3_only_a_lock_is_waited_for() -> None:
    """Extended codes count as their primary one."""
    assert is_busy(_error(sqlite3.SQLITE_BUSY))
    assert is_busy(_error(sqlite3.SQLITE_BUSY_RECOVERY))
    assert not is_busy(_error(sqlite3.SQLITE_FULL))
    assert not is_busy(ValueError("x"))


def test_st_3_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """STRICT tables came with 3.37; no file is left behind."""
    options = SqliteOptions(path=str(tmp_path / "runs.db"))
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(UnsupportedStore, match=r"3\.37 or newer"):
        connect(options, writes=True)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 0))
    connect(options, writes=True).close()
