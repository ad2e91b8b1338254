"""The servers that a secret is searched for on."""

import pytest

from tests.stores.fixtures import server_tables, sql_tables

__all__ = ["server_tables", "sql_tables"]

_SERVERS = ("postgresql", "mysql", "mariadb")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `server_tables` each server that the test is for."""
    if "server_tables" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("servers")
        kinds = _SERVERS if marker is None else marker.args
        metafunc.parametrize("server_tables", kinds, indirect=True, scope="session")
