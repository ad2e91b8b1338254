"""The contract of the store port, as checks that any adapter can run.

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    async def test_contract(check: Check, harness: Harness) -> None:
        await check(harness)

A harness opens handles of one store that is empty and migrated, and lets time pass for it.
A check that does not hold raises AssertionError. Nothing here needs a test framework.
"""

from typing import Final

from psych_runtime.ports import checks
from psych_runtime.store.contract import (
    capping,
    claiming,
    faulty,
    handling,
    judging,
    living,
    naming,
    outages,
    racing,
    reading,
    refusing,
    removing,
    swapping,
)
from psych_runtime.store.contract._check import Check, Harness

__all__ = ["CHECKS", "Check", "Harness"]

CHECKS: Final[tuple[Check, ...]] = checks.checks_in(
    checks.Check,
    judging,
    reading,
    naming,
    claiming,
    capping,
    removing,
    refusing,
    swapping,
    living,
    handling,
    faulty,
    racing,
    outages,
)
"""Every check; names are unique."""
