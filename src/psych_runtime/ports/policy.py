"""The policy port: whether a Run may begin, which tools it may see, whether a call may run."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from pydantic import JsonValue

from psych_runtime.errors import InvalidArgument
from psych_schema.common import Risk, Scope

__all__ = ["Allow", "Ask", "Decision", "Deny", "Policy", "ToolFacts"]

_MAX_EXPIRES_SECONDS: Final = 1e9  # as in Specs: schema/spec/people.json


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


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must decide, within `expires_seconds`; None is as long as it takes.

    Whoever decides reads `reason`, of which 512 bytes are kept. It stays when a Run is erased:
    name no person in it. Raises InvalidArgument for a time that nobody can keep.
    """

    reason: str | None = None
    expires_seconds: float | None = None
    kind: Literal["ask"] = "ask"

    def __post_init__(self) -> None:
        _check_reason(self.reason)
        _check_seconds(self.expires_seconds)


type Decision = Allow | Deny | Ask


def _check_reason(reason: object) -> None:
    if reason is not None and not isinstance(reason, str):
        problem = f"Ask(reason={reason!r:.40}): pass a text, or None"
        raise InvalidArgument(what="policy", problem=problem)


def _check_seconds(seconds: object) -> None:
    number = math.nan
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        number = seconds
    if seconds is not None and not 0 < number <= _MAX_EXPIRES_SECONDS:
        problem = (
            f"Ask(expires_seconds={seconds!r:.40}): pass more than 0 and at most "
            f"{_MAX_EXPIRES_SECONDS:.0f} seconds, or None"
        )
        raise InvalidArgument(what="policy", problem=problem)


class Policy(Protocol):
    """What a tenant may do. A policy of your own extends this class, and says what it changes.

    Called on the executor's loop only (R-21): a method may await and must not block. What it
    raises ends the attempt, and the Run is tried again later.
    """

    async def allow_run(self, scope: Scope, version: str) -> Allow | Deny:
        """Say whether a Run of a Version may begin; asked before its first model call.

        One that may not fails with the code `not_allowed`.
        """
        return Allow()

    async def permitted(self, scope: Scope) -> Collection[str] | None:
        """Return the identities of tools that this scope may use; None is every tool.

        An identity is `code:name` or `builtin:name`; a `*` at its end stands for any rest. What
        is not permitted is not offered to the model, and unknown when it is called (TOOL-3).
        """
        return None

    async def decide_tool(
        self, scope: Scope, tool: ToolFacts, arguments: Mapping[str, JsonValue]
    ) -> Decision:
        """Say whether `tool` may run with `arguments`; asked right before it does (TOOL-2)."""
        return Allow() if tool.risk == "read_only" else Ask()
