"""JSON as Python values, and the few ways to take a schema apart.

Whoever asks for a type that is not there gets a `SchemaError` with the place, never a KeyError.
"""

import json
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "Json",
    "Node",
    "SchemaError",
    "as_int",
    "as_list",
    "as_node",
    "as_text",
    "child",
    "core",
    "dump",
    "read",
    "texts",
    "walk",
]

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None
type Node = dict[str, Json]


class SchemaError(Exception):
    """A source that cannot be read as meant; the text names file, pointer and remedy."""


def read(path: Path) -> Node:
    """Return the document in `path`. SchemaError: no JSON object."""
    try:
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SchemaError(f"{path}: no JSON ({error}); correct the syntax") from error
    return as_node(value, str(path))


def dump(value: Json) -> str:
    """Return `value` as indented JSON text with a line end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def as_node(value: Json, where: str = "") -> Node:
    """Return `value` as an object."""
    if not isinstance(value, dict):
        raise SchemaError(f"{where}: {value!r} is no object; write {{...}}")
    return value


def as_list(value: Json, where: str = "") -> list[Json]:
    """Return `value` as an array."""
    if not isinstance(value, list):
        raise SchemaError(f"{where}: {value!r} is no array; write [...]")
    return value


def as_text(value: Json, where: str = "") -> str:
    """Return `value` as a string."""
    if not isinstance(value, str):
        raise SchemaError(f'{where}: {value!r} is no string; write "..."')
    return value


def as_int(value: Json, where: str = "") -> int:
    """Return `value` as an integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise SchemaError(f"{where}: {value!r} is no integer")
    return value


def child(node: Node, key: str) -> Node:
    """Return the object under `key`, an empty one where there is none."""
    return as_node(node.get(key, {}), key)


def texts(value: Json) -> list[str]:
    """Return an array of strings; a single string is an array of one, null an empty one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    return [as_text(item) for item in as_list(value)]


def walk(value: Json, pointer: str = "") -> Iterator[tuple[str, Node]]:
    """Yield each object in `value` with its JSON pointer, the outermost first."""
    if isinstance(value, dict):
        yield pointer, value
        for key, item in value.items():
            yield from walk(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, f"{pointer}/{index}")


def core(schema: Node) -> tuple[Node, bool]:
    """Return `schema` without its null branch, and whether it had one.

    Words beside `anyOf` (default, description, x-psych-column) are kept.
    """
    branches = [as_node(branch) for branch in as_list(schema.get("anyOf", []))]
    others = [branch for branch in branches if branch.get("type") != "null"]
    if len(branches) == len(others):
        return schema, False
    if len(others) != 1:
        rest: Node = {**schema, "anyOf": [*others]}
        return rest, True
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**beside, **others[0]}, True
