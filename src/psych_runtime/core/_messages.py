"""Pydantic's errors in our words, each with a stable code and the nearest valid name (SPEC-4)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, get_args

from pydantic import JsonValue
from pydantic_core import ErrorDetails

from psych_runtime.core._locate import MAX_DETAILED, pointer_of
from psych_runtime.core._redact import REDACTED, is_secret_name, kind_of, shown, shown_in
from psych_runtime.core._shape import Spot, follow, tags
from psych_runtime.core.issues import Issue
from psych_runtime.core.near import nearest

__all__ = ["issues_of"]

_MISSING: Final = frozenset({"missing", "union_tag_not_found"})
_CLASS: Final = re.compile(r"\^\[([^\]]+)\]\[([^\]]+)\]\{0,([0-9]+)\}\$")
_TYPES: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "mapping_type": "a mapping",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
    "string_type": "a text",
    "tuple_type": "a list",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}
_SIZES: Final[Mapping[str, tuple[str, str]]] = {
    "string_too_long": ("max_length", "characters"),
    "too_long": ("max_length", "items"),
    "string_too_short": ("min_length", "characters"),
    "too_short": ("min_length", "items"),
}


class _Said(NamedTuple):
    message: str
    code: str
    value: str | None = None
    suggestion: str | None = None
    meant: str | None = None  # looked for among `valid`, unless there are too many issues
    valid: Sequence[str] = ()


def issues_of(kind: object, document: JsonValue, errors: Iterable[ErrorDetails]) -> Iterator[Issue]:
    """Yield pydantic's errors about `document`, which should be a `kind`, as issues."""
    for index, error in enumerate(errors):
        yield _issue_of(kind, document, error, detailed=index < MAX_DETAILED)


def _issue_of(kind: object, document: JsonValue, error: ErrorDetails, *, detailed: bool) -> Issue:
    spot = follow(kind, document, error["loc"])
    context = error.get("ctx", {})
    problem = error["type"]
    path = list(spot.path)
    if problem in ("union_tag_invalid", "union_tag_not_found"):
        path.append(str(context["discriminator"]).strip("'"))
    said = _say(problem, context, spot, str(path[-1]) if path else "", error["msg"])
    value = said.value
    if value is None and problem not in _MISSING:
        value = shown_in([part for part in path if isinstance(part, str)], spot.value)
    suggestion = said.suggestion
    if detailed and said.meant is not None:
        suggestion = nearest(said.meant, said.valid)
    message = said.message
    if problem == "extra_forbidden" and suggestion is None:
        message += f"; there are {', '.join(said.valid)}"
    return Issue(pointer_of(path), message, said.code, value, suggestion)


def _say(
    problem: str, context: Mapping[str, object], spot: Spot, name: str, otherwise: str
) -> _Said:
    if problem in ("int_type", "int_from_float") and isinstance(spot.value, float):
        return _Said("must be a whole number", "wrong_type")
    if problem in _TYPES:
        return _Said(f"must be {_TYPES[problem]}, not {kind_of(spot.value)}", "wrong_type")
    if problem in _BOUNDS:
        key, words = _BOUNDS[problem]
        code = "too_small" if problem.startswith("greater") else "too_large"
        return _Said(f"{words} {shown(_whole(context[key]))}", code)
    if problem in _SIZES:
        return _size(problem, context)
    other = _OTHERS.get(problem)
    return _Said(otherwise, problem) if other is None else other(context, spot, name)


def _size(problem: str, context: Mapping[str, object]) -> _Said:
    key, unit = _SIZES[problem]
    bound = context[key]
    if key == "max_length":
        return _Said(f"must have at most {bound} {unit}", "too_long")
    if bound == 1:
        return _Said("must not be empty", "too_short")
    return _Said(f"must have at least {bound} {unit}", "too_short")


def _missing(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    return _Said(f"{name!r} is missing", "missing_field")


def _missing_tag(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    return _Said(
        f"{name!r} is missing; write {name}: {_either(tags(spot.kind, name))}", "missing_field"
    )


def _either(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _unknown(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    fields = [] if spot.owner is None else list(spot.owner.model_fields)
    return _Said("unknown field", "unknown_field", shown(name), meant=name, valid=fields)


def _tag(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    return _choice(spot.value, tags(spot.kind, name), "unknown_kind", name)


def _literal(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    valid = [str(value) for value in get_args(spot.kind)]
    return _choice(spot.value, valid, "unknown_kind" if len(valid) == 1 else "unknown_value", name)


def _choice(value: JsonValue, valid: list[str], code: str, name: str) -> _Said:
    """Say which values there are; of a tag's mapping the tag is the value."""
    given = value.get(name) if isinstance(value, dict) else value
    meant = given if isinstance(given, str) else None
    choice = "must be" if len(valid) == 1 else "must be one of"
    listed = ", ".join(repr(one) for one in valid)
    value = shown_in((name,), given)
    return _Said(f"{choice} {listed}", code, value, meant=meant, valid=valid)


def _pattern(context: Mapping[str, object], spot: Spot, name: str) -> _Said:
    pattern = str(context["pattern"])
    words = _CLASS.fullmatch(pattern)
    if words is None:
        return _Said(f"must match {pattern}", "pattern")
    first, rest, more = words.groups()
    message = f"must start with one of {first}, then at most {more} of {rest}"
    meant = None if is_secret_name(name) else _like(pattern, rest, spot.value)
    return _Said(message, "pattern", suggestion=meant)


def _like(pattern: str, allowed: str, value: JsonValue) -> str | None:
    """Return the name that somebody wanted who wrote 'My Agent'."""
    if not isinstance(value, str):
        return None
    wanted = value if "A-Z" in allowed else value.lower()
    wanted = re.sub(f"[^{allowed}]+", "-", wanted).strip("-")
    return wanted if wanted and re.search(pattern, wanted) and shown(value) != REDACTED else None


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_OTHERS: Final[Mapping[str, Callable[[Mapping[str, object], Spot, str], _Said]]] = {
    "extra_forbidden": _unknown,
    "literal_error": _literal,
    "missing": _missing,
    "string_pattern_mismatch": _pattern,
    "union_tag_invalid": _tag,
    "union_tag_not_found": _missing_tag,
}
