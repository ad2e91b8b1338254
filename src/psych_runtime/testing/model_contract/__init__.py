"""The contract of the model port, as checks that any client can run over real sockets.

    @pytest.mark.parametrize("check", checks_for(DIALECT), ids=str)
    async def test_contract(check: Check) -> None:
        await check(MyHarness())

A harness makes clients; a dialect says how the provider writes, so that a server on loopback can
play it, well or badly. A check that does not hold raises AssertionError. Nothing here needs a
test framework.
"""

from typing import Final

from psych_runtime.testing.model_contract import (
    arriving,
    asking,
    breaking,
    garbling,
    holding,
    keeping,
    metering,
    refusing,
    returning,
    saying,
    waiting,
)
from psych_runtime.testing.model_contract._check import Check, Harness, offered
from psych_runtime.testing.model_contract.dialect import FEATURES, Dialect, Kind, Refusal
from psych_runtime.testing.model_contract.openai import OpenAIDialect
from psych_runtime.testing.model_contract.wire import JsonLines, Message, Spelling, Sse, Wire

__all__ = [
    "CHECKS",
    "FEATURES",
    "Check",
    "Dialect",
    "Harness",
    "JsonLines",
    "Kind",
    "Message",
    "OpenAIDialect",
    "Refusal",
    "Spelling",
    "Sse",
    "Wire",
    "checks_for",
]

CHECKS: Final[tuple[Check, ...]] = tuple(
    value
    for module in (
        arriving,
        saying,
        metering,
        breaking,
        waiting,
        garbling,
        refusing,
        holding,
        keeping,
        asking,
        returning,
    )
    for value in vars(module).values()
    if isinstance(value, Check)
)
"""Every check; names are unique."""


def checks_for(dialect: Dialect) -> tuple[Check, ...]:
    """Return the checks that say something of a client for this format, in the order of CHECKS."""
    features = offered(dialect)
    return tuple(check for check in CHECKS if check.needs <= features)
