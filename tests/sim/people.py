"""Whom the simulated agents need: consent to payments, answers, news; some only for a while."""

from collections.abc import Mapping
from random import Random
from typing import Final

from pydantic import JsonValue

from psych_runtime.ports.policy import Allow, Ask, Policy, ToolFacts
from psych_schema.common import Scope
from psych_schema.spec import Event, QuestionRules

__all__ = ["Careful", "news", "patience"]

_RESTS_SECONDS: Final = (None, 8.0, 30.0)
_ENDS: Final = ("continue", "continue", "fail", "settle")


class Careful(Policy):
    """Asks about payments; how long, says the amount."""

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Allow | Ask:
        """Allow everything else."""
        if tool.name != "pay":
            return Allow()
        amount = arguments["amount"]
        assert isinstance(amount, int)
        return Ask(expires_seconds=_RESTS_SECONDS[amount % 3])


def patience(chance: Random) -> QuestionRules:
    """Return how long an agent waits for answers in this world."""
    return QuestionRules(
        expires_seconds=chance.choice(_RESTS_SECONDS), on_expiry=chance.choice(_ENDS)
    )


def news(chance: Random) -> Event:
    """Return what an agent may wait for in this world."""
    return Event(
        name="news",
        description="Something new.",
        payload_schema={
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
        expires_seconds=chance.choice(_RESTS_SECONDS),
        on_expiry=chance.choice(_ENDS),
    )
