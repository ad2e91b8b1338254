"""Pydantic's core schemas, changed until they check exactly what is published (TOOL-1, TOOL-7).

Arguments are JSON: nothing is guessed, unknown members are refused, and each type is reached
from its JSON form also below a validator of the author's. What a function returned is Python:
instances are checked field by field as if they were new, but none is made by its author's code.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Flag
from typing import Final, NamedTuple, cast

from pydantic import TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator

from psych_runtime.tools._fed_python import fed_python
from psych_runtime.tools._guards import (
    array_only,
    as_choice,
    from_json,
    nothing_twice,
    same_boolean,
)
from psych_runtime.tools._json_forms import choices_of, is_text_key, key_node

__all__ = ["Checked", "UnsupportedHint", "check_python", "for_arguments", "for_results"]

type _Node = dict[str, object]

# What is no schema, although it stands inside of one.
_OPAQUE: Final = frozenset(
    {"cls", "config", "default", "expected", "function", "members", "metadata", "missing"}
    | {"serialization", "default_factory"}
)
_BY_NAME: Final = ("fields", "choices")  # their keys are names or tags, no keywords
# A list or dict becomes these only when it is not strict; elsewhere that guesses nothing.
_ALSO_LAX: Final = frozenset(
    {"counter", "deque", "frozenset", "named-tuple", "ordered-dict", "set", "tuple"}
)
_UNHASHABLE: Final = ("counter", "deque", "dict", "list", "set", "typed-dict")
_WRITTEN: Final = frozenset(
    {"bytes", "complex", "date", "datetime", "decimal", "fraction", "time", "timedelta"}
)


class UnsupportedHint(ValueError):
    """A type that a model cannot be told, or that nobody could check; says what to write."""


class Checked(NamedTuple):
    """A type's core schema, and what validates by it."""

    schema: CoreSchema
    validator: SchemaValidator


def for_arguments(adapter: TypeAdapter[object]) -> Checked:
    """Return what reads JSON into the adapter's type.

    Raises:
        UnsupportedHint: no JSON reaches the type, or it would not be checked.
    """
    return _built(_Arguments(adapter.core_schema))


def for_results(adapter: TypeAdapter[object]) -> Checked:
    """Return what `check_python` checks values of the adapter's type by.

    Raises:
        UnsupportedHint: values of the type are checked only while they are read.
    """
    return _built(_Results(adapter.core_schema))


def check_python(checked: Checked, value: object) -> None:
    """Raise ValidationError when `value` is not what its type says.

    Instances know their fields by name, dicts in place of them by alias.
    """
    checked.validator.validate_python(value, strict=True, by_alias=True, by_name=True)


def _built(walk: "_Walk") -> Checked:
    schema = cast("CoreSchema", walk.changed())
    return Checked(schema, _validator(schema))


def _validator(schema: CoreSchema) -> SchemaValidator:
    """Build one without those that classes have built for themselves: they know no change."""
    return SchemaValidator(schema, {"strict": True}, False)


class _Walk(ABC):
    """One pass over a core schema; what it does to a node is said by the subclasses."""

    def __init__(self, schema: CoreSchema) -> None:
        self._schema = schema
        named: object = schema.get("definitions", [])
        self.named = {str(one.get("ref")): one for one in named} if isinstance(named, list) else {}

    def changed(self) -> object:
        return self._walk(self._schema)

    @abstractmethod
    def change(self, kind: str, node: _Node, original: object) -> _Node:
        """Return what stands for `node`, a copy of `original` with parts that are changed."""

    def _walk(self, part: object) -> object:
        if isinstance(part, list):
            return [self._walk(one) for one in part]
        if isinstance(part, tuple):  # a choice and its label
            return tuple(self._walk(one) for one in part)
        if not isinstance(part, dict):
            return part
        kind = part.get("type")
        node = {key: self._part(key, one) for key, one in part.items()}
        if kind == "generator":
            raise UnsupportedHint(
                "its items would be checked only while they are read; use list[...]"
            )
        return self.change(kind, node, part) if isinstance(kind, str) else node

    def _part(self, key: str, part: object) -> object:
        if key in _BY_NAME and isinstance(part, dict):
            return {name: self._walk(one) for name, one in part.items()}
        return part if key in _OPAQUE else self._walk(part)


class _Arguments(_Walk):
    def __init__(self, schema: CoreSchema) -> None:
        super().__init__(schema)
        self._fed_python = fed_python(schema)

    def change(self, kind: str, node: _Node, original: object) -> _Node:
        self._refuse(kind, node)
        node.pop("strict", None)
        if isinstance(config := node.get("config"), dict):
            node["config"] = {**config, "strict": True}
        if kind in _ALSO_LAX:
            node["strict"] = False
        if kind in ("model", "dataclass", "typed-dict"):
            return _closed(kind, node)
        if kind in ("literal", "enum"):
            return _before(as_choice(kind, choices_of(node)), node)
        if kind in ("set", "frozenset"):
            return _before(nothing_twice, node)
        if kind == "named-tuple":
            return _before(array_only, node)
        if kind == "tagged-union" and isinstance(choices := node.get("choices"), dict):
            node["choices"] = {getattr(tag, "value", tag): one for tag, one in choices.items()}
        if kind in _WRITTEN and id(original) in self._fed_python:
            return _before(from_json(_validator(cast("CoreSchema", node))), node)
        return node

    def _refuse(self, kind: str, node: _Node) -> None:
        cls = node.get("cls")
        if kind == "is-subclass":
            problem = "a class is no JSON; use Literal with names"
        elif kind == "enum" and isinstance(cls, type) and issubclass(cls, Flag):
            problem = "a Flag is a sum of bits; use list[...] of an Enum"
        elif kind == "custom-error" and node.get("custom_error_type") == "is_hashable":
            problem = "Hashable says nothing about JSON; use str | int"
        elif kind.startswith("function-") and _name_of_function(node) == "import_string":
            problem = "a model would choose what is imported; use Literal with names"
        elif kind == "any" and _is_skipped(node):
            problem = "SkipValidation would let pass what the schema refuses; remove it"
        elif "keys_schema" in node and not is_text_key(node["keys_schema"], self.named):
            problem = "names in a JSON object are text; use dict[str, ...]"
        elif kind in ("set", "frozenset") and self._is_unhashable(node.get("items_schema")):
            problem = "its items cannot be in a set; use list[...]"
        else:
            return
        raise UnsupportedHint(problem)

    def _is_unhashable(self, items: object) -> bool:
        node = key_node(items, self.named)
        cls = node.get("cls")
        hashable = not isinstance(cls, type) or cls.__hash__ is not None
        return node.get("type") in _UNHASHABLE or not hashable


class _Results(_Walk):
    def change(self, kind: str, node: _Node, original: object) -> _Node:
        if kind in ("model", "dataclass"):
            for hook in ("custom_init", "post_init"):
                node.pop(hook, None)
            return {**node, "revalidate_instances": "always"}
        if kind == "dataclass-args" and isinstance(fields := node.get("fields"), list):
            # An instance does not keep what it was only made with.
            node["fields"] = [one for one in fields if not one.get("init_only")]
            node["collect_init_only"] = False
        if kind == "literal" and isinstance(expected := node.get("expected"), list):
            return _before(same_boolean(expected), node)
        return node


def _closed(kind: str, node: _Node) -> _Node:
    """Refuse unknown members, unless the author said what becomes of them."""
    config = node.get("config")
    if isinstance(config, dict) and "extra_fields_behavior" in config:
        return node
    if kind == "typed-dict":
        said = node.get("extra_behavior", "ignore")
        return {**node, "extra_behavior": "forbid" if said == "ignore" else said}
    return {**node, "schema": _closed_below(node.get("schema"))}


def _closed_below(part: object) -> object:
    """Close the fields of a class; its validators may stand around them."""
    if not isinstance(part, dict):
        return part
    kind = str(part.get("type"))
    if kind in ("model-fields", "dataclass-args"):
        return {"extra_behavior": "forbid", **part}
    around = kind.startswith("function-")
    return {**part, "schema": _closed_below(part.get("schema"))} if around else part


def _before(check: Callable[[object], object], node: _Node) -> _Node:
    """Put a check before a node; the node's name is then that of both."""
    outer: _Node = {
        "type": "function-before",
        "function": {"type": "no-info", "function": check},
        "schema": node,
    }
    if "ref" in node:
        outer["ref"] = node.pop("ref")
    return outer


def _name_of_function(node: _Node) -> object:
    function = node.get("function")
    called = function.get("function") if isinstance(function, dict) else None
    return getattr(called, "__name__", None)


def _is_skipped(node: _Node) -> bool:
    metadata, written = node.get("metadata"), node.get("serialization")
    return (
        isinstance(metadata, dict)
        and "pydantic_js_annotation_functions" in metadata
        and isinstance(written, dict)
        and written.get("type") == "function-wrap"
    )
