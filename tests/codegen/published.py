"""The two readers of one document: the generated model and the published schema."""

import importlib
import json
from functools import cache

from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from codegen.flat import ROOTS
from codegen.source import Source
from codegen.tree import Json, Node, as_text, child, read
from tests.codegen.trees import GENERATED, SCHEMA

__all__ = ["SOURCE", "adapter", "model_error", "validator"]

SOURCE = Source.load(SCHEMA)


@cache
def adapter(name: str) -> TypeAdapter[object]:
    """Return the reader of the generated type `name`."""
    for definition in SOURCE.definitions():
        if definition.name == name:
            module = ".".join(["psych_schema", *definition.path.with_suffix("").parts])
            return TypeAdapter(getattr(importlib.import_module(module), name))
    raise LookupError(f"schema/ declares no {name}; rename the folder in schema/examples")


@cache
def validator(name: str) -> Draft202012Validator | None:
    """Return the validator of the type `name`; None: no published schema has it."""
    for schema in map(_root, ROOTS):
        if schema.get("title") == name:
            return Draft202012Validator(schema)
        if name in child(schema, "$defs"):
            part: Node = {"$ref": f"#/$defs/{as_text(name)}", "$defs": schema["$defs"]}
            return Draft202012Validator(part)
    return None


@cache
def _root(name: str) -> Node:
    return read(GENERATED / "schema" / f"{name}.json")


def model_error(name: str, document: Json) -> str | None:
    """Return the first error of the model as `type at place`; None: it is taken."""
    try:
        adapter(name).validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{first['type']} at {'.'.join(str(part) for part in first['loc'])}"
    return None
