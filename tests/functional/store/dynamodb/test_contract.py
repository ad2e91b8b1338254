"""Every check of the public contract holds on DynamoDB."""

import pytest

from psych_runtime.store.contract import CHECKS, Check
from tests.functional.store.dynamodb.harness import DynamoHarness


@pytest.mark.parametrize("check", CHECKS, ids=str)
async def test_r_1_contract_holds_on_dynamodb(check: Check, harness: DynamoHarness) -> None:
    """The check raises nothing."""
    await check(harness)
