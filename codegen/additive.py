"""Compares the published schemas with those of each release: inside v1 they only grow.

What was valid stays valid and means the same: nothing is removed, narrowed or newly required, and
no default ever changes, since it decides the hash of every Spec that left it out.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from codegen import flat
from codegen.source import Source
from codegen.tree import Json, Node, SchemaError, as_list, as_node, child, read

__all__ = ["check", "compare", "release"]

_LOWER = frozenset({"exclusiveMinimum", "minItems", "minLength", "minimum"})
_UPPER = frozenset({"exclusiveMaximum", "maxItems", "maxLength", "maximum"})
_WORDS_ONLY = frozenset({"$comment", "deprecated", "description", "examples"})
_REMEDY = "add something new beside it instead"


def check(source: Source) -> list[str]:
    """Return each way in which the sources break a release."""
    problems: list[str] = []
    for path in sorted((source.root / "released").glob("*/*.json")):
        where = f"schema/released/{path.parent.name}/{path.name}"
        if path.stem not in flat.ROOTS:
            problems.append(f"{where}: no longer published; {_REMEDY}")
            continue
        new = flat.flatten(source, path.stem)
        problems += [f"{where}{problem}" for problem in compare(read(path), new)]
    return problems


def release(published: Path, released: Path, version: str) -> None:
    """Freeze the files in `published` as those of `version`. SchemaError: it has some already."""
    target = released / version
    if target.exists():
        raise SchemaError(f"schema/released/{version}: exists; a release is frozen, choose another")
    target.mkdir(parents=True)
    for path in sorted(published.glob("*.json")):
        (target / path.name).write_bytes(path.read_bytes())


def compare(old: Node, new: Node, pointer: str = "#") -> Iterator[str]:
    """Yield each change from `old` to `new` that is not additive."""
    for word in sorted({*old, *new} - _WORDS_ONLY):
        before, after = old.get(word), new.get(word)
        place = f"{pointer}/{word}"
        if (word in old) == (word in new) and _text(before) == _text(after):
            continue
        if word in {"properties", "$defs"}:
            yield from _members(child(old, word), child(new, word), place)
        elif word in {"items", "additionalProperties"} and _both_schemas(before, after):
            yield from compare(as_node(before), as_node(after), place)
        elif word in {"oneOf", "anyOf"} and word in old:
            yield from _branches(as_list(before), as_list(after if word in new else []), place)
        elif not _wider(word, old, new):
            yield f"{place}: {_show(old, word)} became {_show(new, word)}; {_REMEDY}"


def _text(value: Json) -> str:
    """Return a text that tells 2 from 2.0 and true, which Python's `==` does not."""
    return json.dumps(value, sort_keys=True)


def _both_schemas(before: Json, after: Json) -> bool:
    return isinstance(before, dict) and isinstance(after, dict)


def _members(old: Node, new: Node, place: str) -> Iterator[str]:
    for name, before in old.items():
        if name not in new:
            yield f"{place}/{name}: was removed; put it back"
        else:
            yield from compare(as_node(before), as_node(new[name]), f"{place}/{name}")


def _branches(old: list[Json], new: list[Json], place: str) -> Iterator[str]:
    for branch in old:
        if branch not in new:
            yield f"{place}: {json.dumps(branch)} was removed or changed; put it back"


def _wider(word: str, old: Node, new: Node) -> bool:
    """Say whether everything that `old` takes at `word` is still taken, and means the same."""
    before, after = old.get(word), new.get(word)
    if word in _LOWER | _UPPER:
        if word not in new:
            return True
        if not isinstance(before, int | float) or not isinstance(after, int | float):
            return False
        return after <= before if word in _LOWER else after >= before
    if word == "enum" and word in new:
        return word in old and all(value in as_list(after or []) for value in as_list(before))
    if word == "required":
        return all(name in as_list(before or []) for name in as_list(after or []))
    if word in {"enum", "pattern"}:
        return word not in new
    if word == "additionalProperties":
        return before is False
    return False


def _show(schema: Node, word: str) -> str:
    return json.dumps(schema[word])[:80] if word in schema else "absent"
