"""A JSON Schema of arguments in a line that a model can act on (MOD-2)."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

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
        return "object"
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
        items = schema.get("items")
        inner = _type(items, definitions, depth + 1) if isinstance(items, dict) else "any"
        return f"[{inner}, ...]" if depth <= _MAX_NESTING else "array"
    if not isinstance(kind, str):
        return "any"
    form = schema.get("format")
    return f"{kind} ({form})" if isinstance(form, str) else kind
