"""Reads URLs once, as the HTTP client does: what is judged is what is connected to (SEC-1)."""

import re
from ipaddress import ip_address
from typing import Final, NamedTuple

import httpx2

from psych_runtime.egress.gate import Origin
from psych_runtime.errors import EgressDenied

__all__ = ["Target", "read_host", "read_url"]

_SCHEMES: Final = frozenset({"http", "https"})
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HOST_CHARACTERS: Final = 253
_MAX_PORT: Final = 65535


class Target(NamedTuple):
    """A URL that can be asked: where, and for what."""

    origin: Origin
    path: bytes
    url: httpx2.URL

    @property
    def text(self) -> str:
        """The URL, without a fragment."""
        return str(self.url.copy_with(fragment=None))

    @property
    def brief(self) -> str:
        """The URL without its query, which may hold what nobody should see."""
        return f"{self.origin}{self.path.partition(b'?')[0].decode('ascii')}"

    def __repr__(self) -> str:
        """Show no query."""
        return f"Target({self.brief!r})"


def read_url(url: str | httpx2.URL) -> Target:
    """Return what `url` asks for. Raises EgressDenied, which repeats nothing but the host."""
    read = _parsed(url)
    if read is None:
        raise EgressDenied(host="", reason="this is no URL that can be read; write https://host/")
    host = read.raw_host.decode("ascii").lower()
    if read.scheme not in _SCHEMES:
        raise EgressDenied(host=host, reason="only http and https URLs are asked")
    if read.userinfo:
        raise EgressDenied(host=host, reason="credentials do not belong in a URL")
    origin = Origin.of(read)
    if not 0 < origin.port <= _MAX_PORT:
        raise EgressDenied(host=host, reason=f"port {origin.port} is none; write 1 to 65535")
    return Target(origin._replace(host=_one_form(host)), read.raw_path, read)


def read_host(host: str) -> str:
    """Return a host as a URL with it is read. Raises EgressDenied."""
    bracketed = f"[{host}]" if ":" in host else host
    target = read_url(f"http://{bracketed}/")
    if target.path != b"/" or target.origin.port != 80 or target.url.fragment:
        raise EgressDenied(host="", reason="this is no host alone")
    return target.origin.host


def _parsed(url: str | httpx2.URL) -> httpx2.URL | None:
    try:
        return httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError):
        return None  # the complaint may repeat a password


def _one_form(host: str) -> str:
    """Return `host` in the one form that names it. Raises EgressDenied: others read it otherwise.

    Resolvers take 2130706433, 0x7f.1 and 127.1 for addresses, and some clients decode %31.
    """
    if ":" in host:
        if "%" in host:
            raise EgressDenied(host=host, reason="an address with a zone is one of this machine")
        return str(ip_address(host))
    labels = host.split(".")
    if not host:
        problem = "a URL names its host; write https://host/"
    elif len(host) > _HOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        problem = "a host has letters, digits, hyphens and single dots, and none at its end"
    elif _NUMBER.fullmatch(labels[-1]) and not _is_address(host):
        problem = "an address is written as four decimal numbers, as 192.0.2.1"
    else:
        return host
    raise EgressDenied(host=host, reason=problem)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
