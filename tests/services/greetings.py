"""Asks a server for its version with the first bytes of its protocol, without any driver.

Each function raises OSError while the server is not ready. A server that asks for a password
before it tells its version is ready, and its version UNKNOWN.
"""

import http.client
import json
import socket
import struct
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

__all__ = ["UNKNOWN", "aws_version", "mysql_version", "pgbouncer_version", "postgres_version"]

UNKNOWN = "unknown"

_SECONDS = 5.0
_PROTOCOL_3 = 196_608
_MARIADB_PREFIX = "5.5.5-"  # old replicas took 10 for less than 5


def postgres_version(url: str) -> str:
    """Return `server_version` as a new connection reports it."""
    return _startup(url, (urlsplit(url).path or "/").removeprefix("/") or "postgres")


def pgbouncer_version(url: str) -> str:
    """Return the pooler's own version, once it reaches its server."""
    postgres_version(url)
    try:
        return _startup(url, "pgbouncer")
    except OSError:  # we are no administrator of it
        return UNKNOWN


def mysql_version(url: str) -> str:
    """Return the version in the greeting that MySQL and MariaDB send first."""
    with _connect(url, 3306) as sock, sock.makefile("rb") as file:
        head = _exactly(file, 4)
        packet = _exactly(file, int.from_bytes(head[:3], "little"))
    if packet[0] != 10:
        raise ConnectionError(packet[3:].decode("utf-8", "replace"))
    return packet[1:].split(b"\0", 1)[0].decode().removeprefix(_MARIADB_PREFIX)


def aws_version(url: str) -> str:
    """Return what ministack says of itself; another endpoint is only reached."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/_ministack/health")
        response = connection.getresponse()
        body = response.read()
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()
    if response.status != 200:
        return UNKNOWN
    return f"ministack {json.loads(body)['version']}"


def _startup(url: str, database: str) -> str:
    """Open a PostgreSQL connection as far as it tells its settings."""
    parts = urlsplit(url)
    user = unquote(parts.username or "postgres")
    words = "\0".join(("user", user, "database", unquote(database), "", "")).encode()
    with _connect(url, 5432) as sock, sock.makefile("rb") as file:
        sock.sendall(struct.pack("!ii", len(words) + 8, _PROTOCOL_3) + words)
        for kind, body in _messages(file):
            if kind == b"E":
                raise ConnectionError(body.replace(b"\0", b" ").decode("utf-8", "replace"))
            if kind == b"R" and body[:4] != b"\0\0\0\0":
                return UNKNOWN
            if kind == b"S" and body.startswith(b"server_version\0"):
                return body.split(b"\0")[1].decode()
            if kind == b"Z":
                return UNKNOWN
    raise ConnectionError("the server hung up")


def _messages(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while kind := file.read(1):
        (length,) = struct.unpack("!i", _exactly(file, 4))
        yield kind, _exactly(file, length - 4)


def _connect(url: str, port: int) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or port), _SECONDS)


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ConnectionError("the server hung up")
    return data
