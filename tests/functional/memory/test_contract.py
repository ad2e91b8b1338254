"""Every check of the public contract holds on every adapter."""

import pytest

from psych_runtime.memory.contract import CHECKS, Check, Harness


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_contract_holds(check: Check, harness: Harness) -> None:
    """The check raises nothing."""
    await check(harness)
