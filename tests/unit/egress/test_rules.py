"""A Permit adds to what is allowed, for its scope and for nobody else (SEC-1)."""

import pytest

from psych_runtime.egress import EgressRules, Permit
from psych_runtime.egress._addresses import read_address
from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.egress import Destination
from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope

_ACME = Scope(tenant="acme", principal="ann", attributes={"plan": "pro"})


async def _judge(
    rules: EgressRules,
    address: str | None,
    *,
    host: str = "api.test",
    port: int = 443,
    scope: Scope = _ACME,
) -> Allow | Deny:
    read = None if address is None else read_address(address)
    assert (read is None) == (address is None)
    return await rules.judge(scope, Destination("https", host, port, read))


@pytest.mark.parametrize("address", [None, "8.8.8.8", "2606:4700:4700::1111"])
async def test_sec_1_public_addresses_are_allowed(address: str | None) -> None:
    """Without a rule."""
    assert await _judge(EgressRules(), address) == Allow()


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("10.0.0.1", "private"),
        ("127.0.0.1", "loopback"),
        ("169.254.169.254", "metadata"),
        ("64:ff9b::808:808", "translated"),
        ("fec0::1", "reserved"),
        ("2a00::5efe:10.0.0.1", "private"),
    ],
)
async def test_sec_1_nothing_else_is(address: str, kind: str) -> None:
    """The reason says what kind it is, and not which."""
    answer = await _judge(EgressRules(), address)
    assert isinstance(answer, Deny)
    assert answer.reason == f"it leads to a {kind} address, which no rule allows for this tenant"


@pytest.mark.parametrize(
    ("permit", "allowed"),
    [
        (Permit(networks=["10.0.0.0/8"]), True),
        (Permit(tenant="acme", networks=["10.0.0.0/8"]), True),
        (Permit(tenant="globex", networks=["10.0.0.0/8"]), False),
        (Permit(tenant="Acme", networks=["10.0.0.0/8"]), False),
        (Permit(principal="ann", networks=["10.0.0.0/8"]), True),
        (Permit(principal="bob", networks=["10.0.0.0/8"]), False),
        (Permit(attributes={"plan": "pro"}, networks=["10.0.0.0/8"]), True),
        (Permit(attributes={"plan": "free"}, networks=["10.0.0.0/8"]), False),
        (Permit(attributes={"team": "pro"}, networks=["10.0.0.0/8"]), False),
        (Permit(networks=["10.0.0.0/8"], ports=[443]), True),
        (Permit(networks=["10.0.0.0/8"], ports=[80]), False),
        (Permit(networks=["10.0.0.0/8"], ports=[]), False),
        (Permit(networks=["10.0.0.5/32"]), True),
        (Permit(networks=["10.0.0.4/32", "fc00::/7"]), False),
        (Permit(hosts=["api.test"]), True),
        (Permit(hosts=["API.test"]), True),
        (Permit(tenant="globex", hosts=["api.test"]), False),
        (Permit(hosts=["*.test"]), True),
        (Permit(hosts=["*.api.test"]), False),
        (Permit(hosts=["pi.test", "test", "api.test.evil"]), False),
        (Permit(), False),
    ],
)
async def test_sec_1_a_permit_is_for_its_scope_host_network_and_port(
    permit: Permit, allowed: bool
) -> None:
    """All of what it says must be so."""
    answer = await _judge(EgressRules(Permit(tenant="x"), permit), "10.0.0.5")
    assert isinstance(answer, Allow) == allowed


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("10.0.0.1", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("fd12::1", True),
        ("8.8.8.8", True),
        ("169.254.169.254", False),
        ("169.254.1.1", False),
        ("100.100.100.200", False),
        ("fd00:ec2::254", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("64:ff9b::a00:1", False),
    ],
)
async def test_sec_1_a_host_leads_to_private_addresses_at_most(address: str, allowed: bool) -> None:
    """Whoever controls a name does not get at metadata by it."""
    answer = await _judge(EgressRules(Permit(hosts=["api.test"])), address)
    assert isinstance(answer, Allow) == allowed


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        (["0.0.0.0/0"], "169.254.1.1", True),
        (["0.0.0.0/0", "169.254.0.0/16"], "169.254.169.254", False),
        (["169.254.169.254/32"], "169.254.169.254", True),
        (["fd00::/8"], "fd00:ec2::254", False),
        (["fd00::/8"], "fd00:ec2::253", True),
        (["fd00:ec2::254/128"], "fd00:ec2::254", True),
        (["64:ff9b::/96"], "64:ff9b::808:808", True),
        (["64:ff9b::/96"], "64:ff9b::a00:1", False),
        (["64:ff9b::/96"], "64:ff9b::a9fe:a9fe", False),
        (["64:ff9b::/96", "10.0.0.0/8"], "64:ff9b::a00:1", True),
        (["10.0.0.0/8"], "64:ff9b::a00:1", False),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", True),
        (["::/0"], "10.0.0.1", False),
    ],
)
async def test_sec_1_a_network_allows_any_kind_but_metadata_by_the_way(
    networks: list[str], address: str, allowed: bool
) -> None:
    """What an address leads on to must be allowed as well."""
    answer = await _judge(EgressRules(Permit(networks=networks)), address)
    assert isinstance(answer, Allow) == allowed


@pytest.mark.parametrize(
    ("port", "allowed"),
    [(80, True), (443, True), (1024, True), (8443, True), (65535, True)]
    + [(port, False) for port in (1, 21, 22, 25, 53, 110, 143, 445, 465, 587, 993, 1023)],
)
async def test_sec_1_ports_of_other_services_are_not_asked(port: int, allowed: bool) -> None:
    """Unless a Permit says so."""
    answer = await _judge(EgressRules(), "8.8.8.8", port=port)
    assert isinstance(answer, Allow) == allowed
    permit = Permit(hosts=["api.test"], ports=[port])
    assert await _judge(EgressRules(permit), "8.8.8.8", port=port) == Allow()


@pytest.mark.parametrize(
    ("address", "host", "allowed"),
    [
        (None, "api.test", True),
        ("8.8.8.8", "api.test", True),
        ("10.0.0.1", "api.test", True),
        (None, "other.test", False),
        ("8.8.8.8", "other.test", False),
        ("10.0.0.1", "other.test", False),
    ],
)
async def test_sec_1_without_the_public_only_the_list_is_allowed(
    address: str | None, host: str, allowed: bool
) -> None:
    """A name that is on no list is not even looked up."""
    rules = EgressRules(Permit(hosts=["api.test"]), public=False)
    assert isinstance(await _judge(rules, address, host=host), Allow) == allowed


async def test_sec_1_a_network_on_the_list_needs_the_look_up() -> None:
    """Only the addresses tell."""
    rules = EgressRules(Permit(networks=["203.0.113.0/24"]), public=False)
    assert await _judge(rules, None, host="other.test") == Allow()
    assert await _judge(rules, "203.0.113.9", host="other.test") == Allow()
    assert isinstance(await _judge(rules, "8.8.8.8", host="other.test"), Deny)


@pytest.mark.parametrize(
    ("hosts", "networks", "ports"),
    [
        (["https://api.test"], [], None),
        (["api.test:443"], [], None),
        (["api.test/v1"], [], None),
        (["api.test?x"], [], None),
        (["api.test#x"], [], None),
        (["u@api.test"], [], None),
        (["api.test."], [], None),
        (["*"], [], None),
        (["*."], [], None),
        (["a.*.test"], [], None),
        (["127.1"], [], None),
        ([""], [], None),
        ([7], [], None),
        ("api.test", [], None),
        ([], ["10.0.0.1/8"], None),
        ([], ["10.0.0.0/33"], None),
        ([], ["10.0.0.0-10.1.0.0"], None),
        ([], [""], None),
        ([], [10], None),
        ([], "10.0.0.0/8", None),
        ([], [], [0]),
        ([], [], [65536]),
        ([], [], ["80"]),
        ([], [], [True]),
        ([], [], 80),
        ([], [], "80"),
        (7, [], None),
        (None, [], None),
        ([], 10, None),
    ],
)
def test_sec_1_a_permit_that_allows_nothing_for_sure_is_refused(
    hosts: list[str], networks: list[str], ports: list[int] | None
) -> None:
    """With the argument and what to pass instead."""
    with pytest.raises(InvalidArgument, match=r"^Permit\((hosts|networks|ports)=\.\.\.\): .+"):
        Permit(hosts=hosts, networks=networks, ports=ports)


def test_sec_1_a_permit_is_a_value() -> None:
    """Equal ones are one; what it has read is not shown twice."""
    one = Permit(tenant="acme", hosts=["::1", "bücher.test"], networks=["10.0.0.0/8"])
    again = Permit(tenant="acme", hosts=["::1", "bücher.test"], networks=["10.0.0.0/8"])
    assert one == again
    assert len({one, again}) == 1
    assert one.has_host("xn--bcher-kva.test")
    assert one.has_host("::1")
    assert "_names" not in repr(one)
