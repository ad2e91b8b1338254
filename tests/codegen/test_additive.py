"""Inside v1 the published schemas only grow: each kind of breach is told, each growth is not."""

import copy
import json
from pathlib import Path

import pytest

from codegen import additive
from codegen.source import Source
from codegen.tree import Json, Node, SchemaError, as_node
from tests.codegen.trees import GENERATED, REMOVED, SCHEMA, plant

OLD: Node = {
    "title": "Robot",
    "description": "A robot.",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$"},
        "arms": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
        "tools": {"type": "array", "items": {"$ref": "#/$defs/Tool"}, "maxItems": 4, "default": []},
        "state": {"type": "string", "enum": ["on", "off"]},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 5}},
        "weight": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {
        "Tool": {"title": "Tool", "oneOf": [{"$ref": "#/$defs/Saw"}, {"$ref": "#/$defs/Axe"}]},
        "Saw": {"title": "Saw", "type": "object", "properties": {"kind": {"const": "saw"}}},
        "Axe": {"title": "Axe", "type": "object", "properties": {"kind": {"const": "axe"}}},
    },
}
NEW_FIELD: Json = {"type": "string", "default": "red"}
PROPERTIES = "/properties"

GROWTH = [
    pytest.param("/description", "Another text.", id="description"),
    pytest.param("/$comment", "Another text.", id="comment"),
    pytest.param(f"{PROPERTIES}/colour", NEW_FIELD, id="new optional field"),
    pytest.param(f"{PROPERTIES}/state/enum", ["on", "off", "idle"], id="new enum value"),
    pytest.param(f"{PROPERTIES}/state/enum", REMOVED, id="any value"),
    pytest.param(f"{PROPERTIES}/arms/maximum", 9, id="higher maximum"),
    pytest.param(f"{PROPERTIES}/arms/minimum", 0, id="lower minimum"),
    pytest.param(f"{PROPERTIES}/arms/maximum", REMOVED, id="no maximum"),
    pytest.param(f"{PROPERTIES}/name/maxLength", 10, id="longer"),
    pytest.param(f"{PROPERTIES}/name/pattern", REMOVED, id="no pattern"),
    pytest.param(f"{PROPERTIES}/labels/additionalProperties/maxLength", 6, id="longer label"),
    pytest.param("/required", [], id="no longer required"),
    pytest.param("/additionalProperties", REMOVED, id="opened"),
    pytest.param("/$defs/Tool/oneOf/1", {"$ref": "#/$defs/Axe"}, id="same branch"),
    pytest.param(
        "/$defs/Tool/oneOf",
        [{"$ref": "#/$defs/Saw"}, {"$ref": "#/$defs/Axe"}, {"$ref": "#/$defs/Pen"}],
        id="new branch",
    ),
    pytest.param("/$defs/Pen", {"title": "Pen", "type": "object"}, id="new definition"),
]

BREACHES = [
    pytest.param(f"{PROPERTIES}/arms", REMOVED, "#/properties/arms: was removed", id="field"),
    pytest.param("/$defs/Axe", REMOVED, "#/$defs/Axe: was removed", id="definition"),
    pytest.param(
        f"{PROPERTIES}/arms/type",
        "number",
        '#/properties/arms/type: "integer" became "number"',
        id="type",
    ),
    pytest.param(
        f"{PROPERTIES}/arms/default", 4, "#/properties/arms/default: 2 became 4", id="default"
    ),
    pytest.param(
        f"{PROPERTIES}/arms/default",
        2.0,
        "#/properties/arms/default: 2 became 2.0",
        id="default of another type",
    ),
    pytest.param(
        f"{PROPERTIES}/arms/default",
        REMOVED,
        "#/properties/arms/default: 2 became absent",
        id="no default",
    ),
    pytest.param(
        f"{PROPERTIES}/name/default",
        "x",
        '#/properties/name/default: absent became "x"',
        id="new default",
    ),
    pytest.param(
        f"{PROPERTIES}/arms/maximum", 7, "#/properties/arms/maximum: 8 became 7", id="maximum"
    ),
    pytest.param(
        f"{PROPERTIES}/arms/minimum", 2, "#/properties/arms/minimum: 1 became 2", id="minimum"
    ),
    pytest.param(
        f"{PROPERTIES}/tools/minItems",
        1,
        "#/properties/tools/minItems: absent became 1",
        id="new bound",
    ),
    pytest.param(
        f"{PROPERTIES}/name/pattern",
        "^[a-y]+$",
        '#/properties/name/pattern: "^[a-z]+$" became "^[a-y]+$"',
        id="pattern",
    ),
    pytest.param(
        f"{PROPERTIES}/state/enum",
        ["on"],
        '#/properties/state/enum: ["on", "off"] became ["on"]',
        id="enum value",
    ),
    pytest.param(
        f"{PROPERTIES}/weight/anyOf",
        [{"type": "number"}],
        '#/properties/weight/anyOf: {"type": "null"} was removed or changed',
        id="null",
    ),
    pytest.param(
        "/$defs/Tool/oneOf",
        [{"$ref": "#/$defs/Saw"}],
        '#/$defs/Tool/oneOf: {"$ref": "#/$defs/Axe"} was removed or changed',
        id="branch",
    ),
    pytest.param(
        "/$defs/Saw/properties/kind/const",
        "handsaw",
        '#/$defs/Saw/properties/kind/const: "saw" became "handsaw"',
        id="tag",
    ),
    pytest.param("/$defs/Saw/title", "Handsaw", '#/$defs/Saw/title: "Saw" became', id="name"),
    pytest.param(
        "/required",
        ["name", "arms"],
        '#/required: ["name"] became ["name", "arms"]',
        id="newly required",
    ),
    pytest.param(
        "/$defs/Saw/additionalProperties",
        False,
        "#/$defs/Saw/additionalProperties: absent became false",
        id="closed",
    ),
    pytest.param(
        f"{PROPERTIES}/tools/items/$ref",
        "#/$defs/Saw",
        '#/properties/tools/items/$ref: "#/$defs/Tool" became "#/$defs/Saw"',
        id="items",
    ),
]


def changed(pointer: str, value: Json) -> Node:
    """Return OLD with `value` at `pointer`."""
    return plant({"robot": copy.deepcopy(OLD)}, "robot", pointer, value)["robot"]


def test_the_same_is_additive() -> None:
    """Nothing changed, nothing told."""
    assert list(additive.compare(OLD, copy.deepcopy(OLD))) == []


@pytest.mark.parametrize(("pointer", "value"), GROWTH)
def test_growth_is_additive(pointer: str, value: Json) -> None:
    """Whatever was valid stays valid and means the same."""
    assert list(additive.compare(OLD, changed(pointer, value))) == []


@pytest.mark.parametrize(("pointer", "value", "expected"), BREACHES)
def test_a_breach_is_told(pointer: str, value: Json, expected: str) -> None:
    """One change gives one message, with its place and what it was."""
    (problem,) = additive.compare(OLD, changed(pointer, value))
    assert problem.startswith(expected)
    assert problem.endswith(("put it back", "add something new beside it instead"))


def test_the_sources_keep_every_release() -> None:
    """No release's document is invalid today."""
    assert additive.check(Source.load(SCHEMA)) == []


def test_a_broken_release_is_named(tmp_path: Path) -> None:
    """The message names the release, the file and the place."""
    schema = _released(tmp_path, {"agent": ("/properties/limits", REMOVED)})
    assert additive.check(Source.load(schema)) == []

    schema = _released(tmp_path / "later", {"agent": ("/properties/limits/default", {"a": 1})})
    place = "schema/released/9.9/agent.json#/properties/limits/default"
    remedy = "add something new beside it instead"
    assert additive.check(Source.load(schema)) == [f'{place}: {{"a": 1}} became {{}}; {remedy}']


def test_a_root_that_is_no_longer_published_is_named(tmp_path: Path) -> None:
    """A whole schema may not disappear, either."""
    schema = _released(tmp_path, {})
    (schema / "released/9.9/robot.json").write_text("{}", encoding="utf-8")
    assert additive.check(Source.load(schema)) == [
        "schema/released/9.9/robot.json: no longer published; add something new beside it instead"
    ]


def test_a_release_is_a_copy_and_is_made_once(tmp_path: Path) -> None:
    """What was released stays as it was."""
    additive.release(GENERATED / "schema", tmp_path, "0.1")
    published = sorted(path.name for path in (GENERATED / "schema").iterdir())
    assert sorted(path.name for path in (tmp_path / "0.1").iterdir()) == published

    with pytest.raises(SchemaError, match=r"schema/released/0\.1: exists"):
        additive.release(GENERATED / "schema", tmp_path, "0.1")


def _released(root: Path, edits: dict[str, tuple[str, Json]]) -> Path:
    """Return the real sources with a release 9.9 that has these edits."""
    schema = root / "schema"
    for path in SCHEMA.rglob("*.json"):
        relative = path.relative_to(SCHEMA)
        if relative.parts[0] not in {"examples", "released"}:
            (schema / relative).parent.mkdir(parents=True, exist_ok=True)
            (schema / relative).write_bytes(path.read_bytes())
    target = schema / "released" / "9.9"
    target.mkdir(parents=True)
    for path in (GENERATED / "schema").glob("*.json"):
        document = as_node(json.loads(path.read_text(encoding="utf-8")))
        if path.stem in edits:
            document = plant({path.stem: document}, path.stem, *edits[path.stem])[path.stem]
        (target / path.name).write_text(json.dumps(document), encoding="utf-8")
    return schema
