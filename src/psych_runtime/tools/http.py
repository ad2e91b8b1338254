"""HTTP tools: what a Spec declares as a tool like any other; only its executor differs (TOOL-2)."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pydantic import JsonValue

from psych_runtime._system import System
from psych_runtime.core.canonical import canonical_json
from psych_runtime.egress import Outbound
from psych_runtime.ports.secrets import SecretResolver
from psych_runtime.tools._fitting import by_schema
from psych_runtime.tools._http_answer import Read
from psych_runtime.tools._http_executor import READING, HttpExecutor, is_safe
from psych_runtime.tools._http_lookup import Lookup, answered, lookup_of
from psych_runtime.tools._http_request import RequestPlan, Unfit
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.returned import read, returned
from psych_schema.common import Risk
from psych_schema.model import ToolDefinition
from psych_schema.spec import HttpTool

__all__ = ["http_tool"]

_LATE_SECONDS: Final = 1.0  # so that a call ends by its own clock, which can say more
_OPENING: Final = ("additionalProperties", "patternProperties", "unevaluatedProperties")
_ANNOTATIONS: Final[Mapping[Risk, str]] = {
    "destructive": "destructive",
    "read_only": "read-only",
    "write": "write",
}


def http_tool(
    declared: HttpTool, *, outbound: Outbound, secrets: SecretResolver, system: System
) -> RegisteredTool:
    """Return what a published Spec declares as a tool.

    Its hash covers the whole declaration: consent to a call is consent to this request (R-12).
    """
    plan = RequestPlan(declared)
    execute = partial(HttpExecutor, outbound=outbound, secrets=secrets, system=system)
    document = canonical_json(
        {
            "name": declared.name,
            "description": declared.description,
            "parameters": _parameters(declared.input_schema),
            "http": declared.model_dump(
                mode="json", exclude={"name", "description", "input_schema"}
            ),
        }
    )

    def misfit(arguments: Mapping[str, JsonValue]) -> str | None:
        try:
            plan.request(arguments)
        except Unfit as error:
            return str(error)
        return None

    risk = _risk(declared)
    definition = ToolDefinition.model_validate_json(document)
    tool = RegisteredTool(
        name=declared.name,
        identity=f"http:{declared.name}",
        definition=definition,
        document=document,
        hash=hashlib.sha256(document.encode()).hexdigest(),
        risk=risk,
        annotations=frozenset({_ANNOTATIONS[risk]}),
        safe_to_retry=is_safe(declared),
        interruptible=True,
        concurrent=True,
        timeout_seconds=declared.timeout_seconds + _LATE_SECONDS,
        is_async=True,
        judge=by_schema(declared.name, definition.parameters, misfit),
        function=execute(declared, plan).execute,
        brought=partial(_brought, declared.name),
    )
    if declared.reconcile is None:
        return tool
    lookup = lookup_of(declared, declared.reconcile)
    found = RequestPlan(lookup)
    asks = Lookup(found, execute(lookup, found, redirects=0))  # another URL answers for itself
    return replace(
        tool,
        reconciler=replace(
            tool,
            name=f"reconcile of {tool.name}",
            function=asks.ask,
            brought=partial(answered, declared.name, tool.brought),
        ),
    )


def _brought(tool: str, value: object, max_bytes: int) -> Executed:
    """Return the outcome of a request, which may be known already."""
    match value:
        case Executed():
            return value
        case Read():
            return read(tool, value.value, max_bytes)
        case _:
            return returned(tool, None, value, max_bytes)


def _risk(declared: HttpTool) -> Risk:
    """Return what a call may do to the world: as the Spec says, else as the method means it."""
    if declared.risk is not None:
        return declared.risk
    return "read_only" if declared.method in READING else "write"


def _parameters(schema: JsonValue) -> dict[str, JsonValue]:
    """Return the schema that the model gets: closed, unless it says that it is open."""
    if not isinstance(schema, Mapping) or not schema:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if any(word in schema for word in _OPENING):
        return {**schema}
    return {**schema, "additionalProperties": False}
