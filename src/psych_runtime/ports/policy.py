"""The policy port: whether a tool call may run."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from pydantic import JsonValue

from psych_schema.common import Risk, Scope

__all__ = ["Allow", "Ask", "Decision", "Deny", "Policy", "ToolFacts"]


class ToolFacts(NamedTuple):
    """What a policy may know of a tool."""

    name: str
    identity: str
    risk: Risk
    annotations: frozenset[str]


class Allow(NamedTuple):
    """Run it."""

    kind: Literal["allow"] = "allow"


class Deny(NamedTuple):
    """Refuse it; the model reads `reason`."""

    reason: str
    kind: Literal["deny"] = "deny"


class Ask(NamedTuple):
    """A person must decide, within `expires_seconds`; None is as long as it takes."""

    reason: str | None = None
    expires_seconds: float | None = None
    kind: Literal["ask"] = "ask"


type Decision = Allow | Deny | Ask


class Policy(Protocol):
    """Decides for each call, right before it runs (TOOL-2).

    Called on the executor's loop only (R-21): a method may await and must not block.
    """

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Say whether `tool` may run with `arguments`. What it raises ends the attempt."""
