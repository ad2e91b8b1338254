"""What kind of address it is; only `public` ones may be reached unasked (SEC-1).

`ipaddress.is_global` is not enough: it has NAT64, site-local, multicast and metadata as global.
"""

from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

__all__ = ["Address", "Network", "inner_addresses", "kind_of", "read_address"]

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network

_KINDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "metadata",  # where clouds give credentials to whoever asks
        (
            "169.254.169.254/32",
            "169.254.170.2/32",
            "169.254.170.23/32",
            "168.63.129.16/32",
            "100.100.100.200/32",
            "192.0.0.192/32",
            "fd00:ec2::254/128",
            "fd00:ec2::23/128",
            "fd20:ce::254/128",
        ),
    ),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    (
        "private",
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
    ),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("unspecified", ("0.0.0.0/8", "::/128")),
    (
        "translated",  # to an IPv4 address inside it: compatible, NAT64, Teredo, 6to4
        (
            "::/96",
            "::ffff:0:0/96",
            "::ffff:0:0:0/96",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "2001::/32",
            "2002::/16",
            "192.88.99.0/24",
        ),
    ),
    (
        "reserved",
        (
            "192.0.0.0/24",
            "192.0.2.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "2001::/23",
            "2001:db8::/32",
            "3fff::/20",
            "3ffe::/16",
        ),
    ),
)
_TABLE: Final = tuple(
    (ip_network(network), kind) for kind, networks in _KINDS for network in networks
)
_UNICAST: Final = IPv6Network("2000::/3")  # all of IPv6 that is given out

_TEREDO: Final = IPv6Network("2001::/32")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_LAST_32_BITS: Final = tuple(
    IPv6Network(network) for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
_MASK: Final = 0xFFFF_FFFF


def read_address(text: str) -> Address | None:
    """Return the address that `text` is, an IPv4-mapped one as IPv4; None for a name.

    None also for an address with a zone, which is one of this machine's own links.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return None
        return address.ipv4_mapped or address
    return address


def kind_of(address: Address) -> str:
    """Return `public`, or why the address is not."""
    for network, kind in _TABLE:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return "reserved"  # fec0::/10 too
    return "public"


def inner_addresses(address: Address) -> Iterator[IPv4Address]:
    """Give the IPv4 addresses that a gateway may take out of `address`."""
    if isinstance(address, IPv4Address):
        return
    value = int(address)
    if value <= 1:
        return  # :: and ::1 are what they are
    if any(address in network for network in _LAST_32_BITS):
        yield IPv4Address(value & _MASK)
    if address in _SIX_TO_FOUR:
        yield IPv4Address(value >> 80 & _MASK)
    if address in _TEREDO:
        yield IPv4Address(value >> 64 & _MASK)
        yield IPv4Address(~value & _MASK)
    if value >> 32 & _MASK in _ISATAP:
        yield IPv4Address(value & _MASK)
