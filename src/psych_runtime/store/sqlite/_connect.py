"""How a database file is opened: WAL, synchronous FULL, and never by surprise (ST-3)."""

import sqlite3
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from psych_runtime.errors import UnsupportedStore
from psych_runtime.store.sqlite._failures import translate

__all__ = ["LOCK_SLICE_SECONDS", "SqliteOptions", "connect"]

LOCK_SLICE_SECONDS: Final = 0.1
"""How long the writer waits for a lock at a time, before it looks who else has come."""

_OLDEST: Final = (3, 37)
_CACHED_STATEMENTS: Final = 128


class SqliteOptions(NamedTuple):
    """Which file, and how; the options that a URL may carry."""

    path: str
    prefix: str = ""
    mode: Literal["rwc", "rw", "ro"] = "rwc"
    busy_timeout_seconds: float = 2.0
    max_page_count: int | None = None


def connect(options: SqliteOptions, *, writes: bool) -> sqlite3.Connection:
    """Open a connection for the calling thread. UnsupportedStore, StoreUnavailable."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnsupportedStore(
            problem=f"SQLite {sqlite3.sqlite_version} is too old",
            remedy="use a Python with SQLite 3.37 or newer",
        )
    _check_path(options)
    try:
        connection = sqlite3.connect(
            f"file:{quote(options.path)}?mode={options.mode}",
            uri=True,
            isolation_level=None,
            timeout=LOCK_SLICE_SECONDS if writes else options.busy_timeout_seconds,
            cached_statements=_CACHED_STATEMENTS,
        )
        try:
            _configure(connection, options, writes=writes)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise translate(error, options.path) from error
    return connection


def _check_path(options: SqliteOptions) -> None:
    path = Path(options.path)
    if path.is_dir():
        raise UnsupportedStore(problem=f"{path} is a directory", remedy="name a file in it")
    if not path.parent.is_dir():
        raise UnsupportedStore(problem=f"no directory {path.parent}", remedy="create it first")
    if options.mode != "rwc" and not path.exists():
        raise UnsupportedStore(
            problem=f"no file {path}", remedy="check the path, or open it without mode="
        )


def _configure(connection: sqlite3.Connection, options: SqliteOptions, *, writes: bool) -> None:
    if writes and options.mode != "ro":
        connection.execute(f"PRAGMA busy_timeout = {int(options.busy_timeout_seconds * 1000)}")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {int(LOCK_SLICE_SECONDS * 1000)}")
        connection.execute("PRAGMA synchronous = FULL")
        if options.max_page_count is not None:
            connection.execute(f"PRAGMA max_page_count = {options.max_page_count}").fetchone()
    else:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
