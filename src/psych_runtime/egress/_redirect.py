"""One request of a chain, and the next one that a redirect asks for (SEC-1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx2

from psych_runtime.egress._reading import Target, read_url
from psych_runtime.egress.client import user_agent
from psych_runtime.egress.request import OutboundRequest
from psych_runtime.errors import EgressDenied

__all__ = ["Hop", "location_of", "next_hop", "wire_headers"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_WITH_BODY: Final = frozenset({"PATCH", "POST", "PUT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What is asked now; `named`: where it goes, and whatever led there, is in the operator's code.

    Its repr shows no header and no body.
    """

    method: str
    target: Target
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)
    named: bool


def location_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return where a redirect leads; None when it is none. Raises EgressDenied: it cannot be told.

    The host of that error is for its caller to say.
    """
    if status not in _REDIRECTS:
        return None
    found = {value for name, value in headers if name.lower() == b"location"}
    if len(found) > 1:
        raise EgressDenied(host="", reason="a redirect leads to two addresses")
    for value in found:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            pass
        raise EgressDenied(host="", reason="a redirect leads to no URL that can be read")
    return None


def next_hop(hop: Hop, status: int, location: str, request: OutboundRequest) -> Hop:
    """Return the request that a redirect asks for, not `named`. Raises EgressDenied.

    As browsers do, 303 asks with GET, 301 and 302 do so after a POST. What is secret stays with
    the origin that it was meant for, also when a later redirect leads back.
    """
    target = read_url(_joined(hop.target.url, location))
    here, there = hop.target.origin, target.origin
    if here.scheme == "https" and there.scheme != "https":
        raise EgressDenied(host=there.host, reason="a redirect leads from https to http")
    headers = dict(hop.headers)
    if here != there:
        headers = {
            name: value for name, value in headers.items() if not request.is_credential(name)
        }
    method, body = hop.method, hop.body
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {
            name: value
            for name, value in headers.items()
            if not name.lower().startswith("content-")
        }
    return Hop(method=method, target=target, headers=headers, body=body, named=False)


def wire_headers(hop: Hop) -> list[tuple[bytes, bytes]]:
    """Return the headers as they are sent."""
    origin = hop.target.origin
    fields = {
        "Host": str(origin).partition("://")[2],
        "User-Agent": user_agent(),
        "Accept": "*/*",
    }
    given = {name.lower() for name in hop.headers}
    sent = {name: value for name, value in fields.items() if name.lower() not in given}
    sent |= hop.headers
    sent["Accept-Encoding"] = "identity"  # what is decoded here could be a bomb
    if hop.body is not None or hop.method in _WITH_BODY:
        sent["Content-Length"] = str(len(hop.body or b""))
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in sent.items()]


def _joined(base: httpx2.URL, location: str) -> httpx2.URL:
    """Return `location` seen from `base`. Raises EgressDenied."""
    try:
        return base.join(location)
    except (httpx2.InvalidURL, ValueError):
        pass
    raise EgressDenied(host="", reason="a redirect leads to no URL that can be read")
