"""The contract of the store port, as checks that any adapter can run.

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    async def test_contract(check: Check, harness: Harness) -> None:
        await check(harness)

A harness opens handles of one store that is empty and migrated, and lets time pass for it.
A check that does not hold raises AssertionError. Nothing here needs a test framework.
"""

from typing import Final

from psych_runtime.store.contract._check import Check, Harness
from psych_runtime.store.contract.claiming import CHECKS as _CLAIMING
from psych_runtime.store.contract.handling import CHECKS as _HANDLING
from psych_runtime.store.contract.judging import CHECKS as _JUDGING
from psych_runtime.store.contract.living import CHECKS as _LIVING
from psych_runtime.store.contract.reading import CHECKS as _READING

__all__ = ["CHECKS", "Check", "Harness"]

CHECKS: Final[tuple[Check, ...]] = (*_JUDGING, *_READING, *_CLAIMING, *_LIVING, *_HANDLING)
"""Every check; names are unique."""
