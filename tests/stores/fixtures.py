"""Fixtures that every layer of tests may use: import them into a conftest."""

import pytest

from tests.stores.kinds import tables_of
from tests.stores.tables import SqlTables

__all__ = ["server_tables", "sql_tables"]


@pytest.fixture(scope="session")
def server_tables(request: pytest.FixtureRequest) -> SqlTables:
    """The tables of one server, which this process drops at its end."""
    kind: str = request.param
    return tables_of(kind)


@pytest.fixture
async def sql_tables(server_tables: SqlTables) -> SqlTables:
    """Empty tables on each server in turn."""
    await server_tables.empty()
    return server_tables
