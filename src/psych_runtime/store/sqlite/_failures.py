"""What SQLite's errors mean here, in one place; whatever is not named is a bug and passes."""

import sqlite3
from typing import Final

from psych_runtime.errors import (
    SchemaMissing,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
)
from psych_runtime.store._storable import not_unicode

__all__ = ["is_busy", "translate"]

_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_AWAY: Final = (
    *_BUSY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_PROTOCOL,
)
_MISSING: Final = ("no such table", "no such column")


def _primary(error: BaseException) -> int:
    code: object = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1


def is_busy(error: BaseException) -> bool:
    """Tell whether another connection holds the lock."""
    return isinstance(error, sqlite3.Error) and _primary(error) in _BUSY


def translate(error: Exception, path: str) -> Exception:
    """Return what the port says for `error`, or `error` itself."""
    if isinstance(error, UnicodeEncodeError):
        return not_unicode(error)
    if not isinstance(error, sqlite3.Error):
        return error
    code = _primary(error)
    problem = f"{path}: {error}"
    if code in _AWAY:
        return StoreUnavailable(problem=problem)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(problem=problem)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreReadOnly(problem=problem)
    if code == sqlite3.SQLITE_NOTADB:
        return UnsupportedStore(problem=problem, remedy="name a SQLite file, or one that is new")
    if code == sqlite3.SQLITE_CORRUPT:
        return UnsupportedStore(problem=problem, remedy="restore the file from a backup")
    if code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING):
        return SchemaMissing(problem=problem)
    return error
