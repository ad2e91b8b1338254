"""The contract of the blob port, as checks that any adapter can run.

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    async def test_contract(check: Check, harness: Harness) -> None:
        await check(harness)

A harness opens handles of one place that has no blobs, lets time pass for it, and damages what
is kept there. A check that does not hold raises AssertionError. Nothing here needs a test
framework.
"""

from typing import Final

from psych_runtime.blob.contract import keeping, naming, refusing, sweeping
from psych_runtime.blob.contract._check import Check, Harness
from psych_runtime.ports import checks

__all__ = ["CHECKS", "Check", "Harness"]

CHECKS: Final[tuple[Check, ...]] = checks.checks_in(
    checks.Check, keeping, naming, sweeping, refusing
)
"""Every check; names are unique."""
