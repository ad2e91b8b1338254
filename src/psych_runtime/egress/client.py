"""Makes HTTP clients whose every request passes a Gate; nothing else in the library makes one."""

import ssl
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import httpx2

from psych_runtime.egress._quiet import keep_logs_quiet
from psych_runtime.egress.gate import Gate, Origin

__all__ = ["Bounds", "make_client", "user_agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long a client waits, and how many connections it holds."""

    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    write_seconds: float = 30.0
    pool_seconds: float = 60.0
    max_connections: int = 256
    max_idle_connections: int = 32
    idle_seconds: float = 30.0


def make_client(
    gate: Gate,
    *,
    bounds: Bounds | None = None,
    auth: httpx2.Auth | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """Return a client that asks `gate` before each request, and ignores the environment.

    No proxy, certificate bundle or netrc of the environment is used; redirects are not followed
    unless a request asks for it, and then each hop is judged like a request.

    Args:
        bounds: None is the default Bounds.
        auth: put on each request right before it is sent.
        ssl_context: for a private certificate authority; None is the system's trust.
    """
    keep_logs_quiet()
    bounds = bounds or Bounds()
    limits = httpx2.Limits(
        max_connections=bounds.max_connections,
        max_keepalive_connections=bounds.max_idle_connections,
        keepalive_expiry=bounds.idle_seconds,
    )
    timeout = httpx2.Timeout(
        connect=bounds.connect_seconds,
        read=bounds.read_seconds,
        write=bounds.write_seconds,
        pool=bounds.pool_seconds,
    )
    verify = True if ssl_context is None else ssl_context
    inner = httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, limits=limits)
    return httpx2.AsyncClient(
        transport=_GatedTransport(gate, inner),
        trust_env=False,
        follow_redirects=False,
        timeout=timeout,
        auth=auth,
        headers={"User-Agent": user_agent()},
    )


class _GatedTransport(httpx2.AsyncBaseTransport):
    """Asks the gate, then connects: redirects and authentication come through here too."""

    def __init__(self, gate: Gate, inner: httpx2.AsyncBaseTransport) -> None:
        self._gate = gate
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._gate.admit(Origin.of(request.url))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def user_agent() -> str:
    """Return what requests are signed with, for the logs of the other side."""
    try:
        return f"psych-runtime/{version('psych-runtime')}"
    except PackageNotFoundError:
        return "psych-runtime/dev"
