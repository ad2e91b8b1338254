"""A JSON Schema of arguments in a line that a model can act on (MOD-2)."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from psych_runtime.tools._constraints import bounds_of, size_of

__all__ = ["summarize"]

_MAX_NESTING: Final = 4
_MAX_CHOICES: Final = 8


def summarize(schema: Mapping[str, JsonValue]) -> str:
    """Return `{"name": type, "other"?: type}`; `?` marks what may be left out."""
    definitions = schema.get("$defs")
    return _object(schema, definitions if isinstance(definitions, dict) else {}, 0)


def _object(
    schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue], depth: int
) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return _mapping(schema, definitions, depth)
    needed = required if isinstance(required, list) else []
    if not properties:
        return "an empty object: {}" if depth == 0 else "{}"
    ordered = sorted(properties, key=lambda name: (name not in needed, name))
    fields = [
        f"{json.dumps(name)}{'' if name in needed else '?'}: "
        f"{_type(properties[name], definitions, depth + 1)}"
        for name in ordered
    ]
    return "{" + ", ".join(fields) + "}"


def _mapping(
    schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue], depth: int
) -> str:
    """Return what stands for an object with names of any kind."""
    values = schema.get("additionalProperties")
    inner = _type(values, definitions, depth + 1) if isinstance(values, dict) else "any"
    names = schema.get("propertyNames")
    name = "any name"
    if isinstance(names, dict):
        name = _type({"type": "string", **names}, definitions, depth + 1)
    named = "object" if (name, inner) == ("any name", "any") else f"{{{name}: {inner}}}"
    return named + size_of(schema, "Properties", "member")


def _type(schema: JsonValue, definitions: Mapping[str, JsonValue], depth: int) -> str:
    if not isinstance(schema, dict):
        return "any"
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if depth > _MAX_NESTING:
            return "object"
        target = definitions.get(reference.removeprefix("#/$defs/"))
        return _type(target, definitions, depth + 1)
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            kinds = dict.fromkeys(_type(one, definitions, depth) for one in branches)
            return " | ".join(kinds)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    choices = schema.get("enum")
    if isinstance(choices, list):
        shown = [json.dumps(one, ensure_ascii=False) for one in choices[:_MAX_CHOICES]]
        return " | ".join(shown + ["..."] * (len(choices) > _MAX_CHOICES))
    return _named(schema, definitions, depth)


def _named(
    schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue], depth: int
) -> str:
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, definitions, depth) if depth <= _MAX_NESTING else "object"
    if kind == "array":
        return _array(schema, definitions, depth) if depth <= _MAX_NESTING else "array"
    if not isinstance(kind, str):
        return "any"
    form = schema.get("format")
    named = f"{kind} ({form})" if isinstance(form, str) else kind
    return named + bounds_of(schema)


def _array(
    schema: Mapping[str, JsonValue], definitions: Mapping[str, JsonValue], depth: int
) -> str:
    """Return each place of a tuple, or what a list holds; a `?` marks what may be left out."""
    items, places = schema.get("items"), schema.get("prefixItems")
    more = f"{_type(items, definitions, depth + 1)}, ..." if isinstance(items, dict) else ""
    if isinstance(places, list):
        least = schema.get("minItems", 0)
        needed = least if isinstance(least, int) else 0
        kinds = [
            _type(one, definitions, depth + 1) + "?" * (at >= needed)
            for at, one in enumerate(places[:_MAX_CHOICES])
        ]
        kinds += ["..."] if len(places) > _MAX_CHOICES else [more] if more else []
        return f"[{', '.join(kinds)}]"
    if schema.get("maxItems") == 0:
        return "[]"
    return f"[{more or 'any, ...'}]" + size_of(schema, "Items", "item")
