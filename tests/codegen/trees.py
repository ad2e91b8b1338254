"""Small sound sources for tests of the generator, and how to spoil them."""

import copy
import json
from pathlib import Path

from codegen.lint import lint
from codegen.source import BASE, DIALECT, Source
from codegen.tree import Json, Node, as_list, as_node, as_text

__all__ = ["GENERATED", "REMOVED", "ROOT", "SCHEMA", "Tree", "plant", "problems", "sound", "write"]

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schema"
GENERATED = ROOT / "generated"
REMOVED = "(removed)"

type Tree = dict[str, Node]

_NULL: Json = {"type": "null"}
_ID: Json = {"$ref": "../common.json#/$defs/Id"}
_OPEN: Json = {"object": "run", "key": None, "from": ["none"], "to": "ready"}


def sound() -> Tree:
    """Return sources in which nothing is wrong, with one of everything."""
    return {
        "common.json": _file(
            Id={"type": "string", "pattern": "^[a-z]+_[0-9]+$"},
            Seconds={"type": "number", "minimum": 0.0},
            Instant={"type": "string", "pattern": "^[0-9TZ:.-]+$"},
        ),
        "spec/robot.json": _file(
            Robot=_object(
                ["name"],
                name={"type": "string", "minLength": 1},
                weight={"type": "number", "default": 30.0},
                arms={"type": "integer", "default": 2},
                pause={"$ref": "../common.json#/$defs/Seconds", "default": 1.5},
                tools={
                    "type": "array",
                    "items": {"$ref": "#/$defs/Tool"},
                    "default": [],
                    "x-psych-set": "name",
                },
                closed=True,
            ),
            Tool=_union("kind", "#/$defs/Hammer", "#/$defs/Saw"),
            Hammer=_tool("hammer"),
            Saw=_tool("saw"),
        ),
        "record/envelope.json": _file(
            Envelope=_object(["id"], id=copy.deepcopy(_ID), epoch={"type": "integer", "default": 0})
        ),
        "record/run.json": _file(
            Begun=_record(
                "run.begun",
                {"by": "outside", "mode": "decision", "moves": [_OPEN]},
                wish={"anyOf": [{"type": "string"}, _NULL], "default": None},
                mood={"type": "string", "enum": ["good", "bad"], "default": "good"},
                parent={"anyOf": [_ID, _NULL], "default": None},
            ),
            Ended=_record(
                "run.ended",
                {
                    "by": "attempt",
                    "mode": "note",
                    "moves": [{"object": "run", "key": None, "from": ["ready"], "to": "settled"}],
                    "none": [{"object": "call", "in": ["asked"]}],
                    "guards": ["nothing_left"],
                },
            ),
        ),
        "record/record.json": {
            "title": "Record",
            "description": "Record.",
            **_union("type", "run.json#/$defs/Begun", "run.json#/$defs/Ended"),
        },
        "store/tables.json": _file(
            RobotRow={
                **_object(
                    ["robot_id", "tenant"],
                    robot_id={"type": "string", "maxLength": 30, "x-psych-column": "id"},
                    tenant={"type": "string", "maxLength": 128, "x-psych-column": "tenant"},
                    state={"type": "string", "enum": ["on", "off"], "default": "off"},
                ),
                "x-psych-table": "robot",
                "x-psych-key": ["robot_id"],
                "x-psych-index": [{"name": "robot_tenant", "columns": ["tenant", "state desc"]}],
                "x-psych-dynamodb": {"table": "run", "keys": {"pk": "{robot_id}"}},
            }
        ),
    }


def plant(tree: Tree, file: str, pointer: str, value: Json) -> Tree:
    """Return `tree` with `value` at `pointer` of `file`; REMOVED takes away what is there."""
    spoilt = copy.deepcopy(tree)
    node: Json = spoilt[file]
    *way, last = pointer.removeprefix("/").split("/")
    for part in way:
        node = as_list(node)[int(part)] if isinstance(node, list) else as_node(node)[part]
    if isinstance(node, list):
        node[int(last)] = value
    elif value == REMOVED:
        del as_node(node)[last]
    else:
        as_node(node)[last] = value
    return spoilt


def write(tree: Tree, root: Path) -> Path:
    """Write `tree` below `root` with the real meta-schema; return the schema directory."""
    schema = root / "schema"
    for file, document in tree.items():
        path = schema / file
        path.parent.mkdir(parents=True, exist_ok=True)
        head: Node = {"$schema": DIALECT, "$id": BASE + file}
        path.write_text(json.dumps({**head, **document}), encoding="utf-8")
    meta = schema / "meta" / "psych.json"
    meta.parent.mkdir(parents=True, exist_ok=True)
    meta.write_bytes((SCHEMA / "meta" / "psych.json").read_bytes())
    return schema


def problems(tree: Tree, root: Path) -> list[str]:
    """Return what the linter says about `tree`."""
    return lint(Source.load(write(tree, root)))


def _file(**definitions: Node) -> Node:
    titled: Node = {
        name: {"title": name, "description": f"{name}.", **schema}
        for name, schema in definitions.items()
    }
    first = as_text(next(iter(definitions)))
    return {"title": f"{first}File", "description": f"{first} and others.", "$defs": titled}


def _object(required: list[str], *, closed: bool = False, **fields: Json) -> Node:
    schema: Node = {"type": "object", "properties": fields, "required": [*required]}
    if closed:
        schema["additionalProperties"] = False
    return schema


def _union(word: str, *refs: str) -> Node:
    return {"oneOf": [{"$ref": ref} for ref in refs], "discriminator": {"propertyName": word}}


def _tool(kind: str) -> Node:
    return _object(["kind", "name"], kind={"const": kind}, name={"type": "string"}, closed=True)


def _record(tag: str, transition: Node, **fields: Json) -> Node:
    schema = _object(["type"])
    schema["properties"] = {"type": {"const": tag}, **fields}
    schema["x-psych-transition"] = transition
    if "wish" in fields:
        schema["x-psych-content"] = "wish"
    return schema
