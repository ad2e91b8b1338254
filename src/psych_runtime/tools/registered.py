"""A tool: what the model is told of it, what a policy may know, how it is run (TOOL-1)."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from psych_runtime.core.canonical import canonical_json
from psych_runtime.errors import RegistrationError
from psych_runtime.ports.policy import ToolFacts
from psych_runtime.tools._fitting import Judge, by_signature
from psych_runtime.tools._json_schema import arguments_schema
from psych_runtime.tools._options import ToolOptions
from psych_runtime.tools._signature import Signature, is_async, read_signature
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.reconciled import Reconcile, settled_as
from psych_runtime.tools.returned import returned
from psych_schema.common import Risk
from psych_schema.model import ToolDefinition

__all__ = ["RegisteredTool", "registered"]

_MAX_DEFINITION_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisteredTool:
    """A tool: what the model is told, what a policy may know, how it is run."""

    name: str
    identity: str
    definition: ToolDefinition
    document: str  # the definition as canonical JSON
    hash: str  # SHA-256 of `document`
    risk: Risk
    annotations: frozenset[str]
    safe_to_retry: bool
    interruptible: bool
    concurrent: bool
    timeout_seconds: float
    is_async: bool  # it runs on the loop; the others run in the worker's pool
    judge: Judge  # of arguments
    function: Callable[[Mapping[str, object], ToolContext], object]  # gets arguments by name
    brought: Callable[[object, int], Executed]  # what became of it, told what `function` gave
    reconciler: "RegisteredTool | None" = None
    """Finds out what became of a call, given a StartedCall; run as the tool itself is."""

    @property
    def facts(self) -> ToolFacts:
        """Return what a policy may know."""
        return ToolFacts(self.name, self.identity, self.risk, self.annotations)

    def call(self, values: Mapping[str, object], context: ToolContext) -> object:
        """Call the function with `values`, and with `context` where it asks for it."""
        return self.function(values, context)


def registered(
    function: object, name: str, options: ToolOptions, *, kind: str = "code", more: str = ""
) -> RegisteredTool:
    """Return a function as a tool; `more` is added to its description.

    Raises RegistrationError for what no model can be told.
    """
    signature = read_signature(function, name)
    signature = signature._replace(description=signature.description + more)
    document = _document(name, signature)
    definition = ToolDefinition.model_validate_json(document)
    tool = RegisteredTool(
        name=name,
        identity=f"{kind}:{name}",
        definition=definition,
        document=document,
        hash=hashlib.sha256(document.encode()).hexdigest(),
        risk=options.risk,
        annotations=frozenset(options.annotations),
        safe_to_retry=options.safe_to_retry,
        interruptible=options.interruptible,
        concurrent=options.concurrent,
        timeout_seconds=options.timeout_seconds,
        is_async=signature.is_async,
        judge=by_signature(signature.parameters, definition.parameters),
        function=_by_name(function, signature.context_parameters),
        brought=partial(returned, name, signature.returns),
    )
    defaults = {one.name: one.default for one in signature.parameters if not one.required}
    asks = options.reconcile
    return tool if asks is None else _with_reconciler(tool, asks, defaults)


def _with_reconciler(
    tool: RegisteredTool, reconcile: Reconcile, defaults: Mapping[str, object]
) -> RegisteredTool:
    """Return a tool whose calls can be looked up by `reconcile`."""

    def ask(_: Mapping[str, object], call: ToolContext) -> object:
        assert isinstance(call, StartedCall)
        return reconcile(replace(call, arguments={**defaults, **call.arguments}))

    def settled(answer: object, max_bytes: int) -> Executed:
        return settled_as(tool.name, answer, tool.brought, max_bytes)

    asks = replace(
        tool,
        name=f"reconcile of {tool.name}",
        function=ask,
        brought=settled,
        is_async=is_async(reconcile),
    )
    return replace(tool, reconciler=asks)


def _document(name: str, signature: Signature) -> str:
    try:
        text = canonical_json(
            {
                "name": name,
                "description": signature.description,
                "parameters": arguments_schema(signature.parameters),
            }
        )
    except Exception as error:  # what a type puts into its own schema is foreign
        raise RegistrationError(
            tool=name, problem=f"its schema cannot be written as JSON ({error})"
        ) from error
    if len(text.encode()) > _MAX_DEFINITION_BYTES:
        raise RegistrationError(
            tool=name,
            problem=f"its definition is larger than {_MAX_DEFINITION_BYTES} bytes; shorten it",
        )
    return text


def _by_name(
    function: object, context_parameters: tuple[str, ...]
) -> Callable[[Mapping[str, object], ToolContext], object]:
    assert callable(function)

    def call(values: Mapping[str, object], context: ToolContext) -> object:
        result: object = function(**values, **dict.fromkeys(context_parameters, context))
        return result

    return call
