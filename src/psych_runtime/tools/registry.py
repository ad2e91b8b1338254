"""Which functions are tools, and under which names (TOOL-1)."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, overload

from psych_runtime.errors import RegistrationError
from psych_runtime.tools._options import DEFAULT_TIMEOUT_SECONDS, ToolOptions
from psych_runtime.tools._signature import function_name
from psych_runtime.tools.decorator import marked_options
from psych_runtime.tools.reconciled import Reconcile
from psych_runtime.tools.registered import RegisteredTool, registered
from psych_runtime.tools.reserved import RESERVED_TOOL_NAMES

__all__ = ["ToolRegistry"]

_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")


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
