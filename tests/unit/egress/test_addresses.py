"""Which addresses are public is told by a list, not by `ipaddress` alone (SEC-1)."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.egress._addresses import inner_addresses, kind_of, read_address


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("8.8.8.8", "public"),
        ("1.1.1.1", "public"),
        ("93.184.215.14", "public"),
        ("11.0.0.0", "public"),
        ("172.15.255.255", "public"),
        ("172.32.0.0", "public"),
        ("100.63.255.255", "public"),
        ("100.128.0.0", "public"),
        ("169.253.255.255", "public"),
        ("223.255.255.255", "public"),
        ("168.63.129.15", "public"),
        ("2606:4700:4700::1111", "public"),
        ("2a00:1450:4001:830::200e", "public"),
        ("2001:4860:4860::8888", "public"),
        ("2001:200::1", "public"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "metadata"),
        ("169.254.170.23", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("192.0.0.192", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("fd00:ec2::23", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("::1", "loopback"),
        ("169.254.0.1", "link-local"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("100.127.255.255", "private"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("ff02::1", "multicast"),
        ("ff0e::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("::7f00:1", "translated"),
        ("::8.8.8.8", "translated"),
        ("::ffff:0:8.8.8.8", "translated"),
        ("64:ff9b::808:808", "translated"),
        ("64:ff9b:1::1", "translated"),
        ("2001::1", "translated"),
        ("2002:808:808::1", "translated"),
        ("192.88.99.1", "translated"),
        ("192.0.0.1", "reserved"),
        ("192.0.2.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("198.19.255.255", "reserved"),
        ("198.51.100.1", "reserved"),
        ("203.0.113.1", "reserved"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("2001:10::1", "reserved"),
        ("2001:2::1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("3fff::1", "reserved"),
        ("3ffe::1", "reserved"),
        ("fec0::1", "reserved"),
        ("feff::1", "reserved"),
        ("100::1", "reserved"),
        ("5f00::1", "reserved"),
        ("4000::1", "reserved"),
        ("64:ff9b:2::1", "reserved"),
    ],
)
def test_sec_1_only_what_is_given_out_is_public(text: str, kind: str) -> None:
    """The neighbours of each network are not part of it."""
    address = read_address(text)
    assert address is not None
    assert kind_of(address) == kind


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("64:ff9b::169.254.169.254", ["169.254.169.254"]),
        ("::10.0.0.1", ["10.0.0.1"]),
        ("::ffff:0:10.0.0.1", ["10.0.0.1"]),
        ("2002:a9fe:a9fe::1", ["169.254.169.254"]),
        ("2001:0:a9fe:a9fe::5601:5601", ["169.254.169.254", "169.254.169.254"]),
        ("2a00::5efe:127.0.0.1", ["127.0.0.1"]),
        ("2a00::200:5efe:127.0.0.1", ["127.0.0.1"]),
        ("2a00::1", []),
        ("::1", []),
        ("::", []),
        ("10.0.0.1", []),
    ],
)
def test_sec_1_what_a_gateway_makes_of_an_address_is_known(text: str, inner: list[str]) -> None:
    """Allowing a gateway's network allows nothing behind it."""
    assert [str(each) for each in inner_addresses(ip_address(text))] == inner


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:FFFF:7F00:1", "127.0.0.1"),
        ("FE80::1", "fe80::1"),
        ("fe80::1%eth0", None),
        ("127.1", None),
        ("127.0.0.01", None),
        ("localhost", None),
        ("", None),
    ],
)
def test_sec_1_an_address_has_one_reading(text: str, address: str | None) -> None:
    """An IPv4 address in IPv6 form is that IPv4 address."""
    read = read_address(text)
    assert (None if read is None else str(read)) == address


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_sec_1_nothing_is_public_that_ipaddress_knows_better(
    address: IPv4Address | IPv6Address,
) -> None:
    """The list is narrower than the standard library's, nowhere wider."""
    if kind_of(address) == "public":
        assert address.is_global
        assert not address.is_multicast


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_sec_1_a_mapped_address_is_of_the_kind_of_its_own(address: IPv4Address) -> None:
    """However it is written."""
    assert read_address(f"::ffff:{address}") == address
    nat64 = IPv6Address(int(ip_network("64:ff9b::/96").network_address) | int(address))
    assert list(inner_addresses(nat64)) == [address]
