"""No module but the egress makes a connection to the outside (SEC-1)."""

import pytest

from tests.unit.house.connections import INFRASTRUCTURE, outbound_connections
from tests.unit.house.source import Module, modules


@pytest.fixture(scope="module")
def tree() -> list[Module]:
    """Every module of the library."""
    return modules("src")


def test_sec_1_only_the_egress_connects(tree: list[Module]) -> None:
    """In no module is there a breach."""
    breaches = [breach for module in tree for breach in outbound_connections(module)]
    assert not breaches, "\n" + "\n".join(map(str, breaches))


def test_sec_1_every_exemption_is_needed(tree: list[Module]) -> None:
    """One that is not used any more is taken out of the list."""
    used = {
        (prefix, driver)
        for prefix, exemption in INFRASTRUCTURE.items()
        for driver in exemption.drivers
        for module in tree
        if module.within(prefix)
        for _statement, name in module.imports
        if name.split(".")[0] == driver
    }
    listed = {
        (prefix, driver)
        for prefix, exemption in INFRASTRUCTURE.items()
        for driver in exemption.drivers
    }
    assert used == listed
    assert all(exemption.reason for exemption in INFRASTRUCTURE.values())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import httpx2\nc = httpx2.AsyncClient()", "httpx2.AsyncClient called"),
        ("from httpx2 import get\nget('x')", "httpx2.get called"),
        ("import httpx2 as h\nh.AsyncHTTPTransport()", "httpx2.AsyncHTTPTransport called"),
        ("import httpx2\nclass C(httpx2.AsyncClient): ...", "class C is a httpx2.AsyncClient"),
        ("import httpx2\nclass C(httpx2.AsyncBaseTransport): ...", "class C is a"),
        ("def f():\n    import httpcore2", "httpcore2 imported"),
        ("from urllib.request import urlopen", "urllib.request.urlopen imported"),
        ("import http.client", "http.client imported"),
        ("from aiohttp import ClientSession", "aiohttp.ClientSession imported"),
        ("import requests", "requests imported"),
        ("import asyncio\nasyncio.open_connection('x', 1)", "asyncio.open_connection used"),
        ("import asyncio\nconnect = asyncio.open_connection", "asyncio.open_connection used"),
        ("from asyncio import open_connection as o\no('x', 1)", "asyncio.open_connection used"),
        ("import asyncio\nasyncio.open_unix_connection('x')", "open_unix_connection used"),
        ("import socket\nsocket.create_connection(a)", "socket.create_connection used"),
        ("import socket\nsocket.getaddrinfo('x', 1)", "socket.getaddrinfo used"),
        ("import socket\nsocket.socket()", "socket.socket called"),
        ("from socket import socket as s\ns()", "socket.socket called"),
        ("loop.create_connection(f, 'x', 1)", "create_connection() connects"),
        ("asyncio.get_running_loop().sock_connect(s, a)", "sock_connect() connects"),
        ("self._loop.create_datagram_endpoint(f)", "create_datagram_endpoint() connects"),
        ("import anyio\nanyio.connect_tcp('x', 1)", "anyio.connect_tcp used"),
        ("import asyncpg", "asyncpg imported"),
        ("def f():\n    import aioboto3", "aioboto3 imported"),
        ("from redis.asyncio import Redis", "redis.asyncio.Redis imported"),
    ],
)
def test_sec_1_a_planted_connection_is_found(source: str, message: str) -> None:
    """Whatever it is called there."""
    breaches = list(outbound_connections(Module("src/psych_runtime/planted.py", source)))
    assert any(message in breach.message for breach in breaches)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("egress/client.py", "import httpx2\nhttpx2.AsyncClient()"),
        ("egress/_connect.py", "import httpcore2, socket\nsocket.getaddrinfo('x', 1)"),
        ("planted.py", "import httpx2\ndef f(c: httpx2.AsyncClient): ..."),
        ("planted.py", "from urllib.parse import urlsplit"),
        ("planted.py", "import sqlite3\nsqlite3.connect('x')"),
        ("planted.py", "import socket\ndef f(s: socket.socket): ..."),
        ("planted.py", "self._database.connect(options)"),
        ("store/sql/postgresql/database.py", "import asyncpg\nasyncpg.connect()"),
        ("store/sql/mysql/_driver.py", "import aiomysql"),
        ("store/dynamodb/_client.py", "import aioboto3"),
        ("blob/_s3_client.py", "from aiobotocore.session import get_session"),
        ("testing/server.py", "import socket\nsocket.socket()"),
    ],
)
def test_sec_1_what_only_looks_like_a_connection_passes(path: str, source: str) -> None:
    """As does what is exempt."""
    assert list(outbound_connections(Module(f"src/psych_runtime/{path}", source))) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("store/sql/mysql/_driver.py", "import asyncpg"),
        ("store/sql/postgresql/database.py", "import aioboto3"),
        ("store/dynamodb/_client.py", "import aiohttp"),
        ("store/open.py", "import asyncpg"),
        ("blob/filesystem.py", "import aioboto3"),
        ("store/sql/postgresql/database.py", "import asyncio\nasyncio.open_connection('x', 1)"),
    ],
)
def test_sec_1_an_exemption_is_for_its_driver_in_its_place(path: str, source: str) -> None:
    """And for nothing beside it."""
    assert list(outbound_connections(Module(f"src/psych_runtime/{path}", source))) != []
