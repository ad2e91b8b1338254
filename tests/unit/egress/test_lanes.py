"""Open connections are judged again, and what that costs has a bound (SEC-1)."""

from collections.abc import Sequence
from ipaddress import IPv4Address

import httpcore2
import pytest

from psych_runtime.egress import Origin
from psych_runtime.egress._connect import Judge, JudgedBackend
from psych_runtime.egress._lanes import _Lane, _still_allowed
from psych_runtime.ports.egress import Destination, EgressPolicy
from psych_runtime.ports.policy import Allow, Deny
from psych_schema.common import Scope


class _Counting(EgressPolicy):
    def __init__(self, *denied: str) -> None:
        self.denied = denied
        self.asked = 0

    async def judge(self, scope: Scope, destination: Destination) -> Allow | Deny:
        self.asked += 1
        return Deny("no") if str(destination.address) in self.denied else Allow()


async def _no_look_up(host: str, port: int) -> Sequence[str]:
    raise OSError(-2, "no look-up")


@pytest.mark.parametrize(
    ("count", "denied", "allowed", "asked"),
    [
        (0, (), True, 0),
        (64, (), True, 64),
        (64, ("10.0.0.63",), False, None),
        (65, (), False, 0),
        (10_000, (), False, 0),
    ],
)
async def test_sec_1_where_a_lane_has_led_is_judged_again(
    count: int, denied: tuple[str, ...], allowed: bool, asked: int | None
) -> None:
    """Every address of it; with too many, new connections are opened instead."""
    policy = _Counting(*denied)
    judge = Judge(policy, Scope(tenant="acme"), Origin("https", "api.test", 443))
    backend = JudgedBackend(judge, _no_look_up)
    first = int(IPv4Address("10.0.0.0"))
    backend.reached.update(IPv4Address(first + each) for each in range(count))
    lane = _Lane(httpcore2.AsyncConnectionPool(network_backend=backend), backend)
    assert await _still_allowed(lane, judge) is allowed
    assert asked in (None, policy.asked)
