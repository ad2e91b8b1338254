"""Says transitions and tables in words, for the pages."""

from codegen.source import Definition
from codegen.tree import Json, Node, as_list, as_node, as_text, child, texts

__all__ = ["table", "transition"]

_MODES = {
    "note": "A note: it says what happened and is written when convenient.",
    "decision": "A decision: it is written before its effect.",
    "either": "A note or a decision, as the protocol says.",
}


def transition(record: Definition) -> list[str]:
    """Return what a record type needs and changes."""
    row = child(record.schema, "x-psych-transition")
    writers = " or ".join(texts(row.get("by")))
    lines = ["## Transition", "", f"Written by: {writers}. {_MODES[as_text(row.get('mode'))]}", ""]
    if row.get("linked"):
        lines += ["It stands in one unit with a record of another Run.", ""]
    content = record.schema.get("x-psych-content")
    if content is not None:
        lines += [f"`{content}` is its content: stored apart, and gone once the Run is erased.", ""]
    lines += ["| Object | From | To | Only if | Remembers |", "| --- | --- | --- | --- | --- |"]
    lines += [_move(as_node(move)) for move in as_list(row.get("moves", []), record.where)]
    lines.append("")
    for item in as_list(row.get("none", []), record.where):
        rule = as_node(item)
        condition = _when(child(rule, "when"))
        suffix = f" if {condition}" if condition else ""
        lines += [f"- No {rule['object']} is {_words(texts(rule.get('in')))}{suffix}."]
    lines += [f"- Guard `{guard}`." for guard in texts(row.get("guards"))]
    return [*lines, ""]


def _move(move: Node) -> str:
    key = move.get("key")
    name = as_text(move.get("object"))
    label = {None: name, "*": f"every {name}"}.get(key if isinstance(key, str) else None)
    target = f"`{move['to']}`" if "to" in move else "stays"
    conditions = [f"`{move['given']}` is set"] if "given" in move else []
    conditions += [_when(child(move, "when"))] if "when" in move else []
    keep = ", ".join(f"`{field}`" for field in texts(move.get("keep")))
    start = _words(texts(move.get("from")))
    condition = " and ".join(conditions)
    return f"| {label or f'{name} `{key}`'} | {start} | {target} | {condition} | {keep} |"


def _when(conditions: Node) -> str:
    parts: list[str] = []
    for field, values in conditions.items():
        words = ["not set" if value is None else f"`{value}`" for value in as_list(values, field)]
        parts.append(f"`{field}` is {' or '.join(words)}")
    return " and ".join(parts)


def _words(words: list[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)


def _so(field: str, wanted: Json) -> str:
    """Return what is so of a column in every row of an index."""
    return f"`{field}` is {_words(texts(wanted)) if isinstance(wanted, list) else 'set'}"


def table(row: Definition) -> list[str]:
    """Return where a row is stored."""
    key = ", ".join(f"`{field}`" for field in texts(row.schema.get("x-psych-key")))
    lines = ["## Table", "", f"SQL table `{row.schema['x-psych-table']}`, primary key {key}.", ""]
    if "x-psych-fillfactor" in row.schema:
        lines[-2] += f" PostgreSQL fills its pages to {row.schema['x-psych-fillfactor']} %."
    for item in as_list(row.schema.get("x-psych-index", []), row.where):
        index = as_node(item)
        columns = ", ".join(f"`{column}`" for column in texts(index.get("columns")))
        where = child(index, "where")
        only = f", only where {', and '.join(map(_so, where, where.values()))}" if where else ""
        unique = "unique " if index.get("unique") else ""
        lines.append(f"- {unique}index `{index['name']}` on {columns}{only}")
    item = child(row.schema, "x-psych-dynamodb")
    if item:
        keys = [f"`{name}` = `{template}`" for name, template in child(item, "keys").items()]
        lines += ["", f"DynamoDB table `{item['table']}`: {', '.join(keys)}.", ""]
    for entry in as_list(item.get("indexes", []), row.where):
        index = as_node(entry)
        keys = [f"`{name}` = `{template}`" for name, template in child(index, "keys").items()]
        lines.append(f"- index `{index['name']}`: {', '.join(keys)}. {index['description']}")
    return [*lines, ""]
