"""The rules for a JSON Schema of draft 2020-12, as one schema without its remarks (PUB-1)."""

from typing import Final

from pydantic import JsonValue

__all__ = ["META_SCHEMA"]

META_SCHEMA: Final[dict[str, JsonValue]] = {
    "type": ["object", "boolean"],
    "properties": {
        "$id": {"$ref": "#/$defs/uriReferenceString", "pattern": "^[^#]*#?$"},
        "$schema": {"$ref": "#/$defs/uriString"},
        "$ref": {"$ref": "#/$defs/uriReferenceString"},
        "$anchor": {"$ref": "#/$defs/anchorString"},
        "$dynamicRef": {"$ref": "#/$defs/uriReferenceString"},
        "$dynamicAnchor": {"$ref": "#/$defs/anchorString"},
        "$vocabulary": {
            "type": "object",
            "propertyNames": {"$ref": "#/$defs/uriString"},
            "additionalProperties": {"type": "boolean"},
        },
        "$comment": {"type": "string"},
        "$defs": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "prefixItems": {"$ref": "#/$defs/schemaArray"},
        "items": {"$ref": "#"},
        "contains": {"$ref": "#"},
        "additionalProperties": {"$ref": "#"},
        "properties": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "patternProperties": {
            "type": "object",
            "additionalProperties": {"$ref": "#"},
            "propertyNames": {},
        },
        "dependentSchemas": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "propertyNames": {"$ref": "#"},
        "if": {"$ref": "#"},
        "then": {"$ref": "#"},
        "else": {"$ref": "#"},
        "allOf": {"$ref": "#/$defs/schemaArray"},
        "anyOf": {"$ref": "#/$defs/schemaArray"},
        "oneOf": {"$ref": "#/$defs/schemaArray"},
        "not": {"$ref": "#"},
        "unevaluatedItems": {"$ref": "#"},
        "unevaluatedProperties": {"$ref": "#"},
        "type": {
            "anyOf": [
                {"$ref": "#/$defs/simpleTypes"},
                {
                    "type": "array",
                    "items": {"$ref": "#/$defs/simpleTypes"},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            ]
        },
        "const": True,
        "enum": {"type": "array", "items": True},
        "multipleOf": {"type": "number", "exclusiveMinimum": 0},
        "maximum": {"type": "number"},
        "exclusiveMaximum": {"type": "number"},
        "minimum": {"type": "number"},
        "exclusiveMinimum": {"type": "number"},
        "maxLength": {"$ref": "#/$defs/nonNegativeInteger"},
        "minLength": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
        "pattern": {"type": "string"},
        "maxItems": {"$ref": "#/$defs/nonNegativeInteger"},
        "minItems": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
        "uniqueItems": {"type": "boolean"},
        "maxContains": {"$ref": "#/$defs/nonNegativeInteger"},
        "minContains": {"$ref": "#/$defs/nonNegativeInteger"},
        "maxProperties": {"$ref": "#/$defs/nonNegativeInteger"},
        "minProperties": {"$ref": "#/$defs/nonNegativeIntegerDefault0"},
        "required": {"$ref": "#/$defs/stringArray"},
        "dependentRequired": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/stringArray"},
        },
        "title": {"type": "string"},
        "description": {"type": "string"},
        "default": True,
        "deprecated": {"type": "boolean"},
        "readOnly": {"type": "boolean"},
        "writeOnly": {"type": "boolean"},
        "examples": {"type": "array", "items": True},
        "format": {"type": "string"},
        "contentEncoding": {"type": "string"},
        "contentMediaType": {"type": "string"},
        "contentSchema": {"$ref": "#"},
        "definitions": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "dependencies": {
            "type": "object",
            "additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/stringArray"}]},
        },
        "$recursiveAnchor": {"$ref": "#/$defs/anchorString"},
        "$recursiveRef": {"$ref": "#/$defs/uriReferenceString"},
    },
    "$defs": {
        "anchorString": {"type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$"},
        "uriString": {"type": "string"},
        "uriReferenceString": {"type": "string"},
        "schemaArray": {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        "nonNegativeInteger": {"type": "integer", "minimum": 0},
        "nonNegativeIntegerDefault0": {"$ref": "#/$defs/nonNegativeInteger"},
        "simpleTypes": {
            "enum": ["array", "boolean", "integer", "null", "number", "object", "string"]
        },
        "stringArray": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
}
