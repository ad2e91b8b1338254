"""Policies that come with the library (APP-1)."""

from collections.abc import Mapping

from pydantic import JsonValue

from psych_runtime.ports.policy import Allow, Ask, Decision, ToolFacts
from psych_schema.common import Scope

__all__ = ["AllowAll", "AskUnlessReadOnly"]


class AskUnlessReadOnly:
    """The default: a read-only tool runs, for any other a person must decide."""

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Allow read-only tools, ask for the rest."""
        return Allow() if tool.risk == "read_only" else Ask()


class AllowAll:
    """Every call runs; for tests, and where every tool is harmless or wanted."""

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Allow."""
        return Allow()
