"""House rules of the sources; each problem says where it is and what to do.

First the files themselves, judged by the meta-schema; only when these are sound the rules that
follow references: definitions, unions, transitions and tables.
"""

from collections.abc import Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError as InvalidSchema
from jsonschema.exceptions import best_match

from codegen import lint_shapes, lint_store, lint_transitions
from codegen.source import BASE, Definition, Source
from codegen.tree import SchemaError, as_text, read, walk

__all__ = ["lint"]

_TAKEN = frozenset({"Annotated", "Closed", "Field", "Literal", "Mapping", "Open"})


def lint(source: Source) -> list[str]:
    """Return what is wrong with the sources, sorted; an empty list is a sound tree."""
    problems = sorted(_files(source)) or sorted(_references(source))
    if problems:
        return problems
    try:
        found = {*_titles(source), *lint_shapes.lint(source), *lint_store.lint(source)}
        found |= set(lint_transitions.lint(source))
    except SchemaError as error:
        found = {str(error)}
    return sorted(found)


def _references(source: Source) -> Iterator[str]:
    """Each `$ref` names something."""
    for url, document in source.raw.items():
        for pointer, node in walk(document):
            ref = node.get("$ref")
            if not isinstance(ref, str):
                continue
            try:
                source.resolve(url, ref)
            except SchemaError:
                where = f"schema/{source.paths[url].as_posix()}#{pointer}/$ref"
                yield f"{where}: {ref!r} names nothing; correct it"


def _files(source: Source) -> Iterator[str]:
    """Each file is a JSON Schema as the meta-schema wants it, under its own `$id`."""
    meta = Draft202012Validator(read(source.root / "meta" / "psych.json"))
    for url, document in source.raw.items():
        path = source.paths[url].as_posix()
        if url != BASE + path:
            yield f"schema/{path}#/$id: is {url}; write {BASE}{path}"
        if path.endswith(".schema.json"):
            yield f"schema/{path}: is named twice a schema; call it {path[:-12]}.json"
        try:
            Draft202012Validator.check_schema(document)
        except InvalidSchema as error:
            pointer = "".join(f"/{part}" for part in error.absolute_path)
            yield f"schema/{path}#{pointer}: {error.message}; correct it, it is no JSON Schema"
        for breach in meta.iter_errors(document):
            cause = best_match([breach]) or breach
            pointer = "".join(f"/{part}" for part in cause.absolute_path)
            remedy = "see schema/meta/psych.json"
            yield f"schema/{path}#{pointer}: {cause.message[:200]}; {remedy}"


def _titles(source: Source) -> Iterator[str]:
    """A title is a class, a type alias, a heading and a TypeScript name: one of each."""
    known: dict[str, str] = {}
    for url, document in source.raw.items():
        path = source.paths[url]
        title = as_text(document["title"], str(path))
        names = [d for d in source.definitions(raw=True) if d.url == url]
        if not any(d.pointer == "" for d in names):
            names.append(Definition(title, url, path, "", document))
        for definition in names:
            where = definition.where
            if definition.schema.get("title") != definition.name:
                yield f"{where}/title: is not the key; write {definition.name!r}"
            if definition.name in known:
                yield f"{where}: {definition.name} is also at {known[definition.name]}; rename one"
            if definition.name in _TAKEN:
                yield f"{where}: {definition.name} is taken by generated code; rename it"
            known[definition.name] = where
