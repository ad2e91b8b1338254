"""The forward proxy of an operator, by whose way outbound requests go (SEC-1)."""

import re
import ssl
from base64 import b64encode
from collections.abc import Collection
from typing import Final, final

from psych_runtime.core.secret import Secret, as_header
from psych_runtime.egress._addresses import Address, read_address
from psych_runtime.egress._reading import read_url
from psych_runtime.egress._trust import Trust
from psych_runtime.egress.gate import Origin
from psych_runtime.egress.rules import Permit
from psych_runtime.errors import EgressDenied, InvalidArgument

__all__ = ["Proxy"]

_FORM: Final = "write http://host:port or https://host:port, and nothing more"
_UNSENDABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@final
class Proxy:
    """Names the forward proxy that requests go through, for `http` and for `https` alike.

    It allows nothing: a target is looked up and judged here as without it, and the proxy is then
    asked (CONNECT) for exactly the judged address, never for a name. TLS is with the target,
    through the proxy. The environment names no proxy, and no exception from this one.

    Args:
        url: http://host:port or https://host:port, reached by every scope without a question,
            for exactly that scheme, host and port, and as a proxy only.
        username: with `password`, sent to the proxy as Basic (RFC 7617), and to nobody else.
        password: given here and not by name: what a SecretResolver has, a Spec may name.
        no_proxy: what is reached directly, if it may be reached: names as in `Permit(hosts=...)`,
            addresses and networks. A network is compared with what a name leads to.
        ssl_context: for an https proxy with a private certificate authority; None is the
            system's trust.

    Raises:
        InvalidArgument: none of these. It repeats neither the URL nor the credentials.
        SecretUnusable: credentials that are too long.
    """

    def __init__(
        self,
        url: str,
        *,
        username: str | None = None,
        password: str | None = None,
        no_proxy: Collection[str] = (),
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.origin = _read_origin(url)
        self.trust = Trust(ssl_context)
        self._credentials = _read_credentials(username, password)
        self._direct = _read_direct(no_proxy)

    def __repr__(self) -> str:
        """Name the address only."""
        return f"Proxy({str(self.origin)!r})"

    @property
    def has_credentials(self) -> bool:
        """Whether it is told who asks."""
        return self._credentials is not None

    def bypasses(self, host: str, address: Address) -> bool:
        """Tell whether `address`, to which `host` leads, is reached directly."""
        return self._direct.has_host(host) or self._direct.has_address(address)

    def headers(self) -> dict[str, str]:
        """Return what a request to the proxy itself carries; it belongs on the wire only."""
        if self._credentials is None:
            return {}
        return {"Proxy-Authorization": as_header(self._credentials)}


def _read_origin(url: str) -> Origin:
    """Return what the URL names. Raises InvalidArgument, which repeats none of it."""
    problem = _FORM
    try:
        target = read_url(url)
    except EgressDenied as error:
        problem = f"{error.reason}: {_FORM}"
    else:
        if target.path == b"/" and not target.url.fragment:
            return target.origin
    raise _wrong("url", problem)


def _read_credentials(username: str | None, password: str | None) -> Secret | None:
    """Return the header's value. Raises InvalidArgument, which repeats none of it."""
    if username is None and password is None:
        return None
    if not isinstance(username, str) or not isinstance(password, str):
        raise _wrong("username, password", "pass both as text, or neither")
    if ":" in username:
        raise _wrong("username", "a colon ends the name: there is none in it")
    if _UNSENDABLE.search(username + password):
        raise _wrong("username, password", "leave out control characters and line breaks")
    pair = b64encode(f"{username}:{password}".encode()).decode()
    return Secret("proxy", f"Basic {pair}")


def _read_direct(no_proxy: object) -> Permit:
    """Return hosts and networks in the language of the rules. Raises InvalidArgument."""
    problem = "pass a list of texts: names, addresses and networks"
    if isinstance(no_proxy, Collection) and not isinstance(no_proxy, str):
        read = [(entry, _network_of(entry)) for entry in no_proxy]
        try:
            return Permit(
                hosts=[entry for entry, network in read if network is None],
                networks=[network for _, network in read if network is not None],
            )
        except InvalidArgument as error:
            problem = error.problem
    raise _wrong("no_proxy", problem)


def _network_of(entry: object) -> str | None:
    """Return an address or a network as a Permit has it; None for what may be a name."""
    if not isinstance(entry, str):
        return None
    address = read_address(entry)
    if address is not None:
        return str(address)
    return entry if "/" in entry else None


def _wrong(what: str, problem: str) -> InvalidArgument:
    return InvalidArgument(what=f"Proxy({what}=...)", problem=problem)
