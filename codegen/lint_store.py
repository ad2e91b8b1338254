"""House rules of the tables: names that exist, and one owner for each."""

from collections.abc import Iterator

from codegen.dynamodb import fields
from codegen.source import Definition, Source
from codegen.tree import Node, as_list, as_node, as_text, child, core, texts

__all__ = ["lint"]


def lint(source: Source) -> Iterator[str]:
    """Yield each breach in rows that are stored."""
    owners: dict[str, str] = {}
    for row in source.definitions():
        if "x-psych-table" not in row.schema:
            continue
        table = as_text(row.schema["x-psych-table"], row.where)
        if not table.isidentifier():
            yield f"{row.where}/x-psych-table: {table!r} is no name; use letters and _"
        yield from _once(owners, table, f"{row.where}/x-psych-table")
        yield from _columns(row, "x-psych-key", texts(row.schema.get("x-psych-key")))
        for index, item in enumerate(as_list(row.schema.get("x-psych-index", []), row.where)):
            entry, place = as_node(item, row.where), f"x-psych-index/{index}"
            names = [word.split(" ")[0] for word in texts(entry.get("columns"))]
            where = child(entry, "where")
            yield from _columns(row, place, [*names, *where])
            yield from _conditions(row, f"{row.where}/{place}/where", where)
            name = as_text(entry.get("name"), row.where)
            yield from _once(owners, name, f"{row.where}/{place}")
        yield from _templates(row)


def _once(owners: dict[str, str], name: str, where: str) -> Iterator[str]:
    if name in owners:
        yield f"{where}: {name!r} is also at {owners[name]}; rename one"
    owners[name] = where


def _columns(row: Definition, place: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if name not in row.properties:
            yield f"{row.where}/{place}: {name!r} is no column; declare or correct it"


def _conditions(row: Definition, place: str, where: Node) -> Iterator[str]:
    """Yield what no row can be, or every row is."""
    for field, wanted in where.items():
        if field not in row.properties:
            continue
        shape, nullable = core(as_node(row.properties[field], place))
        if not isinstance(wanted, list):
            if not nullable:
                yield f"{place}: {field!r} is never null; leave it out"
            continue
        for value in texts(wanted):
            if value not in texts(shape.get("enum")):
                yield f"{place}: {field!r} is never {value!r}; declare or correct it"


def _templates(row: Definition) -> Iterator[str]:
    item = child(row.schema, "x-psych-dynamodb")
    keys = [child(item, "keys")]
    keys += [child(as_node(i), "keys") for i in as_list(item.get("indexes", []), row.where)]
    for group in keys:
        for attribute, template in group.items():
            for name in fields(as_text(template, row.where)):
                if name not in row.properties and name not in child(item, "parameters"):
                    where = f"{row.where}/x-psych-dynamodb"
                    yield f"{where}: {attribute} names {name!r}; use a column or a parameter"
