"""House rules of single schemas: what the generators turn into one clear type, and nothing else."""

import json
import keyword
import re
from collections.abc import Iterator
from urllib.parse import urljoin

from jsonschema import Draft202012Validator
from pydantic import BaseModel
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY, SchemaRegistry

from codegen.source import Definition, Source
from codegen.tree import Node, as_list, as_node, as_text, child, core, texts, walk

__all__ = ["lint"]

_WORDS = frozenset(
    {
        *("$defs", "$id", "$ref", "$schema", "title", "description", "default", "deprecated"),
        *("examples", "type", "const", "enum", "oneOf", "anyOf", "discriminator"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("minLength", "maxLength", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
_BESIDE_REF = frozenset({"default", "deprecated", "description"})
_BUILTIN = frozenset({"bool", "float", "int", "str", "tuple"})
_NUMBERS = ("default", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "const")
_UNSAFE = re.compile(r"\(\?[=!<>P]|\\[1-9]|[*+?}]\+|\\[dDwWsSbB]")
_FREE = frozenset({"JsonValue"})  # any JSON value: written natively, so its union may be free


def lint(source: Source) -> Iterator[str]:
    """Yield each breach in the sources as they are written."""
    registry = EMPTY_REGISTRY
    for url, document in source.raw.items():
        registry = registry.with_resource(url, DRAFT202012.create_resource(document))
    for definition in source.definitions(raw=True):
        yield from _defined(definition)
        if definition.name in _FREE:
            continue
        schema = {key: value for key, value in definition.schema.items() if key != "$defs"}
        for pointer, node in _schemas(schema, definition.pointer):
            where = f"schema/{definition.path.as_posix()}#{pointer}"
            yield from _words(where, node)
            yield from _object(source, definition, where, node)
            yield from _union(source, definition, where, node, root=pointer == definition.pointer)
            yield from _scalar(source, definition, where, node)
            yield from _default(definition, where, node, registry)


def _schemas(schema: Node, pointer: str) -> Iterator[tuple[str, Node]]:
    """Yield `schema` and each schema inside it; not what a default or a transition holds."""
    yield pointer, schema
    for word in ("items", "additionalProperties"):
        inner = schema.get(word)
        if isinstance(inner, dict):
            yield from _schemas(inner, f"{pointer}/{word}")
    for word in ("oneOf", "anyOf"):
        for index, branch in enumerate(as_list(schema.get(word, []), pointer)):
            yield from _schemas(as_node(branch, pointer), f"{pointer}/{word}/{index}")
    for name, inner in child(schema, "properties").items():
        yield from _schemas(as_node(inner, pointer), f"{pointer}/properties/{name}")


def _defined(definition: Definition) -> Iterator[str]:
    folder, where = definition.path.parts[0], definition.where
    if "properties" not in definition.schema:
        return
    closed = definition.schema.get("additionalProperties") is False
    if folder == "spec" and not closed:
        yield f"{where}: a Spec refuses unknown fields; add additionalProperties false"
    if folder in {"record", "view", "store", "model"} and closed:
        yield f"{where}: a newer writer may add fields; remove additionalProperties false"


def _words(where: str, node: Node) -> Iterator[str]:
    for word in node:
        if word not in _WORDS and not word.startswith("x-psych-"):
            yield f"{where}/{word}: {word} is not used here; use {_REMEDY.get(word, _OTHER)}"
    beside = {word for word in node if word not in _BESIDE_REF and not word.startswith("x-psych-")}
    if "$ref" in node and len(beside) > 1:
        others = ", ".join(sorted(beside - {"$ref"}))
        yield f"{where}: {others} beside $ref; put it into the definition that is named"
    if isinstance(node.get("type"), list):
        yield f"{where}/type: is a list; write anyOf with one type each"


_OTHER = "the words that schema/common.json uses"
_REMEDY = {
    "allOf": "one object that has all properties",
    "uniqueItems": "x-psych-set",
    "prefixItems": "an object with named fields",
    "dependentRequired": "a union of objects",
    "minProperties": "an array of objects with minItems",
    "format": "a pattern, and an instant with a $ref to Instant",
    "if": "a union with a discriminator",
    "not": "a union with a discriminator",
    "patternProperties": "additionalProperties",
}


def _object(source: Source, definition: Definition, where: str, node: Node) -> Iterator[str]:
    if node.get("type") != "object":
        return
    properties = child(node, "properties")
    if properties and where != definition.where:
        yield f"{where}: an object without a name; move it to $defs and refer to it"
    if not properties and not isinstance(node.get("additionalProperties"), dict):
        if where == definition.where and node.get("additionalProperties") is False:
            return
        yield f"{where}: an object of anything; name its properties, or type additionalProperties"
    if node.get("additionalProperties") is True:
        yield f"{where}/additionalProperties: is true; leave it out, or write false or a schema"
    required = texts(node.get("required"))
    for name in required:
        if name not in properties:
            yield f"{where}/required: {name} is no property; remove it or declare it"
    for name, schema in properties.items():
        field = as_node(schema, where)
        place = f"{where}/properties/{name}"
        if keyword.iskeyword(name) or hasattr(BaseModel, name) or name in _BUILTIN:
            yield f"{place}: {name!r} means something else in Python; choose another name"
        if name in required and "default" in field:
            yield f"{place}: required, with a default; drop one of them"
        if name not in required and "default" not in field:
            yield f"{place}: optional, without a default; add one, or require the field"
        if "x-psych-set" in field:
            yield from _set(source, definition, place, field)


def _set(source: Source, definition: Definition, where: str, field: Node) -> Iterator[str]:
    key = as_text(field["x-psych-set"], where)
    for member in _members(source, definition, child(field, "items")):
        if key not in texts(member.schema.get("required")):
            yield f"{where}/x-psych-set: {member.name} does not require {key!r}; choose another"


def _members(source: Source, definition: Definition, node: Node) -> Iterator[Definition]:
    """Yield the objects that `node` refers to, through unions."""
    if "$ref" not in node:
        return
    target = source.resolve(definition.url, as_text(node["$ref"], definition.where))
    if "oneOf" not in target.schema:
        yield target
    for branch in as_list(target.schema.get("oneOf", []), target.where):
        yield from _members(source, target, as_node(branch, target.where))


def _union(
    source: Source, definition: Definition, where: str, node: Node, *, root: bool
) -> Iterator[str]:
    if "anyOf" in node:
        shape, nullable = core(node)
        if not nullable or "anyOf" in shape:
            yield f"{where}/anyOf: is for null only; name the union with oneOf and a discriminator"
    if "oneOf" not in node:
        if "discriminator" in node:
            yield f"{where}/discriminator: without oneOf; remove it"
        return
    if not root:
        yield f"{where}/oneOf: a union without a name; move it to $defs and refer to it"
    word = child(node, "discriminator").get("propertyName")
    if word is None:
        yield f"{where}/oneOf: no discriminator; name the property whose constant tells them apart"
        return
    seen: set[str] = set()
    for index, branch in enumerate(as_list(node["oneOf"], where)):
        place = f"{where}/oneOf/{index}"
        if "$ref" not in as_node(branch, place):
            yield f"{place}: a branch without a name; move it to $defs and refer to it"
            continue
        for member in _members(source, definition, as_node(branch, place)):
            tag = child(member.properties, as_text(word, where)).get("const")
            if tag is None or word not in texts(member.schema.get("required")):
                yield f"{place}: {member.name} requires no constant {word!r}; add one"
            elif str(tag) in seen:
                yield f"{place}: {member.name} has {word} {tag!r} like another; rename one"
            seen.add(str(tag))


def _scalar(source: Source, definition: Definition, where: str, node: Node) -> Iterator[str]:
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        if _UNSAFE.search(pattern):
            yield f"{where}/pattern: engines differ; no look-around, back reference, \\d or \\w"
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{where}/pattern: {error}; correct it"
    kind = node.get("type")
    if "$ref" in node:
        kind = source.resolve(definition.url, as_text(node["$ref"], where)).schema.get("type")
    for word in _NUMBERS:
        value = node.get(word)
        if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
            yield f"{where}/{word}: a number written as integer; write {float(value)}"
        if kind == "integer" and isinstance(value, float):
            yield f"{where}/{word}: an integer written as number; write {int(value)}"


def _default(
    definition: Definition, where: str, node: Node, registry: SchemaRegistry
) -> Iterator[str]:
    if "default" not in node:
        return
    schema: Node = {**_absolute(node, definition.url)}
    validator = Draft202012Validator(schema, registry=registry)
    for error in validator.iter_errors(node["default"]):
        text = json.dumps(node["default"])
        yield f"{where}/default: {text} is not valid ({error.message}); correct it"


def _absolute(node: Node, url: str) -> Node:
    """Return a copy of `node` that can be read on its own."""
    copy = as_node(json.loads(json.dumps(node)), url)
    for _, inner in walk(copy):
        ref = inner.get("$ref")
        if isinstance(ref, str):
            inner["$ref"] = urljoin(url, ref)
    return copy
