"""The house rule of SEC-1: outbound connections are made in one place, which judges them."""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tests.unit.house.source import Breach, Module

__all__ = ["INFRASTRUCTURE", "Exemption", "outbound_connections"]


class Exemption(NamedTuple):
    """Which drivers a part of the library may use, and why nobody judges their addresses."""

    drivers: frozenset[str]
    reason: str


INFRASTRUCTURE: Mapping[str, Exemption] = {
    "store/sql/postgresql/": Exemption(
        frozenset({"asyncpg"}), "the database, whose URL only the operator writes"
    ),
    "store/sql/mysql/": Exemption(
        frozenset({"aiomysql", "pymysql"}), "the database, whose URL only the operator writes"
    ),
    "store/dynamodb/": Exemption(
        frozenset({"aioboto3", "aiobotocore", "botocore"}),
        "the database, whose endpoint only the operator writes",
    ),
    "blob/_s3_": Exemption(
        frozenset({"aioboto3", "aiobotocore", "botocore"}),
        "the blob store, whose endpoint only the operator writes",
    ),
}
"""The closed list: a new entry is a decision about SEC-1, and says why."""

_DRIVERS = frozenset(
    {
        "aioboto3",
        "aiobotocore",
        "aiokafka",
        "aiomysql",
        "aiosmtplib",
        "amqp",
        "asyncpg",
        "asyncssh",
        "boto3",
        "botocore",
        "kafka",
        "motor",
        "mysql",
        "nats",
        "paramiko",
        "pika",
        "psycopg",
        "psycopg2",
        "pymongo",
        "pymysql",
        "redis",
        "valkey",
    }
)
_CLIENT_LIBRARIES = frozenset(
    {
        "aiohttp",
        "curl_cffi",
        "dns",
        "ftplib",
        "grpc",
        "http.client",
        "httpcore",
        "httpcore2",
        "httplib2",
        "httpx",
        "imaplib",
        "niquests",
        "poplib",
        "pycurl",
        "requests",
        "smtplib",
        "telnetlib",
        "tornado",
        "urllib.request",
        "urllib3",
        "websocket",
        "websockets",
        "xmlrpc.client",
    }
)
_CLIENTS = frozenset(
    {
        "httpx2.AsyncClient",
        "httpx2.AsyncHTTPTransport",
        "httpx2.Client",
        "httpx2.HTTPTransport",
        "httpx2.delete",
        "httpx2.get",
        "httpx2.head",
        "httpx2.options",
        "httpx2.patch",
        "httpx2.post",
        "httpx2.put",
        "httpx2.request",
        "httpx2.stream",
    }
)
"""Named in annotations everywhere, but made in one place."""

_CONNECTORS = frozenset(
    {
        "anyio.connect_tcp",
        "anyio.connect_unix",
        "anyio.getaddrinfo",
        "asyncio.open_connection",
        "asyncio.open_unix_connection",
        "asyncio.streams.open_connection",
        "socket.create_connection",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyname_ex",
        "socket.socketpair",
    }
)
"""Not even given another name."""

_CONNECTING_METHODS = frozenset(
    {
        "connect_ex",
        "create_connection",
        "create_datagram_endpoint",
        "create_unix_connection",
        "getaddrinfo",
        "open_connection",
        "sock_connect",
    }
)
_REMEDY = "get what connects from psych_runtime.egress"


def outbound_connections(module: Module) -> Iterator[Breach]:
    """Only the egress connects, and an exempt driver in its own place (SEC-1)."""
    if module.within("egress/"):
        return
    yield from _imports(module)
    yield from _uses(module)


def _imports(module: Module) -> Iterator[Breach]:
    allowed = {
        driver
        for prefix, exemption in INFRASTRUCTURE.items()
        if module.within(prefix)
        for driver in exemption.drivers
    }
    for statement, name in module.imports:
        if _is_of(name, _CLIENT_LIBRARIES):
            yield module.breach(statement, f"{name} imported: {_REMEDY}")
        elif _is_of(name, _DRIVERS - allowed):
            yield module.breach(
                statement,
                f"{name} imported: {_REMEDY}, or decide on an exemption for infrastructure in "
                "tests/unit/house/connections.py",
            )


def _uses(module: Module) -> Iterator[Breach]:
    for node, name in module.references():
        if name in _CONNECTORS:
            yield module.breach(node, f"{name} used: {_REMEDY}")
    for call, name in module.calls():
        if name in _CLIENTS or (name == "socket.socket" and not module.within("testing/")):
            yield module.breach(call, f"{name} called: {_REMEDY}")
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = module.full_name(base) or ""
                if name in _CLIENTS or name.startswith(("httpx2.Base", "httpx2.AsyncBase")):
                    yield module.breach(node, f"class {node.name} is a {name}: {_REMEDY}")
        elif isinstance(node, ast.Call) and _method(module, node) in _CONNECTING_METHODS:
            yield module.breach(node, f"{_method(module, node)}() connects: {_REMEDY}")


def _method(module: Module, call: ast.Call) -> str | None:
    """Return the name of a method that is called; None for a function of a module."""
    if isinstance(call.func, ast.Attribute) and module.full_name(call.func) is None:
        return call.func.attr
    return None


def _is_of(name: str, packages: Collection[str]) -> bool:
    """Tell whether the full `name` is one of `packages`, or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)
