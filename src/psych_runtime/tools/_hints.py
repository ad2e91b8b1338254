"""Type hints: resolved, and what stands beside a type in Annotated (TOOL-1)."""

import types
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic.fields import FieldInfo

from psych_runtime.errors import RegistrationError
from psych_runtime.tools._text import clip
from psych_runtime.tools.context import ToolContext

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["described", "is_context", "metadata", "reason", "resolve_hints"]

_REASON_BYTES: Final = 300


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


def metadata(hint: object) -> Iterator[object]:
    """Yield what stands beside the type in Annotated, also inside an alias or a union."""
    if isinstance(hint, typing.TypeAliasType):
        yield from metadata(hint.__value__)
    elif typing.get_origin(hint) is Annotated:
        inner, *beside = typing.get_args(hint)
        yield from beside
        yield from metadata(inner)
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from metadata(member)


def described(hint: object) -> str | None:
    """Return the first text beside the type: a plain string, a Field's or a Doc's."""
    for one in metadata(hint):
        documented = getattr(one, "documentation", None)  # typing_extensions.Doc
        text = one.description if isinstance(one, FieldInfo) else documented
        text = one if isinstance(one, str) else text
        if isinstance(text, str) and text.strip():
            return text.strip()
    return None


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
