"""Every test here runs on each SQL server, unless it says on which."""

import pytest

from tests.stores.fixtures import server_tables, sql_tables
from tests.stores.kinds import SQL_SERVERS

__all__ = ["server_tables", "sql_tables"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `server_tables` every server, and let the tests of one server stand together."""
    if "server_tables" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("servers")
        kinds = SQL_SERVERS if marker is None else marker.args
        metafunc.parametrize("server_tables", kinds, indirect=True, scope="session")
