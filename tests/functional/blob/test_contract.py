"""Every check of the public contract holds on every adapter."""

import pytest

from psych_runtime.blob.contract import CHECKS, Check, Harness


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_23_contract_holds(check: Check, harness: Harness) -> None:
    """The check raises nothing."""
    await check(harness)
