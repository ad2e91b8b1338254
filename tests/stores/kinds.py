"""Which stores there are to test on, by name; the server of one is started when it is asked for."""

from functools import cache
from typing import Final

from tests.services import Servers, servers
from tests.stores.tables import MysqlTables, PostgresqlTables, SqlTables, own_prefix

__all__ = ["EVERY_STORE", "EVERY_WAY", "SQL_SERVERS", "drop_all", "tables_of"]

SQL_SERVERS: Final = ("postgresql", "postgresql_new", "pooled", "mysql", "mariadb")
"""PostgreSQL in two versions, the first also through a transaction pooler, MySQL and MariaDB."""

EVERY_STORE: Final = ("memory", "sqlite", "postgresql", "mysql", "mariadb", "dynamodb")

EVERY_WAY: Final = (*EVERY_STORE, "pooled")
"""Each store, PostgreSQL through a transaction pooler, too."""

_DATABASE: Final = "psych_test"
_USED: Final[set[str]] = set()


@cache
def _servers() -> Servers:
    return servers()


@cache
def tables_of(kind: str) -> SqlTables:
    """Return this process's tables on a server."""
    found, prefix = _servers(), own_prefix()
    _USED.add(kind)
    match kind:
        case "postgresql":
            return PostgresqlTables(found.postgres.url, found.postgres.url, prefix)
        case "postgresql_new":
            return PostgresqlTables(found.postgres_new.url, found.postgres_new.url, prefix)
        case "pooled":
            url = f"{found.pgbouncer.url}?pooler=transaction"
            return PostgresqlTables(url, found.postgres.url, f"p{prefix}")
        case "mysql":
            return MysqlTables(found.mysql.url, _DATABASE, prefix)
        case "mariadb":
            return MysqlTables(found.mariadb.url, _DATABASE, prefix)
        case _:
            raise ValueError(f"no server is called {kind}")


async def drop_all() -> None:
    """Remove the tables of this process from every server that it used."""
    for kind in SQL_SERVERS:
        if kind in _USED:
            await tables_of(kind).drop()
