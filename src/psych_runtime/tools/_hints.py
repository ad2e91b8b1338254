"""Type hints: resolved, and what stands beside a type in Annotated (TOOL-1)."""

import types
import typing
from collections import abc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic.fields import FieldInfo

from psych_runtime.errors import RegistrationError
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.text import clip

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["described", "ignored", "is_context", "reason", "resolve_hints", "unread"]

_REASON_BYTES: Final = 300
_PLAIN_FIELD: Final = FieldInfo()
# What Field takes for members of classes only, most telling first.
_FIELD_ONLY: Final = (
    *("default", "default_factory", "alias", "validation_alias", "serialization_alias"),
    *("alias_priority", "validate_default", "exclude", "exclude_if", "frozen", "init"),
    *("init_var", "kw_only", "repr"),
)
# Pydantic refuses some of these, and reads some lazily.
_UNREAD: Final = (
    *(abc.AsyncGenerator, abc.AsyncIterable, abc.AsyncIterator, abc.Collection, abc.Container),
    *(abc.Generator, abc.Iterable, abc.Iterator, abc.Reversible),
)


def resolve_hints(target: object, tool: str) -> Mapping[str, "TypeForm[object]"]:
    """Resolve all hints; when that fails, name the parameter to blame.

    Raises:
        RegistrationError: a hint names something that is not there.
    """
    try:
        return typing.get_type_hints(target, localns=_type_parameters(target), include_extras=True)
    except Exception as error:  # hints are foreign expressions: anything may be raised
        raise RegistrationError(
            tool=tool,
            parameter=_to_blame(target),
            problem=f"a hint cannot be resolved ({reason(error)}); "
            "import or define the type at module level",
        ) from error


def _type_parameters(target: object) -> dict[str, object]:
    """Return T of `def f[T]` by name: not every Python finds it from a hint that is text."""
    return {one.__name__: one for one in getattr(target, "__type_params__", ())}


def _to_blame(target: object) -> str | None:
    """Return the first parameter whose hint cannot be resolved alone."""
    names = getattr(target, "__globals__", {})
    for name, hint in getattr(target, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: hint})
        try:
            typing.get_type_hints(alone, names, _type_parameters(target))
        except Exception:
            return str(name)
    return None


def _metadata(hint: object) -> Iterator[object]:
    """Yield what stands beside the type in Annotated, also inside an alias or a union."""
    if isinstance(hint, typing.TypeAliasType):
        yield from _metadata(hint.__value__)
    elif typing.get_origin(hint) is Annotated:
        inner, *beside = typing.get_args(hint)
        yield from beside
        yield from _metadata(inner)
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from _metadata(member)


def described(hint: object) -> str | None:
    """Return the first text beside the type: a plain string, a Field's or a Doc's."""
    for one in _metadata(hint):
        documented = getattr(one, "documentation", None)  # typing_extensions.Doc
        text = one.description if isinstance(one, FieldInfo) else documented
        text = one if isinstance(one, str) else text
        if isinstance(text, str) and text.strip():
            return text.strip()
    return None


def ignored(hint: object) -> str | None:
    """Return the first argument of a Field in the hint that only members of classes heed."""
    for one in _everything(hint):
        for name in _FIELD_ONLY if isinstance(one, FieldInfo) else ():
            if getattr(one, name, None) != getattr(_PLAIN_FIELD, name, None):
                return name
    return None


def unread(hint: object) -> str | None:
    """Return the name of a type in the hint whose items nobody reads before the function."""
    for one in _everything(hint):
        for kind in _UNREAD:
            if one is kind:
                return kind.__name__
    return None


def _everything(hint: object) -> Iterator[object]:
    """Yield each type in a hint, its generic class, and what stands beside it."""
    if isinstance(hint, typing.TypeAliasType):
        yield from _everything(hint.__value__)
        return
    origin = typing.get_origin(hint)
    yield hint if origin is None else origin
    if origin is not typing.Literal:
        for part in typing.get_args(hint):
            yield from _everything(part)


def is_context(hint: object) -> bool:
    """Tell whether a parameter of this type gets the ToolContext."""
    if isinstance(hint, typing.TypeAliasType):
        return is_context(hint.__value__)
    if typing.get_origin(hint) is Annotated:
        return is_context(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [one for one in typing.get_args(hint) if one is not types.NoneType]
        return bool(members) and all(is_context(one) for one in members)
    return hint is ToolContext


def reason(error: Exception) -> str:
    """Return the first line of a foreign error."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return clip(f"{type(error).__name__}: {lines[0]}", _REASON_BYTES)
