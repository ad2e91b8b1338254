"""Walks a generated type along a document: what pydantic's locations mean, where models are.

A location holds the tags of unions, which are no keys of the document; only the type tells.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Literal,
    NamedTuple,
    TypeAliasType,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, JsonValue

__all__ = ["Part", "Spot", "constants", "follow", "models", "tags"]


class Spot(NamedTuple):
    """Where a location leads."""

    path: tuple[str | int, ...]
    value: JsonValue  # None also when there is nothing
    kind: object  # the type expected here, aliases resolved
    owner: type[BaseModel] | None  # the model whose field it is


class Part(NamedTuple):
    """A mapping in a document, and the model that it should be."""

    path: tuple[str | int, ...]
    model: type[BaseModel]
    members: dict[str, JsonValue]


def follow(kind: object, value: JsonValue, location: Sequence[str | int]) -> Spot:
    """Return where a pydantic `location` leads in `value`, which should be a `kind`."""
    path: list[str | int] = []
    owner: type[BaseModel] | None = None
    kind, tagged = _resolve(kind, value)
    rest = list(location)
    while rest:
        if tagged:
            rest.pop(0)
            tagged = False
            continue
        part = rest.pop(0)
        owner = kind if _is_model(kind) else None
        kind = _inner(kind, part)
        value = _part(value, part)
        path.append(part)
        kind, tagged = _resolve(kind, value)
    return Spot(tuple(path), value, kind, owner)


def tags(kind: object, field: str) -> list[str]:
    """Return the values that `field` may have in the branches of a union."""
    found: list[str] = []
    for branch in _branches(_strip(kind)):
        inner = _strip(branch)
        if _is_model(inner) and field in inner.model_fields:
            found += [str(value) for value in get_args(inner.model_fields[field].annotation)]
    return sorted(found)


def models(kind: object, value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[Part]:
    """Yield each mapping in `value` that should be a model, the outermost first."""
    kind, _ = _resolve(kind, value)
    members: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, list):
        members = enumerate(value)
    elif isinstance(value, dict):
        members = value.items()
        if _is_model(kind):
            yield Part(path, kind, value)
    for name, member in members:
        yield from models(_inner(kind, name), member, (*path, name))


def constants(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each field that has one value only: the tags of unions."""
    for name, field in model.model_fields.items():
        values = get_args(field.annotation)
        if get_origin(field.annotation) is Literal and len(values) == 1:
            yield name, str(values[0])


def _resolve(kind: object, value: JsonValue) -> tuple[object, bool]:
    """Return the type that `value` should be, and whether pydantic puts a tag into locations."""
    kind = _strip(kind)
    branches = _branches(kind)
    if len(branches) == 1:
        return kind, False
    for branch in branches:
        inner = _strip(branch)
        if _is_model(inner) and isinstance(value, dict) and _is_tagged(inner, value):
            return inner, True
    return kind, True


def _is_tagged(model: type[BaseModel], value: Mapping[str, JsonValue]) -> bool:
    """Say whether a constant field of `model` is in `value` as the model wants it."""
    return any(value.get(name) == tag for name, tag in constants(model))


@cache
def _strip(kind: object) -> object:
    """Return a type without aliases, annotations and null."""
    while True:
        if isinstance(kind, TypeAliasType):
            kind = kind.__value__
        elif get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        else:
            branches = _branches(kind)
            if len(branches) != 1 or branches[0] is kind:
                return kind
            kind = branches[0]


def _branches(kind: object) -> list[object]:
    if get_origin(kind) not in (Union, UnionType):
        return [kind]
    return [branch for branch in get_args(kind) if branch is not NoneType]


def _inner(kind: object, part: str | int) -> object:
    """Return the type of a field, an item or a member; None when there is no such thing."""
    if _is_model(kind):
        field = kind.model_fields.get(str(part))
        return None if field is None else field.annotation
    arguments = get_args(kind)
    if isinstance(part, int):
        return arguments[0] if arguments else None
    return arguments[1] if len(arguments) == 2 else None


def _part(value: JsonValue, part: str | int) -> JsonValue:
    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
