"""Who may be reached: every request, redirects included, passes a Gate (SEC-1)."""

from typing import NamedTuple, Protocol, Self

import httpx2

from psych_runtime.errors import EgressDenied

__all__ = ["Gate", "OneOrigin", "Origin"]

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where a request goes; `host` in the form that is looked up (lower case, IDNA)."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: httpx2.URL) -> Self:
        """Return the origin of `url`, as the HTTP client itself reads it."""
        host = url.raw_host.decode("ascii").lower()
        port = _PORTS.get(url.scheme, 0) if url.port is None else url.port
        return cls(url.scheme, host, port)

    def __str__(self) -> str:
        """Return it as it stands in a URL, the usual port left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{host}" + ("" if usual else f":{self.port}")


class Gate(Protocol):
    """Judges a request before any address is resolved or connected to.

    Called on the executor's loop, once for each request and each redirect.
    """

    async def admit(self, origin: Origin) -> None:
        """Return when a request to `origin` is allowed. Raises EgressDenied."""


class OneOrigin:
    """Allows exactly the scheme, host and port of a URL that the operator wrote in code.

    Raises EgressDenied for a URL that is not http(s), or that carries more than a path.
    """

    def __init__(self, base_url: str) -> None:
        url = _read(base_url)
        self.origin = Origin.of(url)
        self.url = f"{self.origin}{url.raw_path.decode('ascii').rstrip('/')}"

    async def admit(self, origin: Origin) -> None:
        """Return for the one origin. Raises EgressDenied."""
        if origin != self.origin:
            reason = f"{origin} is not {self.origin}, the only address allowed here"
            raise EgressDenied(host=origin.host, reason=reason)


def _read(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        url = httpx2.URL()  # what it complains of may hold a password
    if url.scheme not in _PORTS or not url.host or not 0 < Origin.of(url).port < 65536:
        reason = "a base URL is http://host/path or https://host/path"
        raise EgressDenied(host=url.host, reason=reason)
    if url.userinfo:
        raise EgressDenied(host=url.host, reason="credentials do not belong in a base URL")
    if url.query or url.fragment:
        raise EgressDenied(host=url.host, reason="a base URL ends with its path, without ? and #")
    return url
