"""What a function's signature, hints and docstring say of it as a tool (TOOL-1).

Everything that cannot be told to a model is refused here, with the parameter's name.
"""

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Coroutine, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from psych_runtime.errors import RegistrationError
from psych_runtime.tools._core_schema import (
    Checked,
    UnsupportedHint,
    check_python,
    for_arguments,
    for_results,
)
from psych_runtime.tools._docstring import Docstring, read_docstring
from psych_runtime.tools._hints import described, ignored, is_context, reason, resolve_hints, unread
from psych_runtime.tools._json_schema import Parameter, check_schema
from psych_runtime.tools.text import clip, did_you_mean

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Signature", "function_name", "is_async", "read_signature", "target_of"]

_PARAMETER_NAME: Final = re.compile(r"[a-zA-Z0-9_]{1,64}")
_CALL: Final = "__call__"


class Signature(NamedTuple):
    """What is needed to offer, check and call a function."""

    description: str
    parameters: tuple[Parameter, ...]
    context_parameters: tuple[str, ...]  # those that get the ToolContext
    returns: Checked | None  # None: the function does not say
    is_async: bool


def target_of(function: object) -> object:
    """Return the plain function behind partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif inspect.isfunction(function):
            return inspect.unwrap(function)
        elif inspect.isbuiltin(function) or inspect.isclass(function):
            return function
        else:
            call = getattr(type(function), _CALL, None)
            if not inspect.isfunction(call):
                return function
            function = call


def function_name(function: object) -> str | None:
    """Return the name of a function or method; an object that can be called has none."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else None


def read_signature(function: object, tool: str) -> Signature:
    """Return what `function` says of itself.

    Raises:
        RegistrationError: with the parameter's name, and what to write.
    """
    target = target_of(function)
    _check_kind(function, target, tool)
    signature = _inspected(function, tool)
    hints = resolve_hints(target, tool)
    docstring = _docstring(function, target)
    if not docstring.description:
        raise RegistrationError(
            tool=tool, problem="no description: begin its docstring with what it does and when"
        )
    bound = function.keywords if isinstance(function, functools.partial) else {}
    parameters, contexts = list[Parameter](), list[str]()
    for one in signature.parameters.values():
        if one.name in bound:
            continue
        _check_parameter(one, hints, tool)
        hint = hints.get(one.name, one.annotation)
        if is_context(hint):
            contexts.append(one.name)
            continue
        parameters.append(_parameter(one, hint, docstring, tool))
    return Signature(
        docstring.description,
        tuple(parameters),
        tuple(contexts),
        _returns(hints, signature, tool),
        is_async(function),
    )


def _check_kind(function: object, target: object, tool: str) -> None:
    if inspect.isclass(function):
        problem = "a class is no tool; register a function, or a method of an instance"
    elif not callable(function):
        problem = f"a {type(function).__name__} cannot be called; register a function"
    elif getattr(target, "__name__", "") == "<lambda>":
        problem = "a lambda has no name, hints or docstring; write it as a def"
    elif inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        problem = "a generator is no tool; collect what it yields and return a list"
    else:
        return
    raise RegistrationError(tool=tool, problem=problem)


def _inspected(function: object, tool: str) -> inspect.Signature:
    assert callable(function)
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            tool=tool, problem="it has no signature to read; wrap it in a def with type hints"
        ) from error


def is_async(function: object) -> bool:
    """Tell whether calling `function` gives something to await."""
    called = getattr(type(function), _CALL, None)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _docstring(function: object, target: object) -> Docstring:
    while isinstance(function, functools.partial):
        function = function.func
    own = None if inspect.isroutine(function) else getattr(target, "__doc__", None)
    return read_docstring(own or inspect.getdoc(function))


def _check_parameter(
    one: inspect.Parameter, hints: Mapping[str, "TypeForm[object]"], tool: str
) -> None:
    if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
        problem = "a model cannot be told what *args or **kwargs take; name each parameter"
    elif one.kind is one.POSITIONAL_ONLY:
        problem = "arguments are passed by name; remove the `/` behind it"
    elif not _PARAMETER_NAME.fullmatch(one.name):
        problem = "providers take names of at most 64 letters, digits and underscores"
    elif one.name not in hints and one.annotation is one.empty:
        problem = "no type hint: write what it takes"
        if one.name in ("self", "cls"):
            problem = "a method must be bound; register it on an instance"
    elif isinstance(one.default, FieldInfo):
        problem = "a Field as default; write Annotated[type, Field(...)] = default"
    else:
        return
    raise RegistrationError(tool=tool, parameter=one.name, problem=problem)


def _parameter(
    one: inspect.Parameter, hint: "TypeForm[object]", docstring: Docstring, tool: str
) -> Parameter:
    description = described(hint) or docstring.parameters.get(one.name)
    if not description:
        near = did_you_mean(one.name, docstring.parameters)
        raise RegistrationError(
            tool=tool,
            parameter=one.name,
            problem="no description: add it to the docstring's Args section, "
            f'or write Annotated[type, "what it is"]{near}',
        )
    if lost := ignored(hint):
        problem = f"its default is in a Field; write it as `{one.name}: ... = default`"
        if not lost.startswith("default"):
            problem = f"Field({lost}=...) has no effect on a parameter; remove it"
        raise RegistrationError(tool=tool, parameter=one.name, problem=problem)
    adapter, checked = _checked(hint, tool, one.name)
    required = one.default is one.empty
    if not required:
        _check_default(one, adapter, tool)
    return Parameter(one.name, description, required, None if required else one.default, checked)


def _check_default(one: inspect.Parameter, adapter: TypeAdapter[object], tool: str) -> None:
    try:
        check_python(for_results(adapter), one.default)
    except Exception as error:  # validators are foreign code
        shown = clip(repr(one.default), 60)
        hint = "; write `| None` into the hint" if one.default is None else ""
        raise RegistrationError(
            tool=tool,
            parameter=one.name,
            problem=f"its default {shown} does not fit its hint{hint}",
        ) from error


def _checked(
    hint: "TypeForm[object]", tool: str, parameter: str
) -> tuple[TypeAdapter[object], Checked]:
    try:
        _refuse_unread(hint)
        adapter: TypeAdapter[object] = TypeAdapter(hint)
        checked = for_arguments(adapter)
        check_schema(checked.schema)
    except Exception as error:  # pydantic, and what the type itself does to it
        why = str(error) if isinstance(error, UnsupportedHint) else reason(error)
        raise RegistrationError(
            tool=tool,
            parameter=parameter,
            problem=f"its type cannot be told to a model ({why}); "
            "use plain types, Literal, Enum, a dataclass, a TypedDict or a pydantic model",
        ) from error
    return adapter, checked


def _refuse_unread(hint: object) -> None:
    if (name := unread(hint)) is not None:
        raise UnsupportedHint(f"{name} is not checked as a whole; use list[...]")


def _returns(
    hints: Mapping[str, "TypeForm[object]"], signature: inspect.Signature, tool: str
) -> Checked | None:
    hint = hints.get("return", signature.return_annotation)
    if hint is signature.empty:
        return None
    if typing.get_origin(hint) in (Awaitable, Coroutine):
        hint = typing.get_args(hint)[-1]
    try:
        _refuse_unread(hint)
        return for_results(TypeAdapter(hint))
    except Exception as error:  # pydantic, and what the type itself does to it
        why = str(error) if isinstance(error, UnsupportedHint) else reason(error)
        raise RegistrationError(
            tool=tool,
            parameter="return",
            problem=f"its return type cannot be checked ({why}); "
            "return plain types, a dataclass, a TypedDict or a pydantic model",
        ) from error
