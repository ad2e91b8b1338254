"""Which tools a Run may use now: granted by its Spec, here, and permitted (TOOL-3).

One answer for the prompt and for each call; what is not permitted is as if it did not exist.
Whether one call may run, the policy says right before it does (TOOL-2).
"""

from collections.abc import Collection, Mapping

from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.policy import Allow, Ask, Decision, Deny, Policy
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.reading import reading_tools
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.common import Scope

__all__ = ["is_permitted", "is_withheld", "judge_call", "permitted_to", "permitted_tools"]


async def permitted_tools(attempt: Attempt) -> Mapping[str, RegisteredTool]:
    """Return the tools by name."""
    patterns = await permitted_to(attempt.host.runtime.policy, attempt.admitted.scope)
    tools = _reachable(attempt)
    if patterns is None:
        return tools
    return {name: tool for name, tool in tools.items() if is_permitted(tool.identity, patterns)}


def _reachable(attempt: Attempt) -> Mapping[str, RegisteredTool]:
    """Return what the Spec grants and is here; with it, what reads results shown in part."""
    if not attempt.conversation.wholes:
        return attempt.tools
    return {**attempt.tools, **reading_tools()}


async def permitted_to(policy: Policy, scope: Scope) -> Collection[str] | None:
    """Return what a policy permits. InvalidArgument: it answered with something else."""
    found: object = await policy.permitted(scope)
    if found is None:
        return None
    if isinstance(found, str) or not isinstance(found, Collection):
        problem = f"permitted returned {found!r:.80}; return a collection of identities, or None"
        raise InvalidArgument(what="policy", problem=problem)
    return found


def is_permitted(identity: str, patterns: Collection[str]) -> bool:
    """Tell whether one of the patterns names a tool."""
    return identity in patterns or any(
        one.endswith("*") and identity.startswith(one[:-1]) for one in patterns
    )


def is_withheld(attempt: Attempt, tool: RegisteredTool) -> bool:
    """Tell whether a tool failed too often in a row: offered, and refused when called (R-25)."""
    return attempt.streaks.failures(tool.identity) >= attempt.spec.limits.failure_streak


async def judge_call(
    attempt: Attempt, call_id: str, tool: RegisteredTool, arguments: Arguments
) -> Decision:
    """Return what the policy says of a call, and the Spec where the policy allows it.

    InvalidArgument: the policy answered with something else.
    """
    attempt.preparing.add(call_id)
    try:
        decision: object = await attempt.host.runtime.policy.decide_tool(
            attempt.admitted.scope, tool.facts, arguments.effective
        )
    finally:
        attempt.preparing.discard(call_id)
    if isinstance(decision, Allow):
        return _asked_for(attempt, tool)
    if isinstance(decision, Ask | Deny):
        return decision
    problem = f"decide_tool returned {decision!r:.80}; return Allow(), Deny(reason) or Ask()"
    raise InvalidArgument(what="policy", problem=problem)


def _asked_for(attempt: Attempt, tool: RegisteredTool) -> Allow | Ask:
    """Return whether the Spec wants a person's consent where the policy wants none."""
    rules = attempt.spec.ask_before
    if tool.risk in rules.risks or tool.name in rules.tools:
        return Ask(expires_seconds=rules.expires_seconds)
    return Allow()
