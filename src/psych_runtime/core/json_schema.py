"""Checks JSON Schemas that come inside documents: is it one, and does it stand alone (PUB-1).

Neither a schema nor a value can make a check take long (SEC-3): see `_work` and `_patterns`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from psych_runtime.core._locate import pointer_of, segments_of
from psych_runtime.core._meta_schema import META_SCHEMA
from psych_runtime.core._patterns import BadPattern, Patterns
from psych_runtime.core._plain import plain
from psych_runtime.core._redact import shown
from psych_runtime.core._schema_circles import circles
from psych_runtime.core._schema_judge import Fault, Judge
from psych_runtime.core._schema_parts import REFERENCES, Path, References, subschemas
from psych_runtime.core._schema_words import best_of, words_of
from psych_runtime.core._work import TooMuchWork, Work
from psych_runtime.core.canonical import MAX_SPEC_BYTES
from psych_runtime.core.foreign import MAX_DEPTH
from psych_runtime.core.issues import Issue
from psych_runtime.core.near import nearest
from psych_runtime.errors import InvalidPayload

__all__ = ["Work", "check_instance", "check_json_schema"]

_CIRCLE: Final = "leads back to itself, so no value could ever be checked"
_NOWHERE: Final = "must lead to a place in this schema, as #/$defs/Name does"
_TOO_MUCH: Final = "asks for too much work to be checked: make it smaller, its patterns simpler"
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_CODE: Final = "invalid_json_schema"
_STEPS_A_SCHEMA: Final = 20
_STEPS_AN_ISSUE: Final = 200


def check_instance(value: JsonValue, schema: JsonValue, *, what: str) -> None:
    """Raise InvalidPayload unless `value` fits `schema`, which was judged when it was published.

    Also where the check would take too many steps, and where an older schema has a pattern that
    cannot be matched; nobody knows then whether the value fits.
    """
    if not isinstance(schema, Mapping | bool):
        return
    try:
        faults = Judge(schema, Work()).faults(value)
    except RecursionError:
        problem = "too deep, or its schema leads in a circle"
        raise InvalidPayload(what=what, problem=problem) from None
    except TooMuchWork:
        problem = "its schema asks for too much work: give less, or publish a simpler schema"
        raise InvalidPayload(what=what, problem=problem) from None
    except BadPattern as error:
        problem = f"its schema has the pattern {shown(error.pattern)}: {error}"
        raise InvalidPayload(what=what, problem=problem) from None
    if faults:
        fault = best_of(faults)
        where = pointer_of(fault.path) or "/"
        raise InvalidPayload(what=what, problem=f"{where}: {words_of(fault)}"[:600])


def check_json_schema(
    schema: object, pointer: str, *, work: Work | None = None, is_matched: bool = True
) -> list[Issue]:
    """Return everything wrong with `schema` (draft 2020-12); it stands at `pointer`.

    Refused beside what the meta-schema refuses: references that leave the document or lead
    nowhere, patterns that cannot be matched in bounded time, and what takes too many steps to
    be checked. No network, no recursion beyond the depth bound.

    Args:
        work: the steps that are left, when several schemas share them.
        is_matched: false of a schema that only tells: its patterns are then not looked at.

    Raises PayloadTooLarge above 1 MiB.
    """
    base = tuple(segments_of(pointer))
    value, issues = plain(schema, max_bytes=MAX_SPEC_BYTES, max_depth=MAX_DEPTH)
    if issues:
        return [issue._replace(pointer=pointer + issue.pointer) for issue in issues]
    found: dict[str, Issue] = {}
    work = Work() if work is None else work
    try:
        for issue in _issues(value, base, work, is_matched=is_matched):
            work.spend(_STEPS_AN_ISSUE)
            found.setdefault(issue.pointer, issue)
    except TooMuchWork:
        found.setdefault(pointer, Issue(pointer, _TOO_MUCH, _CODE))
    return list(found.values())


def _issues(value: JsonValue, base: Path, work: Work, *, is_matched: bool) -> Iterator[Issue]:
    patterns, references = Patterns(work), References(value)
    for fault in Judge(META_SCHEMA, work, patterns).faults(value):
        yield _issue(fault, base)
    for path, part in subschemas(value):
        work.spend(_STEPS_A_SCHEMA)
        for keyword in REFERENCES:
            target = part.get(keyword)
            if isinstance(target, str) and references.place_of(target) is None:
                place = pointer_of((*base, *path, keyword))
                yield Issue(place, _NOWHERE, _CODE, shown(target))
        if is_matched:
            yield from _pattern_issues(part, (*base, *path), patterns)
    for path in circles(value, references):
        yield Issue(pointer_of((*base, *path)), _CIRCLE, _CODE)


def _issue(fault: Fault, base: Path) -> Issue:
    """Return what the meta-schema says, in our words."""
    path: Path = (*base, *fault.path)
    if fault.rule == "anyOf" and path[-1:] == ("type",):
        given = fault.value if isinstance(fault.value, str) else ""
        message = f"must be one of {', '.join(_TYPES)}, or a list of them"
        near = nearest(given, _TYPES)
        return Issue(pointer_of(path), message, _CODE, shown(fault.value), near)
    return Issue(pointer_of(path), words_of(fault), _CODE, shown(fault.value))


def _pattern_issues(part: dict[str, JsonValue], path: Path, patterns: Patterns) -> Iterator[Issue]:
    """Find what no meta-schema can: patterns that cannot be matched in bounded time."""
    named = part.get("patternProperties")
    found = [((*path, "patternProperties", one), one) for one in _names(named)]
    pattern = part.get("pattern")
    if isinstance(pattern, str):
        found.append(((*path, "pattern"), pattern))
    for place, text in found:
        try:
            patterns.matcher(text)
        except BadPattern as error:
            message = f"is no pattern that can be matched: {error}"
            yield Issue(pointer_of(place), message, _CODE, shown(text))


def _names(value: JsonValue) -> list[str]:
    return list(value) if isinstance(value, dict) else []
