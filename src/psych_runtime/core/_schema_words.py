"""Says in words which rule of a JSON Schema a value breaks (SPEC-4)."""

from collections.abc import Mapping
from typing import Final

from psych_runtime.core._redact import kind_of, shown
from psych_runtime.core._schema_judge import Fault

__all__ = ["best_of", "words_of"]

_MOST_CHOICES: Final = 20
_LONGEST_BOUND: Final = 300
_WORDS: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}
_RULES: Final[Mapping[str, str]] = {
    "$dynamicRef": "cannot be judged: its schema leads nowhere at {}",
    "$ref": "cannot be judged: its schema leads nowhere at {}",
    "anyOf": "fits none of the choices that its schema gives",
    "const": "must be {}",
    "contains": "must hold at least {} of what its schema asks for",
    "enum": "must be one of {}",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be more than {}",
    "false": "may not be here",
    "maxContains": "must hold at most {} of what its schema asks for",
    "maxItems": "must hold at most {} items",
    "maxLength": "must have at most {} characters",
    "maxProperties": "must hold at most {} names",
    "maximum": "must be at most {}",
    "minItems": "must hold at least {} items",
    "minLength": "must have at least {} characters",
    "minProperties": "must hold at least {} names",
    "minimum": "must be at least {}",
    "multipleOf": "must be a multiple of {}",
    "not": "is what its schema excludes",
    "oneOf": "must fit exactly one of the choices that its schema gives",
    "pattern": "must match {}",
    "propertyNames": "has a name that its schema does not allow: {}",
    "required": "lacks {}",
    "uniqueItems": "holds one thing twice",
}


def words_of(fault: Fault) -> str:
    """Return what is wrong, as short as the schema and the value are long."""
    if fault.rule == "type":
        wanted = fault.bound if isinstance(fault.bound, list) else [fault.bound]
        words = " or ".join(_WORDS.get(str(one), str(one)) for one in wanted)
        return f"must be {words}, not {kind_of(fault.value)}"
    if fault.rule == "dependentRequired" and isinstance(fault.bound, list):
        return " must come with ".join(map(shown, fault.bound))
    if fault.rule in ("minItems", "minLength") and fault.bound == 1:
        return "must not be empty"
    return _RULES[fault.rule].format(_bound(fault))


def best_of(faults: list[Fault]) -> Fault:
    """Return the fault that tells most: the outermost, but of a choice that which got furthest."""
    best = min(faults, key=_depth)
    while best.inner:
        furthest = max(best.inner, key=_depth)
        if len(best.inner) > 1 and _depth(furthest) == min(map(_depth, best.inner)):
            return best
        best = furthest
    return best


def _depth(fault: Fault) -> int:
    return len(fault.path)


def _bound(fault: Fault) -> str:
    bound = fault.bound
    if fault.rule == "enum" and isinstance(bound, list):
        more = ", ..." if len(bound) > _MOST_CHOICES else ""
        return ", ".join(map(shown, bound[:_MOST_CHOICES])) + more
    if fault.rule == "pattern":
        return str(bound)[:_LONGEST_BOUND]
    return shown(bound)
