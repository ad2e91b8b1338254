"""From a URL to a store (ST-3): what it names decides which adapter is loaded."""

import re
from typing import Final

from psych_runtime._system import System
from psych_runtime.core.near import nearest
from psych_runtime.errors import MissingExtra, UnsupportedStore
from psych_runtime.ports.store import Store
from psych_runtime.store._server_url import server_options
from psych_runtime.store._shown_url import shown_url
from psych_runtime.store.memory import MemoryStore

__all__ = ["check_prefix", "open_store"]

_SCHEMES: Final = ("dynamodb", "mariadb", "memory", "mysql", "postgres", "postgresql", "sqlite")
_PREFIX: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}|")
_FORMS: Final = (
    "use memory://, sqlite:///runs.db, sqlite:////var/lib/runs.db, "
    "postgresql://user:password@host/database, mysql://..., mariadb://... or dynamodb://eu-west-1"
)


def open_store(url: str, *, prefix: str = "") -> Store:
    """Return the store that `url` names; enter it with `async with` before anything else.

    Tables are made by `migrate()` alone, here or by `psych migrate`; a SQLite file that does not
    exist is created. A driver that one needs is an extra of the same name.

    Args:
        url: memory://
            sqlite:///relative.db or sqlite:////absolute.db, with the options mode (rwc, rw or
            ro), busy_timeout_seconds and max_page_count.
            postgresql://, mysql:// and mariadb:// with user, password, host, port and database,
            with the options pool_size (8 connections for each handle), timeout_seconds (2.5 for a
            call; less than half of any worker's lease) and pooler=transaction where one stands
            between; what else there is goes to the driver of PostgreSQL, such as sslmode. For
            MySQL and MariaDB tls=verify encrypts.
            dynamodb://region, with the options endpoint_url, patience_seconds and shards.
        prefix: goes before every table's name, so that a database can be shared.

    Raises:
        UnsupportedStore: the URL names nothing that this build can open; it says what can be.
            What is wrong with the database itself is told when the store is entered.
        MissingExtra: the driver is not installed.
    """
    check_prefix(prefix)
    scheme = url.partition("://")[0].partition("+")[0].lower() if "://" in url else ""
    match scheme:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return _open_sqlite(url, prefix)
        case "postgres" | "postgresql":
            return _open_postgresql(url, prefix)
        case "mysql" | "mariadb":
            return _open_mysql(url, prefix)
        case "dynamodb":
            return _open_dynamodb(url, prefix)
        case _:
            raise _refusal(url, scheme)


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that is no name in every database. UnsupportedStore."""
    if not _PREFIX.fullmatch(prefix):
        raise UnsupportedStore(
            problem=f"prefix {prefix!r}",
            remedy="use at most 32 lower-case letters, digits and _, a letter or _ first",
        )


# Adapters are loaded when they are asked for: drivers are extras, and a browser's Python has no
# sqlite3.


def _open_sqlite(url: str, prefix: str) -> Store:
    from psych_runtime.store._sqlite_url import sqlite_options
    from psych_runtime.store.sqlite.store import SqliteStore

    return SqliteStore(sqlite_options(url, prefix, forms=_FORMS))


def _open_postgresql(url: str, prefix: str) -> Store:
    try:
        from psych_runtime.store.sql.postgresql.database import PostgresqlDatabase
    except ModuleNotFoundError:
        raise MissingExtra(feature="a PostgreSQL store", extra="postgresql") from None
    from psych_runtime.store.sql.store import Opened, SqlStore

    options = server_options(url, prefix, scheme="postgresql", port=5432)
    return SqlStore(Opened(options, PostgresqlDatabase, System()))


def _open_mysql(url: str, prefix: str) -> Store:
    try:
        from psych_runtime.store.sql.mysql.database import MysqlDatabase
    except ModuleNotFoundError:
        raise MissingExtra(feature="a MySQL or MariaDB store", extra="mysql") from None
    from psych_runtime.store.sql.store import Opened, SqlStore

    options = server_options(url, prefix, scheme="mysql", port=3306, known=("tls",), named=True)
    return SqlStore(Opened(options, MysqlDatabase, System()))


def _open_dynamodb(url: str, prefix: str) -> Store:
    from psych_runtime.store.dynamodb._url import options_of
    from psych_runtime.store.dynamodb.store import DynamoStore

    return DynamoStore(options_of(url, prefix))


def _refusal(url: str, scheme: str) -> UnsupportedStore:
    if not scheme:
        remedy = f"{_FORMS}; a file is sqlite:///{url}" if url.endswith(".db") else _FORMS
        return UnsupportedStore(problem=f"{shown_url(url)!r} is no store URL", remedy=remedy)
    near = nearest(scheme, _SCHEMES)
    hint = f"did you mean {near}://? " if near else ""
    return UnsupportedStore(problem=f"unknown store {scheme}://", remedy=hint + _FORMS)
