"""Checks JSON Schemas that come inside documents: is it one, and does it stand alone (PUB-1)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from pydantic import JsonValue

from psych_runtime.core._locate import pointer_of, segments_of
from psych_runtime.core._plain import plain
from psych_runtime.core._redact import kind_of, shown
from psych_runtime.core.canonical import MAX_SPEC_BYTES
from psych_runtime.core.foreign import MAX_DEPTH
from psych_runtime.core.issues import Issue
from psych_runtime.core.near import nearest
from psych_runtime.errors import InvalidPayload

__all__ = ["check_instance", "check_json_schema"]

_CIRCLE: Final = "leads back to itself, so no value could ever be checked"
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_META: Final = Draft202012Validator(Draft202012Validator.META_SCHEMA)
# Keywords whose value is a schema, a list of them, or a mapping to them.
_ONE: Final = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_REFERENCES: Final = ("$dynamicRef", "$ref")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
# Keywords whose schemas judge the very value that the schema itself judges.
_IN_PLACE_ONE: Final = ("else", "if", "not", "then")
_IN_PLACE_MANY: Final = ("allOf", "anyOf", "oneOf")
_CODE: Final = "invalid_json_schema"
_WORDS: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}
_RULES: Final[Mapping[str, str]] = {
    "enum": "must be one of {}",
    "exclusiveMinimum": "must be more than {}",
    "minItems": "must not be empty",
    "minimum": "must be at least {}",
    "pattern": "must match {}",
    "uniqueItems": "holds one thing twice",
}

type _Path = tuple[str | int, ...]


def check_instance(value: JsonValue, schema: JsonValue, *, what: str) -> None:
    """Raise InvalidPayload unless `value` fits `schema`, which was judged when it was published."""
    if isinstance(schema, Mapping | bool):
        try:
            error = best_match(Draft202012Validator(schema).iter_errors(value))
        except RecursionError:
            problem = "too deep, or its schema leads in a circle"
            raise InvalidPayload(what=what, problem=problem) from None
        if error is not None:
            where = pointer_of(tuple(error.absolute_path)) or "/"
            raise InvalidPayload(what=what, problem=f"{where}: {error.message[:500]}")


def check_json_schema(schema: object, pointer: str) -> list[Issue]:
    """Return everything wrong with `schema` (draft 2020-12); it stands at `pointer`.

    Refused beside what the meta-schema refuses: references that leave the document or lead
    nowhere, and patterns that do not compile. No network, no recursion beyond the depth bound.
    Raises PayloadTooLarge above 1 MiB.
    """
    base = tuple(segments_of(pointer))
    value, issues = plain(schema, max_bytes=MAX_SPEC_BYTES, max_depth=MAX_DEPTH)
    if issues:
        return [issue._replace(pointer=pointer + issue.pointer) for issue in issues]
    found: dict[str, Issue] = {}
    for error in _META.iter_errors(value):
        issue = _issue(error, base)
        found.setdefault(issue.pointer, issue)
    for path, part in _subschemas(value, ()):
        for issue in _check_part(part, value, (*base, *path)):
            found.setdefault(issue.pointer, issue)
    for path in _circles(value):
        issue = Issue(pointer_of((*base, *path)), _CIRCLE, _CODE)
        found.setdefault(issue.pointer, issue)
    return list(found.values())


def _circles(whole: JsonValue) -> Iterator[_Path]:
    """Find the references that lead back to where they stand while one value is judged."""
    parts = {id(part): (path, part) for path, part in _subschemas(whole, ())}
    done: set[int] = set()
    for start in parts:
        trail = [(start, iter(_same_value(parts[start][1], whole)))]
        open_ = {start}
        if start in done:
            continue
        while trail:
            here, rest = trail[-1]
            there = next(
                (id(one) for one in rest if id(one) in parts and id(one) not in done), None
            )
            if there is None:
                done.add(here)
                open_.discard(here)
                trail.pop()
            elif there in open_:
                yield parts[here][0]
            else:
                open_.add(there)
                trail.append((there, iter(_same_value(parts[there][1], whole))))


def _same_value(part: dict[str, JsonValue], whole: JsonValue) -> Iterator[JsonValue]:
    """Yield the schemas that judge the value which `part` judges."""
    for keyword in _IN_PLACE_ONE:
        yield part.get(keyword)
    for keyword in _IN_PLACE_MANY:
        listed = part.get(keyword)
        yield from listed if isinstance(listed, list) else ()
    depending = part.get("dependentSchemas")
    yield from depending.values() if isinstance(depending, dict) else ()
    for keyword in _REFERENCES:
        target = part.get(keyword)
        if isinstance(target, str):
            yield _place_of(target, whole)


def _issue(error: ValidationError, base: _Path) -> Issue:
    """Return what the meta-schema says, in our words."""
    path: _Path = (*base, *error.absolute_path)
    value: object = error.instance
    rule = str(error.validator)
    bound: object = error.validator_value
    if rule == "anyOf" and path[-1:] == ("type",):
        given = value if isinstance(value, str) else ""
        message = f"must be one of {', '.join(_TYPES)}, or a list of them"
        near = nearest(given, _TYPES)
        return Issue(pointer_of(path), message, _CODE, shown(value), near)
    if rule == "type":
        wanted = bound if isinstance(bound, list) else [bound]
        words = " or ".join(_WORDS.get(str(one), str(one)) for one in wanted)
        message = f"must be {words}, not {kind_of(value)}"
    else:
        message = _RULES.get(rule, f"breaks the rule {rule!r} of JSON Schema").format(bound)
    return Issue(pointer_of(path), message, _CODE, shown(value))


def _subschemas(value: JsonValue, path: _Path) -> Iterator[tuple[_Path, dict[str, JsonValue]]]:
    """Yield each schema in a schema, itself first; `const`, `enum` and examples hold none."""
    if not isinstance(value, dict):
        return
    yield path, value
    for keyword in _ONE:
        yield from _subschemas(value.get(keyword), (*path, keyword))
    for keyword in _MANY:
        parts = value.get(keyword)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _subschemas(part, (*path, keyword, index))
    for keyword in _NAMED:
        named = value.get(keyword)
        for name, part in named.items() if isinstance(named, dict) else ():
            yield from _subschemas(part, (*path, keyword, name))


def _check_part(part: dict[str, JsonValue], whole: JsonValue, path: _Path) -> Iterator[Issue]:
    """Find what no meta-schema can: references that lead nowhere, patterns that do not compile."""
    for keyword in _REFERENCES:
        target = part.get(keyword)
        if isinstance(target, str) and not _leads_somewhere(target, whole):
            message = "must lead to a place in this schema, as #/$defs/Name does"
            yield Issue(pointer_of((*path, keyword)), message, _CODE, shown(target))
    patterns = part.get("patternProperties")
    named = patterns if isinstance(patterns, dict) else {}
    found = [((*path, "patternProperties", pattern), pattern) for pattern in named]
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        found.append(((*path, "pattern"), pattern))
    for place, text in found:
        try:
            re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            message = f"is no regular expression: {error}"
            yield Issue(pointer_of(place), message, _CODE, shown(text))


def _leads_somewhere(target: str, whole: JsonValue) -> bool:
    return isinstance(_place_of(target, whole), dict | bool)


def _place_of(target: str, whole: JsonValue) -> JsonValue:
    """Follow a reference within the document; anchors count, other documents do not."""
    if not target.startswith("#"):
        return None
    fragment = unquote(target[1:])
    if fragment and not fragment.startswith("/"):
        parts = (part for _, part in _subschemas(whole, ()))
        return next((one for one in parts if fragment in map(one.get, _ANCHORS)), None)
    place = whole
    for name in segments_of(fragment):
        if isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        elif isinstance(place, dict) and name in place:
            place = place[name]
        else:
            return None
    return place
