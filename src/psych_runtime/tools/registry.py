"""Which functions are tools, under which names, and what is known of each (TOOL-1)."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, overload

from psych_runtime.core.canonical import canonical_json
from psych_runtime.errors import RegistrationError
from psych_runtime.ports.policy import ToolFacts
from psych_runtime.tools._fitting import Judge, by_signature
from psych_runtime.tools._json_schema import arguments_schema
from psych_runtime.tools._options import DEFAULT_TIMEOUT_SECONDS, ToolOptions
from psych_runtime.tools._signature import (
    Signature,
    function_name,
    is_async,
    read_signature,
)
from psych_runtime.tools.context import StartedCall, ToolContext
from psych_runtime.tools.decorator import marked_options
from psych_runtime.tools.executed import Executed
from psych_runtime.tools.reconciled import Reconcile, settled_as
from psych_runtime.tools.reserved import RESERVED_TOOL_NAMES
from psych_runtime.tools.returned import returned
from psych_schema.common import Risk
from psych_schema.model import ToolDefinition

__all__ = ["RegisteredTool", "ToolRegistry", "registered"]

_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
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


class ToolRegistry:
    """The functions that Specs may grant by name. Fill it before the worker starts."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}

    @overload
    def register[**P, R](
        self,
        fn: Callable[P, R],
        *,
        name: str | None = None,
        annotations: Collection[str] = frozenset(),
        safe_to_retry: bool = False,
        interruptible: bool = True,
        concurrent: bool = True,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        reconcile: Reconcile | None = None,
    ) -> Callable[P, R]: ...

    @overload
    def register[**P, R](
        self,
        fn: None = None,
        *,
        name: str | None = None,
        annotations: Collection[str] = frozenset(),
        safe_to_retry: bool = False,
        interruptible: bool = True,
        concurrent: bool = True,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        reconcile: Reconcile | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def register[**P, R](
        self,
        fn: Callable[P, R] | None = None,
        *,
        name: str | None = None,
        annotations: Collection[str] = frozenset(),
        safe_to_retry: bool = False,
        interruptible: bool = True,
        concurrent: bool = True,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        reconcile: Reconcile | None = None,
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Make a function a tool; as a call, as `@register` or as `@register(...)`.

        Args:
            fn: a function, bound method, partial or callable object, sync or async, with type
                hints and descriptions; None makes this a decorator.
            name: what the model sees; None is the function's own name.
            annotations: "read-only", "write" or "destructive"; without one it may write.
            safe_to_retry: it may run again after a crash, with the same idempotency key.
            interruptible: an interrupt may cut it off; else it is awaited up to its timeout.
            concurrent: it may run beside other calls of its turn.
            timeout_seconds: how long one execution may take.
            reconcile: told a StartedCall, finds out whether a call happened whose worker died
                while it ran, and returns a Reconciled; without it nobody knows (RUN-1).

        Raises:
            RegistrationError: says which parameter, and what to write.
        """
        options = ToolOptions(
            name=name,
            annotations=annotations,
            safe_to_retry=safe_to_retry,
            interruptible=interruptible,
            concurrent=concurrent,
            timeout_seconds=timeout_seconds,
            reconcile=reconcile,
        )

        def add(function: Callable[P, R]) -> Callable[P, R]:
            self._add(function, options)
            return function

        return add if fn is None else add(fn)

    def register_all(self, functions: Iterable[object]) -> None:
        """Make each a tool, marked with `@tool` or plain. RegistrationError for what is none."""
        for function in functions:
            if not callable(function):
                raise RegistrationError(tool=repr(function)[:80], problem="a tool is a function")
            self.register(function)

    def get(self, name: str) -> RegisteredTool | None:
        """Return the tool of that name, or None."""
        return self._tools.get(name)

    def names(self) -> frozenset[str]:
        """Return the names of all tools."""
        return frozenset(self._tools)

    def identities(self) -> frozenset[str]:
        """Return the identities of all tools, `code:` and the name."""
        return frozenset(one.identity for one in self._tools.values())

    def __iter__(self) -> Iterator[RegisteredTool]:
        """Give the tools sorted by name."""
        return iter(sorted(self._tools.values(), key=lambda one: one.name))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def _add(self, function: object, given: ToolOptions) -> None:
        name = _name(function, given)
        options = _options(function, given, name)
        name = options.name or name
        self._check_name(name)
        self._tools[name] = registered(function, name, options)

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            problem = (
                "the name must be a letter, then at most 63 letters, digits, _ or -; pass name="
            )
        elif name in RESERVED_TOOL_NAMES:
            problem = "the name is reserved for a tool of the runtime; pass another name="
        elif name in self._tools:
            problem = "a tool of that name is registered already; pass another name="
        else:
            return
        raise RegistrationError(tool=name, problem=problem)


def _name(function: object, given: ToolOptions) -> str:
    marked = marked_options(function)
    name = given.name or (marked.name if marked else None) or function_name(function)
    if name is None:
        raise RegistrationError(
            tool=type(function).__name__,
            problem="an object has no name of its own; pass name=",
        )
    return name


def _options(function: object, given: ToolOptions, name: str) -> ToolOptions:
    """Return the options of the mark or of the call; both at once would hide one of them."""
    marked = marked_options(function)
    if marked is None:
        return given.checked(name)
    if given != ToolOptions():
        raise RegistrationError(
            tool=name, problem="it has options from @tool and from register(); keep one of them"
        )
    return marked


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
