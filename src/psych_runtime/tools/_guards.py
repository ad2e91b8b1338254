"""Checks that stand before pydantic's own: what JSON tells apart and Python does not (MOD-2)."""

import json
from collections.abc import Callable, Sequence
from typing import Final, Literal

from pydantic import JsonValue
from pydantic_core import PydanticCustomError, PydanticKnownError

from psych_runtime.core.canonical import canonical_json
from psych_runtime.tools._json import whole_numbers

__all__ = ["array_only", "as_choice", "json_kinds", "nothing_twice", "same_boolean"]

type _Check = Callable[[object], object]

_KINDS: Final = (str, int, float, list, dict, type(None))
_ARTICLES: Final = {"bytes": "bytes", "complex": "a complex number", "decimal": "a decimal"}


def as_choice(kind: str, choices: Sequence[tuple[JsonValue, object]]) -> _Check:
    """Return what replaces a JSON form by its choice; true is not 1.

    Raises:
        ValueError: two choices have one JSON form.
    """
    members = {_key(form): member for form, member in choices}
    if len(members) < len({id(member) for _, member in choices}):
        raise ValueError("two of its choices are the same in JSON")
    said = _listed([form for form, _ in choices])
    code: Literal["enum", "literal_error"] = "enum" if kind == "enum" else "literal_error"

    def check(value: object) -> object:
        key = _key(value) if type(value) in _KINDS or isinstance(value, bool) else None
        if key is not None and key in members:
            return members[key]
        if isinstance(value, bool | int | float):
            raise PydanticKnownError(code, {"expected": said})
        if code == "literal_error" and key is not None:
            raise PydanticKnownError(code, {"expected": said})
        return value

    return check


def same_boolean(expected: Sequence[object]) -> _Check:
    """Return what refuses True where 1 is meant, and 1 where True is."""

    def check(value: object) -> object:
        equal = [one for one in expected if isinstance(one, bool | int | float) and one == value]
        if equal and not any(isinstance(one, bool) == isinstance(value, bool) for one in equal):
            raise PydanticKnownError("literal_error", {"expected": _listed(expected)})
        return value

    return check


def nothing_twice(value: object) -> object:
    """Refuse an array that holds one thing twice: the schema says that it is a set."""
    if isinstance(value, list) and len({_key(one) for one in value}) < len(value):
        raise PydanticCustomError("unique", "Input should hold nothing twice")
    return value


def array_only(value: object) -> object:
    """Refuse an object where the schema says an array."""
    if isinstance(value, dict):
        raise PydanticKnownError("tuple_type")
    return value


def json_kinds(kind: str, kinds: tuple[type, ...]) -> _Check:
    """Return what refuses JSON of any other kind than those that the schema says."""
    wanted = _ARTICLES.get(kind, f"a valid {kind}")

    def check(value: object) -> object:
        known = type(value) in _KINDS or isinstance(value, bool)
        if known and (type(value) not in kinds):
            raise PydanticCustomError("json_kind", "Input should be {wanted}", {"wanted": wanted})
        return value

    return check


def _key(value: object) -> str:
    """Return a text that tells JSON values apart as JSON Schema does; 1.0 is 1."""
    plain: JsonValue = json.loads(json.dumps(value))
    return canonical_json(whole_numbers(plain))


def _listed(forms: Sequence[object]) -> str:
    words = [repr(one) if isinstance(one, str) else _word(one) for one in forms]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _word(form: object) -> str:
    return json.dumps(form, ensure_ascii=False, default=repr)
