"""An EgressPolicy from a list: public addresses, and what a Permit adds for its scope."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final

from psych_runtime.egress._addresses import Address, Network, inner_addresses, kind_of
from psych_runtime.egress._reading import read_host
from psych_runtime.errors import EgressDenied, InvalidArgument
from psych_runtime.ports.egress import Destination, EgressPolicy
from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope

__all__ = ["EgressRules", "Permit"]

_WEB_PORTS: Final = frozenset({80, 443})
_FIRST_FREE_PORT: Final = 1024
_WILD: Final = "*."
_BY_HOST: Final = frozenset({"public", "loopback", "private"})
"""What a permitted host may lead to; anything else is only permitted by its network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Allows hosts and networks for some scopes, and does nothing for any other.

    Args:
        tenant: whose requests; None is everybody's.
        principal: on whose behalf; None is anybody's.
        attributes: what the scope must say, each exactly.
        hosts: names as they stand in URLs; `*.example.com` is every name below that one. They
            may lead to private and loopback addresses, but to no metadata, link-local or reserved
            one.
        networks: CIDR, of any kind of address; a metadata address only as a network of its own
            (`169.254.169.254/32`).
        ports: the only ones allowed; None is every port.

    Raises:
        InvalidArgument: a host, network or port that is none.
    """

    tenant: str | None = None
    principal: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    hosts: Collection[str] = ()
    networks: Collection[str] = ()
    ports: Collection[int] | None = None
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _nets: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for what, given in (("hosts", self.hosts), ("networks", self.networks)):
            if isinstance(given, str) or not isinstance(given, Collection):
                raise _wrong(what, f"{given!r:.80} is no list: pass a list of texts")
        if self.ports is not None and not isinstance(self.ports, Collection):
            raise _wrong("ports", f"{self.ports!r:.80} is no list: pass one of numbers")
        if not isinstance(self.attributes, Mapping):
            raise _wrong("attributes", f"{self.attributes!r:.80} is no mapping: pass a dict")
        object.__setattr__(self, "_names", frozenset(map(_checked_host, self.hosts)))
        object.__setattr__(self, "_nets", tuple(map(_checked_network, self.networks)))
        for port in self.ports or ():
            _check_port(port)

    def covers(self, scope: Scope, port: int) -> bool:
        """Tell whether it says anything about requests of `scope` to `port`."""
        return (
            self.tenant in (None, scope.tenant)
            and self.principal in (None, scope.principal)
            and all(scope.attributes.get(name) == value for name, value in self.attributes.items())
            and (self.ports is None or port in self.ports)
        )

    def has_host(self, host: str) -> bool:
        """Tell whether it allows the name."""
        above = host
        while above:
            above = above.partition(".")[2]
            if _WILD + above in self._names:
                return True
        return host in self._names

    def has_address(self, address: Address, *, alone: bool = False) -> bool:
        """Tell whether it allows the address; `alone`: by a network of nothing else."""
        return any(
            address in network and (not alone or network.num_addresses == 1)
            for network in self._nets
        )

    def __hash__(self) -> int:
        return hash((self.tenant, self.principal, self._names, self._nets))


class EgressRules(EgressPolicy):
    """Allows public addresses, and what a Permit covers; nothing else.

    Public are unicast addresses that are given out for the Internet: not private, loopback,
    link-local, metadata, multicast, reserved or translated ones (NAT64, 6to4, Teredo). Unasked
    they are reached at the ports 80, 443 and from 1024 on: the others are of other services.

    Args:
        permits: each adds to what is allowed; none takes away.
        public: False leaves only what a Permit covers.
    """

    def __init__(self, *permits: Permit, public: bool = True) -> None:
        self._permits = permits
        self._public = public

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        """Say whether a rule allows it."""
        permits = [permit for permit in self._permits if permit.covers(scope, destination.port)]
        by_host = any(permit.has_host(destination.host) for permit in permits)
        address = destination.address
        if address is None:
            by_address = any(permit.networks for permit in permits)
            if self._public or by_host or by_address:
                return Allow()
            return Deny("the host is on no list of what this tenant may reach")
        for each in (address, *inner_addresses(address)):
            problem = self._problem(each, destination.port, permits, by_host=by_host)
            if problem is not None:
                return Deny(problem)
        return Allow()

    def _problem(
        self, address: Address, port: int, permits: Collection[Permit], *, by_host: bool
    ) -> str | None:
        """Say why the address is not allowed; None when it is."""
        kind = kind_of(address)
        if any(permit.has_address(address, alone=kind == "metadata") for permit in permits):
            return None
        if by_host and kind in _BY_HOST:
            return None
        if kind != "public":
            article = "an" if kind == "unspecified" else "a"
            return f"it leads to {article} {kind} address, which no rule allows for this tenant"
        if not self._public:
            return "the host is on no list of what this tenant may reach"
        if port not in _WEB_PORTS and port < _FIRST_FREE_PORT:
            return f"port {port} is of another service than the web"
        return None


def _check_port(port: object) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise _wrong("ports", f"{port!r:.40} is no port: pass 1 to 65535")


def _checked_host(host: object) -> str:
    """Return a permitted host as requests have it. Raises InvalidArgument."""
    if not isinstance(host, str):
        raise _wrong("hosts", f"{host!r:.80} is no text")
    wild = _WILD if host.startswith(_WILD) else ""
    try:
        return wild + read_host(host.removeprefix(_WILD))
    except EgressDenied:
        problem = f"{host!r:.80} is no host: pass a name or an address, without scheme and port"
        raise _wrong("hosts", problem) from None


def _checked_network(network: object) -> Network:
    """Return a permitted network. Raises InvalidArgument."""
    try:
        if not isinstance(network, str):
            raise TypeError
        return ip_network(network)
    except (TypeError, ValueError):
        problem = f"{network!r:.80} is no network: pass CIDR without host bits, as 10.1.0.0/16"
        raise _wrong("networks", problem) from None


def _wrong(what: str, problem: str) -> InvalidArgument:
    return InvalidArgument(what=f"Permit({what}=...)", problem=problem)
