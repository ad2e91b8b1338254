"""The contract holds where the service is not as calm as an emulator (ST-7, R-20)."""

from collections import Counter
from collections.abc import Iterator

import pytest

from psych_runtime.store.contract import CHECKS, Check
from psych_runtime.store.dynamodb._client import DynamoClient
from tests.functional.store.dynamodb.harness import NewHarness
from tests.functional.store.dynamodb.unruly import KINDS, Kind, Trouble, UnrulyClient

_CHANCES: dict[Kind, float] = {
    "conflict": 0.1,
    "in_progress": 0.03,
    "throttled": 0.05,
    "unanswered": 0.05,
    "unprocessed": 0.3,
}
STRUCK: Counter[Kind] = Counter()


@pytest.fixture(scope="module", autouse=True)
def each_kind_strikes() -> Iterator[None]:
    """Trouble that never came proves nothing."""
    STRUCK.clear()
    yield
    assert set(STRUCK) == set(KINDS)


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_st_7_contract_holds_on_an_unruly_dynamodb(
    check: Check, new_harness: NewHarness
) -> None:
    """Conflicts, throttling, lost answers, half-done batches, and indexes that lag by seconds."""
    trouble = Trouble(_CHANCES)

    def wrap(client: DynamoClient) -> DynamoClient:
        return UnrulyClient(client, trouble)

    harness = new_harness(wrap)
    await check(harness)
    STRUCK.update(trouble.struck)
