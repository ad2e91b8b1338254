"""What tools send through Outbound, and what comes back."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, UnionType
from typing import Final

from psych_runtime.egress._reading import read_url
from psych_runtime.errors import EgressDenied, InvalidArgument

__all__ = ["OutboundAnswer", "OutboundRequest"]

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""How a request is framed and routed is not for its author to say."""

_ALWAYS_CREDENTIALS: Final = frozenset({"authorization", "cookie"})
_MOST_SECONDS: Final = 86_400.0
_MOST_BYTES: Final = 1 << 40
_MOST_REDIRECTS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRequest:
    """One request, with its bounds. Its repr shows no query, header or body.

    Args:
        method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
        url: http or https, without credentials; a fragment is not sent.
        headers: of printable ASCII; none of how the request is framed (Host, Content-Length, ...).
        credentials: names of headers that are secret; Authorization and Cookie always are. No
            other origin than that of `url` ever gets them.
        body: None sends none.
        connect_seconds: for look-up and connection, and as long again for TLS.
        total_seconds: for everything: look-up, redirects, the whole answer.
        max_response_bytes: of one answer's body.
        max_redirects: 0 gives a redirect back as the answer that it is.

    Raises:
        InvalidArgument: a method, header or bound that is none of these. The URL is read when the
            request is sent.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    credentials: Collection[str] = ()
    body: bytes | None = None
    connect_seconds: float = 10.0
    total_seconds: float = 60.0
    max_response_bytes: int = 10_000_000
    max_redirects: int = 5

    def __post_init__(self) -> None:
        _check_kind("method", self.method, str, remedy="a text")
        if self.method not in _METHODS:
            raise _wrong("method", f"{self.method!r:.40} is none of {', '.join(sorted(_METHODS))}")
        _check_kind("url", self.url, str, remedy="a text")
        _check_kind("body", self.body, bytes | None, remedy="bytes, or None")
        _check_headers(self.headers)
        object.__setattr__(self, "headers", MappingProxyType(dict(self.headers)))
        if isinstance(self.credentials, str):
            raise _wrong("credentials", "pass the names of headers in a list")
        for name in self.credentials:
            _check_kind("credentials", name, str, remedy="names of headers")
        _check_number("connect_seconds", self.connect_seconds, most=_MOST_SECONDS)
        _check_number("total_seconds", self.total_seconds, most=_MOST_SECONDS)
        _check_count("max_response_bytes", self.max_response_bytes, most=_MOST_BYTES)
        _check_count("max_redirects", self.max_redirects, most=_MOST_REDIRECTS)

    def __repr__(self) -> str:
        """Show method and address."""
        try:
            address = read_url(self.url).brief
        except EgressDenied:
            address = "a URL that is refused"
        return f"OutboundRequest({self.method} {address})"

    def is_credential(self, name: str) -> bool:
        """Tell whether the header of this name is a secret of the first origin."""
        known = _ALWAYS_CREDENTIALS | {each.lower() for each in self.credentials}
        return name.lower() in known


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundAnswer:
    """A whole answer, of any status. Its repr shows status and size.

    `headers` has lower-case names, repeated ones joined by a comma; bytes that are no UTF-8 are
    read as Latin-1. `url` is where it came from, after redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    def __repr__(self) -> str:
        """Show nothing that came."""
        return f"OutboundAnswer({self.status}, {len(self.body)} bytes)"


def _check_kind(what: str, value: object, kind: type | UnionType, *, remedy: str) -> None:
    if not isinstance(value, kind):
        raise _wrong(what, f"pass {remedy}, not a {type(value).__name__}")


def _check_headers(headers: Mapping[str, str]) -> None:
    pairs: Iterable[tuple[object, object]] = headers.items()
    seen: set[str] = set()
    for name, value in pairs:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise _wrong("headers", f"{name!r:.80} is no name of a header")
        if name.lower() in _OURS:
            raise _wrong("headers", f"{name} is written by the client; leave it out")
        if name.lower() in seen:
            raise _wrong("headers", f"{name} is there twice, in other letters")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise _wrong("headers", f"the value of {name} has more than printable ASCII")
        seen.add(name.lower())


def _check_number(what: str, value: object, *, most: float) -> None:
    number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else value
    if not 0 < number <= most:
        raise _wrong(what, f"{value!r:.40}: pass more than 0 and at most {most:.0f} seconds")


def _check_count(what: str, value: object, *, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _wrong(what, f"{value!r:.40}: pass a whole number from 0 to {most}")


def _wrong(what: str, problem: str) -> InvalidArgument:
    return InvalidArgument(what=f"OutboundRequest({what}=...)", problem=problem)
