"""Emits TypeScript declarations of the published schemas, for readers that are no Python."""

from pathlib import Path

from codegen.flat import COMMENT, ROOTS, flatten
from codegen.source import Source
from codegen.tree import Json, Node, SchemaError, as_list, as_node, as_text, child, texts

__all__ = ["emit"]

_SCALARS = {
    "boolean": "boolean",
    "integer": "number",
    "null": "null",
    "number": "number",
    "string": "string",
}

_WIDTH = 80


def emit(source: Source) -> dict[Path, str]:
    """Return one module of declarations per root, by path below generated/."""
    return {Path("typescript") / f"{name}.d.ts": _module(source, name) for name in ROOTS}


def _module(source: Source, name: str) -> str:
    schema = flatten(source, name)
    root = as_text(schema.get("title"), name)
    blocks = [f"// {COMMENT.format(source=ROOTS[name])}\n"]
    for title, definition in {root: schema, **child(schema, "$defs")}.items():
        blocks.append(_declaration(title, as_node(definition, title), root))
    return "\n".join(blocks)


def _declaration(title: str, schema: Node, root: str) -> str:
    properties = child(schema, "properties")
    head = _comment(schema, "")
    if not properties:
        return f"{head}export type {title} ={_folded(_type(schema, root))};\n"
    lines = [f"{head}export interface {title} {{"]
    required = texts(schema.get("required"))
    for name, value in properties.items():
        field = as_node(value, title)
        mark = "" if name in required else "?"
        lines.append(f"{_comment(field, '  ')}  {name}{mark}: {_type(field, root)};")
    return "\n".join([*lines, "}", ""])


def _folded(text: str) -> str:
    """Return a long union with a branch per line."""
    return f" {text}" if len(text) < _WIDTH else "\n  | " + text.replace(" | ", "\n  | ")


def _comment(schema: Node, indent: str) -> str:
    text = schema.get("description")
    if text is None:
        return ""
    safe = as_text(text).replace("*/", "*\\/")
    default = f" Default: {_literal(schema['default'])}." if "default" in schema else ""
    return f"{indent}/** {safe}{default} */\n"


def _literal(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)


def _type(schema: Node, root: str) -> str:
    if "$ref" in schema:
        ref = as_text(schema["$ref"])
        return root if ref == "#" else ref.rsplit("/", 1)[-1]
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(_literal(value) for value in as_list(schema["enum"]))
    for word in ("oneOf", "anyOf"):
        if word in schema:
            branches = [_type(as_node(branch), root) for branch in as_list(schema[word])]
            return " | ".join(dict.fromkeys(branches))
    match schema.get("type"):
        case "array":
            return f"Array<{_type(child(schema, 'items'), root)}>"
        case "object":
            inner = schema.get("additionalProperties")
            value = _type(inner, root) if isinstance(inner, dict) else "never"
            return f"{{ [name: string]: {value} }}"
        case str(kind) if kind in _SCALARS:
            return _SCALARS[kind]
        case kind:
            raise SchemaError(f"{root}: no TypeScript type for {kind!r}; extend typescript.py")
