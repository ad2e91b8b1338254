"""Which tools a Run may use now: granted by its Spec, here, and permitted (TOOL-3).

One answer for the prompt and for each call; what is not permitted is as if it did not exist.
"""

from collections.abc import Collection, Mapping

from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.policy import Policy
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.tools.registry import RegisteredTool
from psych_schema.common import Scope

__all__ = ["is_permitted", "permitted_to", "permitted_tools"]


async def permitted_tools(attempt: Attempt) -> Mapping[str, RegisteredTool]:
    """Return the tools by name, in the Spec's order."""
    patterns = await permitted_to(attempt.host.runtime.policy, attempt.admitted.scope)
    if patterns is None:
        return attempt.tools
    return {
        name: tool for name, tool in attempt.tools.items() if is_permitted(tool.identity, patterns)
    }


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
