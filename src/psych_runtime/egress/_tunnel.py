"""Goes to judged addresses by way of the operator's proxy, which is told no name (SEC-1)."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from ipaddress import IPv6Address
from typing import Final

import httpcore2

from psych_runtime.egress._addresses import Address, read_address
from psych_runtime.egress._connect import Judge, JudgedBackend, Resolver
from psych_runtime.egress._failures import ProxyRefused, Unreached
from psych_runtime.egress.client import user_agent
from psych_runtime.egress.proxy import Proxy
from psych_runtime.errors import EgressDenied

__all__ = ["Tunnel"]

_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")
_END: Final = re.compile(rb"\n\r?\n")
_MOST_BYTES: Final = 8192
"""Of a proxy's answer to CONNECT, with answers that precede it (1xx)."""

_ELSEWHERE: Final = "see to the URL in `Proxy(...)`"
_NO_PROXY: Final = f"what answers there is no HTTP proxy; {_ELSEWHERE}"
_NO_TLS: Final = (
    "the proxy speaks no TLS, or shows a certificate that nobody trusts for its name; "
    "see to `Proxy(ssl_context=...)`"
)
_SILENT: Final = "the proxy did not connect within the time allowed"
_HUNG_UP: Final = "the proxy hung up without an answer"
_TOO_LONG: Final = f"the proxy's answer has more than {_MOST_BYTES} bytes before its end"
_UNASKED: Final = "the proxy sent what nobody had asked for; its connection is not used"


class Tunnel(httpcore2.AsyncNetworkBackend):
    """Opens the connections of one origin to addresses that somebody has judged.

    Nothing that the proxy says is repeated but its status. What goes wrong is a ProxyError in
    words of our own: Unreached where it is about one address, and another may be tried.
    """

    def __init__(self, proxy: Proxy, judge: Judge, resolve: Resolver) -> None:
        self._proxy = proxy
        self._host = judge.origin.host
        self._direct = httpcore2.AnyIOBackend()
        self._reach = JudgedBackend(judge.exempt(proxy.origin), resolve, self._direct)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the HTTP client's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to an address within `timeout`; `host` is that address, as text."""
        address = read_address(host)
        if address is None:
            raise EgressDenied(host=host, reason="a proxy is asked for addresses only")
        if self._proxy.bypasses(self._host, address):
            return await self._direct.connect_tcp(
                host, port, timeout, local_address, socket_options
            )
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        stream = await self._to_proxy(timeout, local_address, socket_options)
        try:
            async with _until(deadline, httpcore2.ProxyError(_NO_TLS)):
                inner = await self._secured(stream)
            async with _until(deadline, Unreached(_SILENT)):
                await self._ask(inner, address, port)
        except BaseException:
            await stream.aclose()
            raise
        return inner

    async def _to_proxy(
        self,
        timeout_seconds: float | None,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the proxy itself. Raises ProxyError."""
        problem = "no connection within the time allowed"
        try:
            return await self._reach.connect_tcp(
                self._proxy.origin.host,
                self._proxy.origin.port,
                timeout_seconds,
                local_address,
                socket_options,
            )
        except httpcore2.ConnectTimeout:
            pass
        except httpcore2.ConnectError as error:
            problem = str(error)
        except EgressDenied as error:
            problem = error.reason
        raise httpcore2.ProxyError(f"the proxy cannot be reached ({problem}); {_ELSEWHERE}")

    async def _secured(self, stream: httpcore2.AsyncNetworkStream) -> httpcore2.AsyncNetworkStream:
        """Return what an https proxy is spoken to through. Raises ProxyError."""
        origin = self._proxy.origin
        if origin.scheme == "http":
            return stream
        trust = await self._proxy.trust.of(origin.scheme)
        try:
            return await stream.start_tls(trust, origin.host)
        except (httpcore2.ConnectError, OSError):
            pass  # the text has the proxy's name
        raise httpcore2.ProxyError(_NO_TLS)

    async def _ask(self, stream: httpcore2.AsyncNetworkStream, address: Address, port: int) -> None:
        """Return when the proxy has connected. Raises ProxyError."""
        host = f"[{address}]" if isinstance(address, IPv6Address) else f"{address}"
        fields = {"Host": f"{host}:{port}", "User-Agent": user_agent(), **self._proxy.headers()}
        lines = [f"CONNECT {host}:{port} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items())]
        status = None
        try:
            await stream.write("\r\n".join([*lines, "", ""]).encode("ascii"))
            status = await _read_status(stream)
        except (httpcore2.NetworkError, OSError):
            pass
        if status is None:
            raise Unreached(_HUNG_UP)
        if not 200 <= status < 300:
            raise self._refused(status)

    def _refused(self, status: int) -> httpcore2.ProxyError:
        """Say what a status means, and what to do about it."""
        if status == 407 and self._proxy.has_credentials:
            problem = "the proxy does not take these credentials, or not as Basic (407)"
            return ProxyRefused(f"{problem}; see to `Proxy(username=..., password=...)`")
        if status == 407:
            problem = "the proxy wants to know who asks (407)"
            return ProxyRefused(f"{problem}; give `Proxy(username=..., password=...)`")
        if status in (502, 503, 504):
            return Unreached(f"the proxy could not connect ({status})")
        problem = f"the proxy does not allow the connection ({status})"
        return Unreached(f"{problem}; it has to allow CONNECT to addresses, at this port")


@asynccontextmanager
async def _until(deadline: float | None, late: httpcore2.ProxyError) -> AsyncGenerator[None]:
    """Bound a block by a time of the loop's clock. Raises `late`."""
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
    else:
        return
    raise late


async def _read_status(stream: httpcore2.AsyncNetworkStream) -> int | None:
    """Return the status of the answer; None: there is none. Raises ProxyError.

    What it says besides is not looked at; behind 2xx there must be nothing: neither HTTP nor TLS
    begins with what a server says.
    """
    data = b""
    room = _MOST_BYTES
    while True:
        first = _STATUS.match(data)
        end = _END.search(data)
        if b"\n" in data and first is None:
            raise httpcore2.ProxyError(_NO_PROXY)
        if first is None or end is None:
            if not room:
                raise httpcore2.ProxyError(_TOO_LONG)
            piece = await stream.read(room)
            if not piece and data:
                raise httpcore2.ProxyError(_NO_PROXY)
            if not piece:
                return None
            data += piece
            room -= len(piece)
            continue
        status, data = int(first[1]), data[end.end() :]
        if status == 101 or status >= 200:
            break
    if data and 200 <= status < 300:
        raise httpcore2.ProxyError(_UNASKED)
    return status
