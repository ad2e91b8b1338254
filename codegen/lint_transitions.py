"""House rules of the transition table."""

from collections.abc import Iterator

from codegen.source import Definition, Source
from codegen.transitions import phases
from codegen.tree import Json, Node, as_list, as_node, as_text, child, core, texts

__all__ = ["lint"]


def lint(source: Source) -> Iterator[str]:
    """Yield each breach: unknown phases and fields, content that the fold would read."""
    known = phases(source.root)
    records = [d for d in source.definitions() if "x-psych-transition" in d.schema]
    if not records:
        return
    union = {record.where for record in source.records()}
    tags: dict[Json, str] = {}
    for record in records:
        where = record.where
        if where not in union:
            yield f"{where}: is no branch of schema/record/record.json; add it"
        tag = child(record.properties, "type").get("const")
        if tag in tags:
            yield f"{where}/properties/type: {tag!r} is also {tags[tag]}'s; choose another"
        tags[tag] = record.name
        yield from _envelope(source, record)
        yield from _content(record)
        yield from _rules(record, known)


def _envelope(source: Source, record: Definition) -> Iterator[str]:
    """The envelope is added by the loader; a type that repeats a field would change it."""
    written = child(as_node(child(source.raw[record.url], "$defs")[record.name]), "properties")
    for envelope in source.in_file("record/envelope.json"):
        for name in envelope.properties:
            if name in written:
                yield f"{record.where}/properties/{name}: is the envelope's; remove it here"


def _content(record: Definition) -> Iterator[str]:
    name = record.schema.get("x-psych-content")
    if name is None:
        return
    place = f"{record.where}/properties/{name}"
    if name not in record.properties:
        yield f"{record.where}/x-psych-content: {name!r} is no property; declare it"
        return
    field = child(record.properties, as_text(name, place))
    if name in record.required or field.get("default", "") is not None:
        yield f"{place}: content can be erased; make it optional with default null"


def _rules(record: Definition, known: dict[str, list[str]]) -> Iterator[str]:
    row = child(record.schema, "x-psych-transition")
    place = f"{record.where}/x-psych-transition"
    for index, item in enumerate(as_list(row.get("moves", []), place)):
        move, where = as_node(item, place), f"{place}/moves/{index}"
        words = [*texts(move.get("from")), *texts(move.get("to"))]
        yield from _phases(where, move, words, known)
        key = move.get("key")
        fields = [*texts(move.get("given")), *texts(move.get("keep"))]
        if key == "*" and "to" not in move:
            yield f"{where}: moves all and says not where; add `to`, or use `none`"
        fields += [] if key in (None, "*") else texts(key)
        yield from _fields(record, where, fields)
        yield from _when(record, where, child(move, "when"))
        if "given" in move and not _nullable(record, as_text(move["given"], where)):
            yield f"{where}/given: {move['given']} is always set; remove it"
    for index, item in enumerate(as_list(row.get("none", []), place)):
        rule, where = as_node(item, place), f"{place}/none/{index}"
        yield from _phases(where, rule, texts(rule.get("in")), known)
        yield from _when(record, where, child(rule, "when"))


def _phases(where: str, rule: Node, words: list[str], known: dict[str, list[str]]) -> Iterator[str]:
    kind = as_text(rule.get("object"), where)
    if kind not in known:
        yield f"{where}/object: {kind!r} is not tracked; use one of {', '.join(known)}"
        return
    for word in words:
        if word not in known[kind]:
            yield f"{where}: {kind} has no phase {word!r}; use one of {', '.join(known[kind])}"


def _fields(record: Definition, where: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if name not in record.properties:
            yield f"{where}: {name!r} is no field of {record.name}; declare or correct it"
        if name == record.schema.get("x-psych-content"):
            yield f"{where}: reads {name!r}, which can be erased; use a field that stays"


def _when(record: Definition, where: str, conditions: Node) -> Iterator[str]:
    yield from _fields(record, where, list(conditions))
    for name, values in conditions.items():
        shape, nullable = core(child(record.properties, name))
        allowed = shape.get("enum")
        for value in as_list(values, where):
            if value is None and not nullable:
                yield f"{where}/when/{name}: is never null; correct the condition"
            if value is not None and isinstance(allowed, list) and value not in allowed:
                yield f"{where}/when/{name}: is never {value!r}; correct the condition"


def _nullable(record: Definition, name: str) -> bool:
    return name not in record.properties or core(child(record.properties, name))[1]
