"""Asks a service whether a call happened whose worker died while it ran (R-9)."""

from collections.abc import Callable, Mapping
from typing import Final

from psych_runtime.core.http_checks import KEY
from psych_runtime.tools._http_executor import HttpExecutor
from psych_runtime.tools._http_request import RequestPlan
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.reconciled import Reconciled, settled_as
from psych_runtime.tools.returned import TOO_LARGE
from psych_schema.spec import HttpLookup, HttpTool

__all__ = ["Lookup", "answered", "lookup_of"]

_ABSENT: Final = 404
_OF_RESULTS: Final = frozenset({"result_invalid", TOO_LARGE})


def lookup_of(declared: HttpTool, lookup: HttpLookup) -> HttpTool:
    """Return the request that asks, as a tool of its own; credential and bounds are the tool's."""
    return declared.model_copy(
        update={
            "method": "GET",
            "url": lookup.url,
            "headers": lookup.headers,
            "query": lookup.query,
            "body": None,
            "input_schema": None,
            "safe_to_retry": None,
            "reconcile": None,
        }
    )


class Lookup:
    """Sends the request; of the arguments only what it names."""

    def __init__(self, plan: RequestPlan, executor: HttpExecutor) -> None:
        self._named = plan.named
        self._executor = executor

    async def ask(self, _: Mapping[str, object], call: ToolContext) -> object:
        """Return what the service says of a call."""
        assert isinstance(call, StartedCall)
        known = {**call.arguments, KEY: call.idempotency_key}
        values = {name: value for name, value in known.items() if name in self._named}
        return await self._executor.execute(values, call)


def answered(
    tool: str, brought: Callable[[object, int], Executed], value: object, max_bytes: int
) -> Executed:
    """Return the outcome that a service's answer gives the call."""
    executed = brought(value, max_bytes)
    failure = executed.failure
    if failure is None:
        return executed
    status = failure.status
    if status == _ABSENT:
        answer = Reconciled.not_happened()
    elif failure.code in _OF_RESULTS or (status is not None and 200 <= status < 300):
        return executed  # it happened, and its answer is none that can be kept
    else:
        said = f"HTTP {status}" if status else failure.code
        answer = Reconciled.unknown(f"what became of it could not be looked up ({said})")
    return settled_as(tool, answer, brought, max_bytes)
