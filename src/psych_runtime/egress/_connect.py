"""Connects to exactly the addresses that were judged: a name is looked up once (SEC-1)."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpcore2

from psych_runtime.egress._addresses import Address, read_address
from psych_runtime.egress._failures import Unreached
from psych_runtime.egress.gate import Origin
from psych_runtime.errors import EgressDenied
from psych_runtime.ports.egress import Destination, EgressPolicy
from psych_runtime.ports.policy import Allow
from psych_schema.common import Scope

__all__ = ["Judge", "JudgedBackend", "PolicyBroke", "Resolver", "SystemResolver"]

type Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name, the best first. OSError: it has none, or nobody answers."""

_MOST_ADDRESSES: Final = 64
_LOOKUP_THREADS: Final = 16


class PolicyBroke(Exception):
    """What a policy raised: it passes the HTTP client as nothing of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Judge:
    """Asks the policy about one origin for one scope; without a policy the operator's code did."""

    def __init__(self, policy: EgressPolicy | None, scope: Scope, origin: Origin) -> None:
        self._policy = policy
        self._scope = scope
        self.origin = origin

    def exempt(self, origin: Origin) -> "Judge":
        """Return the judge of an origin that the operator wrote, who asks nobody."""
        return Judge(None, self._scope, origin)

    async def check(self, address: Address | None) -> None:
        """Return when it is allowed. Raises EgressDenied, PolicyBroke."""
        if self._policy is None:
            return
        try:
            answer = await self._policy.judge(self._scope, Destination(*self.origin, address))
        except Exception as error:  # foreign code, whose errors are its caller's
            raise PolicyBroke(error) from None
        if not isinstance(answer, Allow):
            reason = getattr(answer, "reason", None) or "the policy does not allow it"
            raise EgressDenied(host=self.origin.host, reason=f"{reason}")


class JudgedBackend(httpcore2.AsyncNetworkBackend):
    """Opens the connections of one origin; `reached` has the addresses that it led to."""

    def __init__(
        self,
        judge: Judge,
        resolve: Resolver,
        inner: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._judge = judge
        self._resolve = resolve
        self._inner = inner or httpcore2.AnyIOBackend()
        self.reached: set[Address] = set()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the HTTP client's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Look the host up, judge every address, connect to the first that answers.

        All of it takes at most `timeout`, of whose rest each address has an equal share.
        """
        origin = self._judge.origin
        if (host, port) != (origin.host, origin.port):
            raise EgressDenied(host=host, reason=f"this connection is for {origin} only")
        time = asyncio.get_running_loop().time
        deadline = None if timeout is None else time() + timeout
        limit = asyncio.timeout_at(deadline)
        addresses: list[Address] = []
        try:
            async with limit:
                addresses = await self._judged()
        except TimeoutError:
            if not limit.expired():
                raise
        if not addresses:
            raise httpcore2.ConnectTimeout
        share = None if deadline is None else max(0.0, deadline - time()) / len(addresses)
        return await self._first(addresses, share, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # the HTTP client's own signature
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no URL names such a socket."""
        raise EgressDenied(host=self._judge.origin.host, reason="a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait; called between attempts, of which there is one."""
        await asyncio.sleep(seconds)

    async def _judged(self) -> list[Address]:
        """Return every address of the host. Raises EgressDenied when one of them is not allowed.

        A name with an address that is not allowed is wrong set up, or set up to deceive.
        """
        origin = self._judge.origin
        texts: Sequence[str] = [origin.host]
        if read_address(origin.host) is None:
            try:
                texts = await self._resolve(origin.host, origin.port)
            except OSError as error:
                problem = f"the name cannot be looked up here: {error.strerror or 'no answer'}"
                raise httpcore2.ConnectError(problem) from None
        if not 0 < len(texts) <= _MOST_ADDRESSES:
            problem = f"the name has {len(texts)} addresses, at most {_MOST_ADDRESSES} are judged"
            raise httpcore2.ConnectError(problem)
        addresses: dict[Address, None] = {}
        for text in texts:
            address = read_address(text)
            if address is None:
                raise EgressDenied(host=origin.host, reason="it leads to a link of this machine")
            await self._judge.check(address)
            addresses[address] = None
        return list(addresses)

    async def _first(
        self,
        addresses: Sequence[Address],
        share_seconds: float | None,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return the first connection that comes about."""
        failure: Exception = httpcore2.ConnectError()
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(
                    str(address),
                    self._judge.origin.port,
                    timeout=share_seconds,
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except Unreached as error:
                failure = error
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = type(error)("nobody answers there")  # the text has the address
            else:
                self.reached.add(address)
                return stream
        raise failure


class SystemResolver:
    """Asks the system, on threads of its own: a name server that stalls delays nothing else."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of `host`."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, "psych-lookup")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _look_up, host, port)

    def close(self) -> None:
        """End the threads as soon as their look-ups are over; another look-up begins anew."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _family, _type, _protocol, _name, address in found]
