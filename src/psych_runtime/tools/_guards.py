"""Checks that stand before pydantic's own: what JSON tells apart and Python does not (MOD-2)."""

import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Literal

from pydantic import JsonValue
from pydantic_core import PydanticCustomError, PydanticKnownError, SchemaValidator

from psych_runtime.core.canonical import canonical_json
from psych_runtime.tools._json import whole_numbers

__all__ = ["array_only", "as_choice", "from_json", "nothing_twice", "same_boolean"]

type _Check = Callable[[object], object]

_KINDS: Final = frozenset({bool, dict, float, int, list, str, type(None)})


def as_choice(kind: str, choices: Sequence[tuple[JsonValue, object]]) -> _Check:
    """Return what replaces a JSON form by its choice; true is not 1.

    Raises:
        ValueError: two choices have one JSON form.
    """
    members: dict[str | None, object] = {_key(form): member for form, member in choices}
    if len(members) < len({id(member) for _, member in choices}):
        raise ValueError("two of its choices are the same in JSON")
    said = _listed([form for form, _ in choices])
    code: Literal["enum", "literal_error"] = "enum" if kind == "enum" else "literal_error"

    def check(value: object) -> object:
        key = _key(value)
        if key is not None and key in members:
            member = members[key]
            # Pydantic finds most members of an Enum itself, and in a union prefers a str to them.
            found = code == "enum" and isinstance(member, Enum) and member.value == value
            return value if found else member
        if isinstance(value, bool | int | float) or (code == "literal_error" and key is not None):
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
    keys = [_key(one) for one in value] if isinstance(value, list) else []
    if None not in keys and len(set(keys)) < len(keys):
        raise PydanticCustomError("unique", "Input should hold nothing twice")
    return value


def array_only(value: object) -> object:
    """Refuse an object where the schema says an array."""
    if isinstance(value, dict):
        raise PydanticKnownError("tuple_type")
    return value


def from_json(strict: SchemaValidator) -> _Check:
    """Return what reads the JSON form of a type that JSON lacks, also where Python is at hand.

    A validator of the author's gives on what it got: the text of a date, not the date.
    """

    def check(value: object) -> object:
        if type(value) not in _KINDS:
            return value
        found: object = strict.validate_json(json.dumps(value))
        return found

    return check


def _key(value: object) -> str | None:
    """Return a text that tells JSON values apart as JSON Schema does: 1.0 is 1, true is not.

    None for what is no JSON: an object that a validator of the author's has made.
    """
    if type(value) not in _KINDS:
        return None
    try:
        plain: JsonValue = json.loads(json.dumps(value, allow_nan=False))
        return canonical_json(whole_numbers(plain))
    except (TypeError, ValueError, RecursionError):
        return None


def _listed(forms: Sequence[object]) -> str:
    words = [repr(one) if isinstance(one, str) else _word(one) for one in forms]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _word(form: object) -> str:
    return json.dumps(form, ensure_ascii=False, default=repr)
