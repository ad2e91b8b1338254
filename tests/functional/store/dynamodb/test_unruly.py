"""The contract holds where the service is not as calm as an emulator (ST-7, R-20)."""

import pytest

from psych_runtime.store.contract import CHECKS, Check
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.unruly import KINDS, Kind, Trouble, troubled
from tests.together import Together

_CHANCES: dict[Kind, float] = {
    "conflict": 0.1,
    "in_progress": 0.03,
    "throttled": 0.05,
    "unanswered": 0.05,
    "unprocessed": 0.3,
}


@pytest.fixture(scope="session")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """What has struck the checks: trouble that never came proves nothing."""
    return Together(tmp_path_factory, "struck", CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_st_7_contract_holds_on_an_unruly_dynamodb(
    check: Check, new_harness: NewHarness, struck: Together
) -> None:
    """Conflicts, throttling, lost answers, half-done batches, and indexes that lag by seconds."""
    trouble = Trouble(_CHANCES)
    await check(new_harness(troubled(trouble)))
    checks = struck.add(check, {"struck": {str(kind): n for kind, n in trouble.struck.items()}})
    if checks is not None:
        assert {kind for each in checks for kind in each["struck"]} == set(KINDS)
