"""Sends what tools send: judged, bounded, and with credentials for one origin only (SEC-1)."""

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import replace
from weakref import WeakKeyDictionary

import httpcore2

from psych_runtime.egress._connect import Judge, PolicyBroke, Resolver, SystemResolver
from psych_runtime.egress._failures import CLIENT_ERRORS, ProxyRefused, problem_of
from psych_runtime.egress._lanes import LaneKey, Lanes
from psych_runtime.egress._quiet import keep_logs_quiet
from psych_runtime.egress._reading import read_url
from psych_runtime.egress._redirect import Hop, location_of, next_hop, wire_headers
from psych_runtime.egress._response import give_back, read_answer
from psych_runtime.egress._trust import Trust
from psych_runtime.egress.client import Bounds
from psych_runtime.egress.gate import Origin
from psych_runtime.egress.proxy import Proxy
from psych_runtime.egress.request import OutboundAnswer, OutboundRequest
from psych_runtime.egress.rules import EgressRules
from psych_runtime.errors import EgressDenied, EgressFailed, InvalidArgument
from psych_runtime.ports.egress import EgressPolicy
from psych_schema.common import Scope

__all__ = ["Outbound"]

_SENDING = "send_request_headers.started"


class Outbound:
    """Sends requests that a Spec, a tenant or a model named, each judged for its scope.

    A name is looked up once for a connection, every address of it is judged, and exactly a judged
    one is connected to, by way of `proxy` if there is one. No proxy, certificate bundle or netrc
    of the environment is used. Scopes share no connection, and no answer sets a cookie.

    Args:
        policy: None is EgressRules(): public addresses only.
        allowed_origins: what the operator's code named, as `https://host:port`: reached by every
            scope without a question, for exactly that scheme, host and port. A redirect from
            elsewhere is judged even when it leads there.
        proxy: which proxy all requests go through but those that it says itself; None is none.
        resolve: how names are looked up, that of the proxy too; None asks the system.
        bounds: how many connections, and how long idle ones stay; None is the default Bounds.
            The times of connecting and reading are those of each request.
        ssl_context: for a private certificate authority; None is the system's trust.

    Raises:
        InvalidArgument: an allowed origin that is none.
    """

    def __init__(
        self,
        policy: EgressPolicy | None = None,
        *,
        allowed_origins: Iterable[str] = (),
        proxy: Proxy | None = None,
        resolve: Resolver | None = None,
        bounds: Bounds | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        keep_logs_quiet()
        self._policy = EgressRules() if policy is None else policy
        self._named = _read_origins(allowed_origins)
        self._system = SystemResolver()
        self._resolve = resolve or self._system
        self._bounds = bounds or Bounds()
        self._proxy = proxy
        self._trust = Trust(ssl_context)
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lanes] = WeakKeyDictionary()

    async def send(self, scope: Scope, request: OutboundRequest) -> OutboundAnswer:
        """Send `request` on behalf of `scope`; return the whole answer, whatever its status.

        Nothing is sent a second time. The texts of errors repeat no query, header or body, and
        name no other host than that of `request`.

        Raises:
            EgressDenied: nobody allows the address, or that of a redirect.
            EgressFailed: no whole answer within the bounds.
                Both: `sent` says whether the request may have reached a server.
        """
        chain = _Chain()
        limit = asyncio.timeout(request.total_seconds)
        # Raised outside of the `except`: an error keeps what it was raised from, and the HTTP
        # client's errors keep the request with all its headers.
        failure: Exception
        try:
            async with limit:
                return await self._follow(scope, request, chain)
        except EgressDenied as error:
            failure = chain.denied(error)
        except EgressFailed as error:
            failure = chain.failed(error.problem, transient=error.transient)
        except PolicyBroke as broke:
            failure = broke.error
        except (*CLIENT_ERRORS, OSError) as error:
            problem = problem_of(error, detail="" if chain.redirects else None)
            if limit.expired():
                problem = f"no whole answer within {request.total_seconds:g} s"
            failure = chain.failed(problem, transient=not isinstance(error, ProxyRefused))
        raise failure

    async def aclose(self) -> None:
        """Close this loop's connections; a later request opens new ones."""
        lanes = self._lanes.pop(asyncio.get_running_loop(), None)
        if lanes is not None:
            await lanes.aclose()
        if not self._lanes:
            self._system.close()

    async def _follow(
        self, scope: Scope, request: OutboundRequest, chain: "_Chain"
    ) -> OutboundAnswer:
        """Send the request, and what redirects ask for."""
        target = read_url(request.url)
        chain.host = target.origin.host
        hop = Hop(
            method=request.method,
            target=target,
            headers=request.headers,
            body=request.body,
            named=target.origin in self._named,
        )
        while True:
            answer = await self._ask(scope, request, hop, chain)
            if isinstance(answer, OutboundAnswer):
                return answer
            hop = answer

    async def _ask(
        self, scope: Scope, request: OutboundRequest, hop: Hop, chain: "_Chain"
    ) -> OutboundAnswer | Hop:
        """Send one request of the chain; return its answer, or the next one."""
        origin = hop.target.origin
        judge = Judge(None if hop.named else self._policy, scope, origin)
        await judge.check(None)
        key = LaneKey(scope.model_dump_json(), origin, hop.named)
        trust = await self._trust.of(origin.scheme)
        async with self._open_lanes().pool(key, judge, trust) as pool:
            response = await pool.handle_async_request(
                httpcore2.Request(
                    hop.method,
                    httpcore2.URL(
                        scheme=origin.scheme,
                        host=origin.host,
                        port=origin.port,
                        target=hop.target.path,
                    ),
                    headers=wire_headers(hop),
                    content=hop.body or b"",
                    extensions={
                        "timeout": {"connect": request.connect_seconds},
                        "trace": chain.trace,
                    },
                )
            )
            whole = False
            try:
                location = location_of(response.status, response.headers)
                if location is not None and request.max_redirects:
                    return self._redirected(hop, response.status, location, request, chain)
                answer = await read_answer(response, hop, bound_bytes=request.max_response_bytes)
                whole = True
                return answer
            finally:
                await give_back(response, whole=whole)

    def _redirected(
        self, hop: Hop, status: int, location: str, request: OutboundRequest, chain: "_Chain"
    ) -> Hop:
        """Return the next request. Raises EgressDenied, EgressFailed."""
        chain.redirects += 1
        if chain.redirects > request.max_redirects:
            problem = f"more than {request.max_redirects} redirects"
            raise EgressFailed(host=chain.host, problem=problem, sent=True, transient=False)
        following = next_hop(hop, status, location, request)
        named = hop.named and following.target.origin in self._named
        return replace(following, named=named)

    def _open_lanes(self) -> Lanes:
        """Return this loop's connections: one works on the loop that opened it."""
        loop = asyncio.get_running_loop()
        lanes = self._lanes.get(loop)
        if lanes is None:
            lanes = self._lanes[loop] = Lanes(self._bounds, self._resolve, self._proxy)
        return lanes


class _Chain:
    """What is known of a request and its redirects when it fails."""

    def __init__(self) -> None:
        self.host = ""
        self.redirects = 0
        self.sent = False

    async def trace(self, event: str, _details: object) -> None:
        """Hear from the HTTP client how far it is."""
        if event.endswith(_SENDING):
            self.sent = True

    def denied(self, error: EgressDenied) -> EgressDenied:
        """Say it of the first host: what a redirect names may be what it was sent."""
        reason = f"a redirect is refused: {error.reason}" if self.redirects else error.reason
        return EgressDenied(host=self.host or error.host, reason=reason, sent=self.sent)

    def failed(self, problem: str, *, transient: bool) -> EgressFailed:
        """Say it of the first host."""
        if self.redirects:
            problem = f"after a redirect: {problem}"
        return EgressFailed(host=self.host, problem=problem, sent=self.sent, transient=transient)


def _read_origins(given: Iterable[str]) -> frozenset[Origin]:
    """Return what the operator named. Raises InvalidArgument, which repeats no URL."""
    if isinstance(given, str):
        raise InvalidArgument(what="allowed_origins", problem="is one text: pass a list of URLs")
    origins: set[Origin] = set()
    for number, text in enumerate(given):
        problem = "an origin is scheme, host and port alone, as https://api.example.com:8443"
        try:
            target = read_url(text)
        except EgressDenied as error:
            problem = error.reason
        else:
            if target.path == b"/" and not target.url.fragment:
                origins.add(target.origin)
                continue
        raise InvalidArgument(what=f"allowed_origins[{number}]", problem=problem)
    return frozenset(origins)
