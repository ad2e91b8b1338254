"""Every check of the model contract holds on our adapter, and on a client for another format."""

import pytest

from psych_runtime.testing.model_contract import Check, checks_for
from tests.functional.model.contract_harness import openai, tally


@pytest.mark.parametrize("check", checks_for(openai().dialect), ids=str)
async def test_mod_5_the_contract_holds_on_the_openai_client(check: Check) -> None:
    """The check raises nothing."""
    await check(openai())


@pytest.mark.parametrize("check", checks_for(tally().dialect), ids=str)
async def test_mod_9_the_contract_holds_on_a_client_for_another_format(check: Check) -> None:
    """It was written against the kit's words, not against chat/completions."""
    await check(tally())
