"""The handle without a Scope: caps (R-15, SEC-4)."""

import pytest

from psych_runtime import Cap, InvalidArgument, administrator
from psych_runtime.ports.answers import CapReached, Committed
from psych_runtime.ports.store import Store
from psych_runtime.store.contract._build import admission, claim
from tests.stores.opening import IN_PROCESS


async def test_r_15_an_administrator_sets_and_lifts_caps(store: Store) -> None:
    """What it counts is shown; a cap that was lifted has no limit."""
    hands = administrator(store)
    assert await hands.cap("acme") is None
    await hands.set_cap("acme", 1)
    assert await hands.cap("acme") == Cap(running=0, limit=1)
    first, second = [await admission(store) for _ in range(2)]
    units = [claim(await store.header("acme", run_id), "wrk_1") for run_id in (first, second)]
    assert await store.commit(units) == [Committed(), CapReached("acme")]
    assert await hands.cap("acme") == Cap(running=1, limit=1)
    await hands.set_cap("acme", None)
    assert await hands.cap("acme") == Cap(running=1, limit=None)
    await hands.set_cap("acme", 0)
    assert await hands.cap("acme") == Cap(running=1, limit=0)
    assert await hands.cap("globex") is None


@IN_PROCESS
@pytest.mark.parametrize("limit", [-1, True, 1.5, "2", 2**31 - 1])
async def test_r_15_a_cap_is_a_whole_number(store: Store, limit: object) -> None:
    """Nothing is set for what is none."""
    with pytest.raises(InvalidArgument):
        await administrator(store).set_cap("acme", limit)  # type: ignore[arg-type]
    assert await store.cap("acme") is None


@IN_PROCESS
@pytest.mark.parametrize("tenant", ["", "x" * 129, None])
async def test_r_15_a_tenant_has_a_name(store: Store, tenant: object) -> None:
    """One that no Scope could have is refused."""
    with pytest.raises(InvalidArgument):
        await administrator(store).set_cap(tenant, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        await administrator(store).cap(tenant)  # type: ignore[arg-type]
