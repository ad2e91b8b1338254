"""The contract of the memory port, as checks that any adapter can run.

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    async def test_contract(check: Check, harness: Harness) -> None:
        await check(harness)

A harness opens handles of one place in which nothing is remembered. A check that does not hold
raises AssertionError. Nothing here needs a test framework.
"""

from typing import Final

from psych_runtime.memory.contract import keeping, refusing, sharing
from psych_runtime.memory.contract._check import Check, Harness
from psych_runtime.ports import checks

__all__ = ["CHECKS", "Check", "Harness"]

CHECKS: Final[tuple[Check, ...]] = checks.checks_in(checks.Check, keeping, sharing, refusing)
"""Every check; names are unique."""
