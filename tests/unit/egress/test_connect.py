"""The backend connects to exactly the addresses that were judged, and to no other (SEC-1)."""

from collections.abc import Iterable, Sequence

import httpcore2
import pytest

from psych_runtime.egress import EgressRules, Origin
from psych_runtime.egress._connect import Judge, JudgedBackend, Resolver
from psych_runtime.errors import EgressDenied
from psych_schema.common import Scope

_ORIGIN = Origin("https", "api.test", 443)


class _Wire(httpcore2.AsyncNetworkBackend):
    """Notes what it is asked to connect to; nobody answers at `dead` addresses."""

    def __init__(self, *dead: str) -> None:
        self.dead = dead
        self.tried: list[tuple[str, int]] = []
        self.shares: list[float] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.tried.append((host, port))
        self.shares.append(timeout or 0)
        if host in self.dead:
            raise httpcore2.ConnectError(f"{host} is dead")
        return httpcore2.AsyncNetworkStream()


def _resolver(*answers: Sequence[str]) -> Resolver:
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("api.test", 443)
        return left.pop(0)

    return resolve


def _backend(wire: _Wire, *answers: Sequence[str], origin: Origin = _ORIGIN) -> JudgedBackend:
    judge = Judge(EgressRules(), Scope(tenant="acme"), origin)
    return JudgedBackend(judge, _resolver(*answers), wire)


async def test_sec_1_the_judged_address_is_the_one_that_is_connected_to() -> None:
    """The name itself never reaches what connects."""
    wire = _Wire()
    backend = _backend(wire, ["93.184.215.14", "2606:4700:4700::1111"], ["10.0.0.1"])
    await backend.connect_tcp("api.test", 443, timeout=6)
    assert wire.tried == [("93.184.215.14", 443)]
    assert 0 < wire.shares[0] <= 3
    with pytest.raises(EgressDenied, match="private address"):
        await backend.connect_tcp("api.test", 443, timeout=6)
    assert len(wire.tried) == 1
    assert {str(address) for address in backend.reached} == {"93.184.215.14"}


async def test_sec_1_a_dead_address_leaves_time_for_the_next() -> None:
    """Each once, in the order of the look-up; an IPv4 address in IPv6 form is that address."""
    wire = _Wire("1.1.1.1", "8.8.8.8")
    backend = _backend(wire, ["1.1.1.1", "1.1.1.1", "::ffff:8.8.8.8", "9.9.9.9"])
    await backend.connect_tcp("api.test", 443, timeout=9)
    assert wire.tried == [("1.1.1.1", 443), ("8.8.8.8", 443), ("9.9.9.9", 443)]
    assert all(0 < share <= 3 for share in wire.shares)


async def test_sec_1_nobody_there_names_no_address() -> None:
    """What a name leads to is for the operator to see."""
    wire = _Wire("1.1.1.1")
    with pytest.raises(httpcore2.ConnectError) as caught:
        await _backend(wire, ["1.1.1.1"]).connect_tcp("api.test", 443)
    assert "1.1.1.1" not in str(caught.value)


@pytest.mark.parametrize("host", ["api.test", "93.184.215.14", "evil.test"])
async def test_sec_1_a_connection_is_of_one_origin(host: str) -> None:
    """Even if the HTTP client asked for another."""
    wire = _Wire()
    port = 8443 if host == "api.test" else 443
    with pytest.raises(EgressDenied, match=r"for https://api\.test only"):
        await _backend(wire).connect_tcp(host, port)
    with pytest.raises(EgressDenied, match="a socket of this machine"):
        await _backend(wire).connect_unix_socket("/run/docker.sock")
    assert wire.tried == []


async def test_sec_1_an_address_in_the_url_is_not_looked_up() -> None:
    """It is judged as it stands."""
    wire = _Wire()
    for host in ("8.8.8.8", "2606:4700:4700::1111"):
        origin = Origin("http", host, 80)
        await _backend(wire, origin=origin).connect_tcp(host, 80)
    assert [host for host, _ in wire.tried] == ["8.8.8.8", "2606:4700:4700::1111"]
