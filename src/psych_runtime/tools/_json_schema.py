"""The JSON Schema of a tool's arguments: self-contained and byte-stable (TOOL-1)."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaWarningKind
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema, to_jsonable_python

from psych_runtime.core.canonical import canonical_json
from psych_runtime.tools._core_schema import Checked
from psych_runtime.tools._json_forms import key_node

__all__ = ["Parameter", "arguments_schema", "check_schema"]


class Parameter(NamedTuple):
    """One argument that the model may give."""

    name: str
    description: str
    required: bool
    default: object  # None when required
    checked: Checked


class _Generator(GenerateJsonSchema):
    """Pydantic's schema without made-up titles; the same bytes in each process."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 - as the base has it
        "non-serializable-default",
        "skipped-choice",
    }

    def field_title_should_be_set(self, schema: object) -> bool:
        """Say that a field's name is title enough."""
        return False

    def encode_default(self, dft: object) -> object:
        """Return a default as JSON; sets are sorted, their order is chance."""
        return _plain(dft)

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> dict[str, JsonValue]:
        """Say that unknown members are refused, where they are."""
        return _closed(schema, super().model_fields_schema(schema))

    def dataclass_args_schema(
        self, schema: core_schema.DataclassArgsSchema
    ) -> dict[str, JsonValue]:
        """Say that unknown members are refused, where they are."""
        return _closed(schema, super().dataclass_args_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, JsonValue]:
        """Name each value once; members of one value are one."""
        found: dict[str, JsonValue] = super().enum_schema(schema)
        if isinstance(values := found.get("enum"), list):
            found["enum"] = list({canonical_json(one): one for one in values}.values())
        return found

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, JsonValue]:
        """Say of names that are read as integers how they are written."""
        found: dict[str, JsonValue] = super().dict_schema(schema)
        if key_node(schema.get("keys_schema"), {}).get("type") == "int":
            found["propertyNames"] = {"type": "string", "pattern": "^-?[0-9]+$"}
        return found


def _closed(schema: Mapping[str, object], found: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if schema.get("extra_behavior") == "forbid":
        found["additionalProperties"] = False
    return found


def check_schema(schema: CoreSchema) -> None:
    """Raise what pydantic raises when the type has no JSON Schema."""
    _Generator().generate(schema)


def arguments_schema(parameters: Sequence[Parameter]) -> dict[str, JsonValue]:
    """Return the schema of an object with these parameters and nothing else."""
    mode: JsonSchemaMode = "validation"
    schemas, definitions = _Generator().generate_definitions(
        [(one.name, mode, one.checked.schema) for one in parameters]
    )
    properties: dict[str, JsonValue] = {}
    for one in parameters:
        schema: dict[str, JsonValue] = {**schemas[one.name, mode]}
        schema["description"] = one.description
        if not one.required:
            schema |= _default(one.default)
        properties[one.name] = schema
    whole: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    if required := [one.name for one in parameters if one.required]:
        whole["required"] = list[JsonValue](required)
    if definitions:
        whole["$defs"] = {name: _untitled(name, one) for name, one in definitions.items()}
    return whole


def _untitled(name: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Drop a title that only repeats the definition's name."""
    return {key: one for key, one in schema.items() if key != "title" or one != name}


def _default(value: object) -> dict[str, JsonValue]:
    """Return the default as a schema keyword; nothing when it has no JSON form."""
    try:
        return {"default": _plain(value)}
    except (PydanticSerializationError, ValueError, RecursionError):
        return {}


def _plain(value: object) -> JsonValue:
    """Return a Python value as JSON, deterministic also for sets inside it."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(warnings="none"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(one) for one in value), key=canonical_json)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("JSON has no such number")
    plain: JsonValue = to_jsonable_python(value)
    return plain
