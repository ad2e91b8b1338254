"""The JSON forms of what a core schema allows: choices, and names in objects (TOOL-1)."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

__all__ = ["choices_of", "is_text_key", "json_form", "key_node"]

_AROUND: Final = ("function-after", "function-before", "function-wrap", "default", "nullable")
_NO_TEXT: Final = frozenset(
    {"bool", "dataclass", "dict", "float", "frozenset", "list", "model", "none", "nullable"}
    | {"set", "tuple", "typed-dict"}
)


def json_form(choice: object) -> JsonValue:
    """Return what JSON has for one choice of a Literal or an Enum."""
    form: JsonValue = to_jsonable_python(choice.value if isinstance(choice, Enum) else choice)
    return form


def choices_of(node: Mapping[str, object]) -> list[tuple[JsonValue, object]]:
    """Return each choice of a literal or enum node with its JSON form before it."""
    choices = node.get("expected", node.get("members"))
    return [(json_form(one), one) for one in choices] if isinstance(choices, list) else []


def is_text_key(part: object, named: Mapping[str, Mapping[str, object]]) -> bool:
    """Tell whether names of a JSON object can be read as this type; integers can."""
    for node in _alternatives(part, named):
        if node.get("type") in _NO_TEXT:
            return False
        if not all(isinstance(form, str) for form, _ in choices_of(node)):
            return False
    return True


def key_node(part: object, named: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    """Return the node behind references and validators."""
    while isinstance(part, dict):
        if part.get("type") == "definition-ref":
            part = named.get(str(part.get("schema_ref")))
        elif part.get("type") in _AROUND and part.get("type") != "nullable":
            part = part.get("schema")
        else:
            return part
    return {}


def _alternatives(
    part: object, named: Mapping[str, Mapping[str, object]]
) -> Iterator[Mapping[str, object]]:
    node = key_node(part, named)
    choices = node.get("choices")
    if node.get("type") == "union" and isinstance(choices, list):
        for one in choices:
            yield from _alternatives(one[0] if isinstance(one, tuple) else one, named)
    else:
        yield node
