"""One address that the operator wrote: requests to it, and bodies read within bounds."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from weakref import WeakKeyDictionary

import httpx2

from psych_runtime.egress._credential import Credential, checked_headers
from psych_runtime.egress._failures import problem_of
from psych_runtime.egress._leftover import has_leftover
from psych_runtime.egress.client import Bounds, make_client
from psych_runtime.egress.gate import OneOrigin
from psych_runtime.errors import EgressFailed

__all__ = ["Answer", "Endpoint"]

_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


class Answer:
    """One response; its body is read as it comes. Close it, or its connection stays taken."""

    def __init__(self, endpoint: "Endpoint", response: httpx2.Response) -> None:
        self._endpoint = endpoint
        self._response = response
        self._whole = False
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    @property
    def compressed(self) -> bool:
        """Whether the body is encoded although nobody asked: then it is not read."""
        return self.headers.get("content-encoding", "identity").strip().lower() != "identity"

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body in pieces, as sent, once. Raises EgressFailed when it breaks off."""
        failure: EgressFailed | None = None
        try:
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    yield piece
            self._whole = True
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            failure = self._endpoint.failed(error)
        if failure is not None:
            raise failure

    async def read(self, *, bound_bytes: int, seconds: float) -> bytes:
        """Return what comes of the body within `seconds`, at most `bound_bytes`; never raises."""
        body = bytearray()
        with contextlib.suppress(EgressFailed, TimeoutError):
            async with asyncio.timeout(seconds), aclosing(self.chunks()) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) >= bound_bytes:
                        break
        return bytes(body[:bound_bytes])

    async def aclose(self) -> None:
        """Give the connection back, or close it: the body was not read to its end, or past it."""
        stream = self._response.extensions.get("network_stream")
        with contextlib.suppress(httpx2.HTTPError):
            if stream is not None and self._whole and has_leftover(self._response):
                await stream.aclose()
            self._whole = False
            await self._response.aclose()

    async def _pieces(self) -> AsyncGenerator[bytes]:
        """Yield what comes; unlike `aiter_raw`, leave giving back the connection to `aclose`."""
        stream = self._response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        pieces = stream.__aiter__()
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()


class Endpoint:
    """Sends requests below one base URL, over one pool of connections for each event loop.

    The scheme, host and port of `base_url` are the only ones it can reach. `api_key` and
    `headers` are sent with each request and appear in no repr, error or log line.

    Args:
        base_url: http or https, host, path; without user, query and fragment.
        api_key: sent as `Authorization: Bearer`; None sends none.
        headers: further secret headers; they go before plain ones of the same name.
        plain_headers: sent with each request, and shown: what a server says may repeat them.
        bounds: None is the default Bounds.
        ssl_context: for a private certificate authority; None is the system's trust.

    Raises:
        EgressDenied: the URL is not one of these.
        InvalidPayload: a header cannot carry the key, or another value.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        plain_headers: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._gate = OneOrigin(base_url)
        self._credential = Credential(bearer=api_key, headers=headers or {})
        self._plain_headers = checked_headers(plain_headers or {})
        self._bounds = bounds or Bounds()
        if ssl_context is None and self._gate.origin.scheme == "http":
            # Never used; loading the system's trust would take a tenth of a second.
            ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ssl_context = ssl_context
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = (
            WeakKeyDictionary()
        )

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return self._gate.url

    @property
    def host(self) -> str:
        """The only host it reaches."""
        return self._gate.origin.host

    def __repr__(self) -> str:
        """Name the address only."""
        return f"Endpoint({self._gate.url!r})"

    async def post(self, path: str, body: bytes, *, accept: str, silence_seconds: float) -> Answer:
        """Send JSON to `path` below the base URL; return as soon as the headers are there.

        Redirects are not followed: a 3xx is an answer like another. `silence_seconds` bounds the
        wait for the headers and for each piece of the body.

        Raises:
            EgressFailed: no answer; `sent` says whether it may have arrived.
        """
        client = self._client()
        headers = httpx2.Headers(self._plain_headers)
        headers["Accept"] = accept
        headers["Accept-Encoding"] = "identity"
        headers["Content-Type"] = "application/json"
        request = client.build_request(
            "POST",
            f"{self._gate.url}/{path}",
            content=body,
            headers=headers,
            timeout=self._timeout(silence_seconds),
        )
        # Raised outside of the `except`: an error keeps what it was raised from, and the HTTP
        # client's errors keep the request with all its headers.
        try:
            return Answer(self, await client.send(request, stream=True))
        except httpx2.HTTPError as error:
            failure = self.failed(error)
        raise failure

    def redact(self, text: str) -> str:
        """Return foreign `text` without the key and the secret headers that were sent."""
        return self._credential.redact(text)

    def failed(self, error: Exception) -> EgressFailed:
        """Say what `error` of the HTTP client means, without what it carries."""
        problem = problem_of(error, detail=self.redact(str(error)))
        return EgressFailed(host=self.host, problem=problem, sent=not isinstance(error, _UNSENT))

    async def aclose(self) -> None:
        """Close this loop's connections; a later request opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        """Return this loop's client: a connection works on the loop that opened it."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = make_client(
                self._gate,
                bounds=self._bounds,
                auth=self._credential,
                ssl_context=self._ssl_context,
            )
        return client

    def _timeout(self, silence_seconds: float) -> httpx2.Timeout:
        return httpx2.Timeout(
            connect=self._bounds.connect_seconds,
            read=silence_seconds,
            write=self._bounds.write_seconds,
            pool=self._bounds.pool_seconds,
        )
