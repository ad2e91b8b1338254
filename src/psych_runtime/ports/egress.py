"""The egress port: which addresses a scope may reach (SEC-1)."""

from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple, Protocol

from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope

__all__ = ["Destination", "EgressPolicy"]


class Destination(NamedTuple):
    """Where a request would go.

    `host` is as it is looked up: lower case, IDNA, an address without brackets. `address` is
    None before the look-up, then one of those that the name has; an IPv6 form of an IPv4 address
    (::ffff:a.b.c.d) comes as that IPv4 address.
    """

    scheme: str
    host: str
    port: int
    address: IPv4Address | IPv6Address | None


class EgressPolicy(Protocol):
    """Judges what a Spec, a tenant, a model or a server names; not what the operator's code does.

    Called on the executor's loop only (R-21): a method may await and must not block. What it
    raises ends the call as an error that the model is told.
    """

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        """Say whether a request of `scope` may go to `destination`.

        Asked before each request and each redirect without an address, so that a name nobody
        allows is not even looked up; then with every address of the name, right before one of
        them is connected to or asked of a proxy, and again before an open connection is used anew.
        One Deny ends the request. What the model is told repeats the reason: name no address in it.
        """
