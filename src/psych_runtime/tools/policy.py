"""Policies that come with the library (APP-1)."""

from collections.abc import Mapping

from pydantic import JsonValue

from psych_runtime.ports.policy import Allow, Decision, Policy, ToolFacts
from psych_schema.common import Scope

__all__ = ["AllowAll", "AskUnlessReadOnly"]


class AskUnlessReadOnly(Policy):
    """The default: a read-only tool runs, for any other a person must decide."""


class AllowAll(Policy):
    """Every call runs; for tests, and where every tool is harmless or wanted."""

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Allow."""
        return Allow()
