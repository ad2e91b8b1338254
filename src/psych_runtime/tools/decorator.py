"""`@tool`: options at the function, for `session(tools=[...])` and `registry.register` (TOOL-1)."""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import overload

from psych_runtime.errors import RegistrationError
from psych_runtime.tools._options import DEFAULT_TIMEOUT_SECONDS, ToolOptions
from psych_runtime.tools._signature import function_name, target_of
from psych_runtime.tools.reconciled import Reconcile

__all__ = ["marked_options", "tool"]

_MARK = "__psych_tool__"


@overload
def tool[**P, R](function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def tool[**P, R](
    *,
    name: str | None = None,
    annotations: Collection[str] = frozenset(),
    safe_to_retry: bool = False,
    interruptible: bool = True,
    concurrent: bool = True,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    reconcile: Reconcile | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def tool[**P, R](
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    annotations: Collection[str] = frozenset(),
    safe_to_retry: bool = False,
    interruptible: bool = True,
    concurrent: bool = True,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    reconcile: Reconcile | None = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function with the options that it is registered with; it stays as it is.

    The options are those of `ToolRegistry.register`; an unmarked function has the defaults.

    Raises:
        RegistrationError: an unknown or contradictory annotation, or a value out of range.
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

    def mark(marked: Callable[P, R]) -> Callable[P, R]:
        shown = name or function_name(marked) or type(marked).__name__
        _check_place(marked, shown)
        setattr(marked, _MARK, options.checked(shown))
        return marked

    return mark if function is None else mark(function)


def marked_options(function: object) -> ToolOptions | None:
    """Return the options that `@tool` put on a function, also below a partial or a method."""
    while True:
        options = getattr(function, _MARK, None)
        if isinstance(options, ToolOptions):
            return options
        if not isinstance(function, partial):
            break
        function = function.func
    options = getattr(target_of(function), _MARK, None)
    return options if isinstance(options, ToolOptions) else None


def _check_place(function: object, shown: str) -> None:
    if isinstance(function, staticmethod | classmethod):
        problem = f"@tool must stand below @{type(function).__name__}, next to the def"
    elif inspect.ismethod(function) or inspect.isbuiltin(function):
        problem = "a bound method cannot be marked; pass the options to register()"
    else:
        return
    raise RegistrationError(tool=shown, problem=problem)
