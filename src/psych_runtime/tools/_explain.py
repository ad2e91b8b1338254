"""Validation errors in words that a model can act on; values are never repeated (MOD-2, TOOL-7)."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails

from psych_runtime.tools.text import clip

__all__ = ["explain", "kind_of"]

_MAX_PLACES: Final = 6
_PLACE_BYTES: Final = 200
_PATH_BYTES: Final = 80
_MISSING: Final = ("missing", "missing_argument")
_ABOUT_SIZE: Final = ("should be a multiple", "should be greater", "should be less")
_NAME_OF_MEMBER: Final = "[key]"
_SHOULD: Final = re.compile(r"\w+ (should (?:be|hold|have|match) )")
_PREFIXES: Final = (
    ("Field required", "is required"),
    ("Missing required", "is required: missing"),
    ("Extra inputs are not permitted", "is not known here"),
    ("Unexpected", "is not known here: unexpected"),
    ("Value error, ", "is refused: "),
    ("Assertion failed, ", "is refused: "),
)


def explain(error: ValidationError, value: object, root: str) -> str:
    """Return what is wrong with `value`, each place with what is expected there; bounded."""
    places: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False, include_input=False):
        path, found, missing = _walk(detail, value, root)
        words = _words(detail)
        told = missing or not words.startswith("should be ") or words.startswith(_ABOUT_SIZE)
        got = "" if told else f", got {kind_of(found)}"
        said = places.setdefault(path, [])
        if words + got not in said:
            said.append(words + got)
    lines = [
        clip(f"{path} {' or '.join(said)}", _PLACE_BYTES)
        for path, said in list(places.items())[:_MAX_PLACES]
    ]
    if len(places) > _MAX_PLACES:
        lines.append(f"and {len(places) - _MAX_PLACES} more")
    return "; ".join(lines)


def kind_of(value: object) -> str:
    """Return the JSON kind of a value, or the name of its Python type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return clip(type(value).__name__, 60)


def _words(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "union_tag_invalid":
        return f"should have {context.get('discriminator')} one of {context.get('expected_tags')}"
    text = _SHOULD.sub(r"\1", detail["msg"], count=1)
    if text.startswith("should "):
        return text
    for prefix, words in _PREFIXES:
        if text.startswith(prefix):
            return words + text.removeprefix(prefix)
    return f"is refused: {text}"


def _walk(detail: ErrorDetails, value: object, root: str) -> tuple[str, object, bool]:
    """Follow the location as far as it names something; union branches and tags do not.

    Returns the path, what stands there, and whether its kind says nothing: it is not there, or
    it is the name of a member.
    """
    path, current, missing = root, value, False
    location = detail["loc"]
    for at, key in enumerate(location):
        current = _opened(current)
        last_is_missing = at == len(location) - 1 and detail["type"] in _MISSING
        if isinstance(current, Mapping):
            if key in current:
                path, current = f"{path}.{key}", current[key]
            elif last_is_missing:
                path, missing = f"{path}.{key}", True
        elif isinstance(current, list | tuple) and isinstance(key, int):
            if key < len(current):
                path, current = f"{path}[{key}]", current[key]
            elif last_is_missing:
                path, missing = f"{path}[{key}]", True
    if location[-1:] == (_NAME_OF_MEMBER,):
        return f"the name {clip(path, _PATH_BYTES)}", None, True
    return clip(path, _PATH_BYTES), current, missing


def _opened(value: object) -> object:
    """Return what names or indexes lead into: an instance as its fields."""
    if isinstance(value, RootModel):
        root: object = value.root
        return root
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    return value
