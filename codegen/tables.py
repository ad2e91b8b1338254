"""Emits the tables as SQLAlchemy constructs, written out as a module."""

from pathlib import Path
from string import Template

from codegen.source import Definition, Source
from codegen.tree import (
    Json,
    Node,
    SchemaError,
    as_int,
    as_list,
    as_node,
    as_text,
    child,
    core,
    texts,
)

__all__ = ["definitions", "emit"]

_TEMPLATE = Path(__file__).parent / "templates" / "tables.py.txt"


def definitions(source: Source) -> list[Definition]:
    """Return the rows that are tables."""
    return [row for row in source.definitions() if "x-psych-table" in row.schema]


def emit(source: Source) -> dict[Path, str]:
    """Return tables.py."""
    rows = definitions(source)
    names = [_name(row) for row in rows]
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        attributes="\n".join(f"    {name}: Table" for name in names),
        calls=", ".join(f"{name}=_{name}(meta, prefix)" for name in names),
        first=names[0],
        functions="\n\n".join(_function(source, row) for row in rows),
    )
    return {Path("tables.py"): text}


def _name(row: Definition) -> str:
    return as_text(row.schema["x-psych-table"], row.where)


def _function(source: Source, row: Definition) -> str:
    name = _name(row)
    where = f"{row.where}/properties"
    columns: list[str] = []
    checks: list[str] = []
    long = False
    for field, schema in row.properties.items():
        shape, nullable = _shape(source, row, as_node(schema, where))
        kind = _type(shape, f"{where}/{field}")
        long |= kind == "_long()"
        columns.append(f"Column({field!r}, {kind}, nullable={nullable}),")
        if "enum" in shape:
            allowed = tuple(texts(shape["enum"]))
            checks.append(f"CheckConstraint(column({field!r}).in_({allowed}), name={field!r}),")
    key = ", ".join(repr(field) for field in texts(row.schema.get("x-psych-key")))
    indexes = [as_node(index) for index in as_list(row.schema.get("x-psych-index", []), where)]
    fill = row.schema.get("x-psych-fillfactor")
    lines = [
        f"def _{name}(meta: MetaData, prefix: str) -> Table:",
        f'    {"table = " if indexes else "return "}Table(f"{{prefix}}{name}", meta,',
        *[f"        {line}" for line in columns],
        f"        PrimaryKeyConstraint({key}),",
        *[f"        {line}" for line in checks],
        f"        comment={as_text(row.schema.get('description'), row.where)!r},",
        '        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",',
        f"        sqlite_strict=True, sqlite_with_rowid={long},",
        "" if fill is None else f'        postgresql_with={{"fillfactor": {fill}}},',
        "    )",
        *[f"    {line}" for index in indexes for line in _index(index)],
    ]
    return "\n".join([*lines, "    return table" if indexes else "", ""])


def _shape(source: Source, row: Definition, schema: Node) -> tuple[Node, bool]:
    """Return the schema of a column without null and references, and whether it may be null."""
    shape, nullable = core(schema)
    if "$ref" in shape:
        target = source.resolve(row.url, as_text(shape["$ref"], row.where))
        beside = {key: value for key, value in shape.items() if key != "$ref"}
        native: Node = {"type": "instant"} if target.name == "Instant" else target.schema
        shape = {**native, **beside}
    return shape, nullable


def _type(shape: Node, where: str) -> str:
    length: Json = shape.get("maxLength")
    match shape.get("x-psych-column", shape.get("type")):
        case "bigint":
            return "_big()"
        case "json" | "long":
            return "_long()"
        case "tenant" | "id" as kind if length is not None:
            return f"_{kind}({as_int(length, where)})"
        case "instant":
            return "_instant()"
        case "string" if "enum" in shape:
            return "_id(32)"
        case "string" if length is not None:
            return f"_text({as_int(length, where)})"
        case "integer":
            return "Integer()"
        case "number":
            return "_real()"
        case "boolean":
            return "_flag()"
        case kind:
            raise SchemaError(
                f"{where}: no column type for {kind!r}; add maxLength or x-psych-column"
            )


def _index(index: Node) -> list[str]:
    """Return the statements that add an index: one, or for a partial index one per family."""
    name = as_text(index.get("name"), "x-psych-index")
    columns = [_ordered(word) for word in texts(index.get("columns"))]
    unique = ", unique=True" if index.get("unique") else ""
    if "where" not in index:
        return [f'Index(f"{{prefix}}{name}", {", ".join(columns)}{unique})']
    where = child(index, "where")
    parts = [_condition(field, wanted) for field, wanted in where.items()]
    condition = parts[0] if len(parts) == 1 else f"and_({', '.join(parts)})"
    first = [_ordered(field) for field, wanted in where.items() if isinstance(wanted, list)]
    whole = ", ".join([*first, *[column for column in columns if column not in first]])
    partial = f"sqlite_where={condition}, postgresql_where={condition}"
    return [
        f'_only(PARTIAL, Index(f"{{prefix}}{name}", {", ".join(columns)}{unique}, {partial}))',
        f'_only(WHOLE, Index(f"{{prefix}}{name}", {whole}{unique}))',
    ]


def _condition(field: str, wanted: Json) -> str:
    """Return what is so of each row of a partial index in one column."""
    column = f"table.c.{field}"
    if isinstance(wanted, list):
        return f"{column}.in_({tuple(texts(wanted))})"
    return f"{column}.is_not(None)"


def _ordered(word: str) -> str:
    field, _, order = word.partition(" ")
    return f"table.c.{field}.desc()" if order == "desc" else f"table.c.{field}"
