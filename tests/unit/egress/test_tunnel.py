"""What a proxy answers is read to its end and no further, in whatever pieces it comes (SEC-1)."""

import httpcore2
import pytest

from psych_runtime.egress import EgressRules, Origin, Proxy
from psych_runtime.egress._connect import Judge
from psych_runtime.egress._tunnel import Tunnel, _read_status
from psych_runtime.errors import EgressDenied
from psych_schema.common import Scope


class _Pieces(httpcore2.AsyncNetworkStream):
    """Gives what a proxy sends in pieces of one size; then the other side has left."""

    def __init__(self, said: bytes, size: int) -> None:
        self.left = said
        self.size = size

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert max_bytes > 0
        cut = min(self.size, max_bytes)
        piece, self.left = self.left[:cut], self.left[cut:]
        return piece


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8192])
@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n", 200),
        (b"HTTP/1.1 200\r\n\r\n", 200),
        (b"HTTP/1.1 200 \r\n\r\n", 200),
        (b"HTTP/1.1 204 caf\xe9\nX: y\n\n", 204),
        (b"HTTP/1.1 299 OK\r\nContent-Length: 7\r\n\r\n", 299),
        (b"HTTP/1.1 100 A\r\n\r\nHTTP/1.1 103 B\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200),
        (b"HTTP/1.1 407 No\r\n\r\n", 407),
        (b"HTTP/1.1 599 No\r\nX: " + b"y" * 8168 + b"\r\n\r\n", 599),
    ],
)
async def test_sec_1_a_proxy_s_status_does_not_depend_on_the_pieces(
    said: bytes, status: int, size: int
) -> None:
    """Up to the last byte that is allowed."""
    assert len(said) <= 8192
    assert await _read_status(_Pieces(said, size)) == status


@pytest.mark.parametrize("size", [1, 7, 8192])
async def test_sec_1_one_byte_more_is_too_much(size: int) -> None:
    """However soon its end would come."""
    said = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 8169 + b"\r\n\r\n"
    assert len(said) == 8193
    with pytest.raises(httpcore2.ProxyError, match="more than 8192 bytes"):
        await _read_status(_Pieces(said, size))


async def test_sec_1_a_refusal_s_body_is_not_read() -> None:
    """What is behind the bound stays where it is."""
    stream = _Pieces(b"HTTP/1.1 407 No\r\n\r\n" + b"x" * 100_000, 64)
    assert await _read_status(stream) == 407
    assert len(stream.left) > 99_000


@pytest.mark.parametrize("host", ["api.test", "", "127.0.0.1:80", "fe80::1%lo", "x\r\nHost: y"])
async def test_sec_1_a_proxy_is_asked_for_addresses_only(host: str) -> None:
    """Even if the HTTP client asked for a name; nobody is looked up or connected to."""

    async def look_up(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    judge = Judge(EgressRules(), Scope(tenant="acme"), Origin("https", "api.test", 443))
    tunnel = Tunnel(Proxy("http://proxy.test:3128"), judge, look_up)
    with pytest.raises(EgressDenied, match="asked for addresses only"):
        await tunnel.connect_tcp(host, 443)
