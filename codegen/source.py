"""Loads the schemas, completes the record types with the envelope, resolves references."""

import copy
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urldefrag, urljoin

from codegen.tree import Json, Node, SchemaError, as_list, as_node, as_text, child, read, walk

__all__ = ["BASE", "DIALECT", "NOT_SOURCES", "Definition", "Source"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://psychruntime.com/schema/v1/"
NOT_SOURCES = frozenset({"meta", "examples", "released"})

_ENVELOPE = "record/envelope.json"


@dataclass(frozen=True, slots=True)
class Definition:
    """One named schema: a file's root, or an entry of its `$defs`."""

    name: str
    url: str
    path: Path
    pointer: str
    schema: Node

    @property
    def where(self) -> str:
        """The place as messages name it."""
        return f"schema/{self.path.as_posix()}#{self.pointer}"

    @property
    def properties(self) -> Node:
        """The fields, empty for what is no object."""
        return child(self.schema, "properties")

    @property
    def required(self) -> list[str]:
        """Names of the required fields."""
        return [as_text(name) for name in as_list(self.schema.get("required", []))]


@dataclass(frozen=True, slots=True)
class Source:
    """Every schema by the URL it is published under, in the order of the paths."""

    root: Path
    raw: Mapping[str, Node]  # as written
    documents: Mapping[str, Node]  # record types have the envelope's fields
    paths: Mapping[str, Path]

    @classmethod
    def load(cls, root: Path) -> "Source":
        """Read each source below `root`. SchemaError: not JSON, or two files with one `$id`."""
        raw: dict[str, Node] = {}
        paths: dict[str, Path] = {}
        for path in sorted(root.rglob("*.json")):
            relative = path.relative_to(root)
            if relative.parts[0] in NOT_SOURCES:
                continue
            document = read(path)
            url = as_text(document.get("$id"), f"schema/{relative.as_posix()}#/$id")
            if url in raw:
                raise SchemaError(f"schema/{relative}#/$id: {url} is also that of {paths[url]}")
            raw[url] = document
            paths[url] = relative
        return cls(root, raw, _expand(raw), paths)

    def url(self, path: str) -> str:
        """Return the URL of the file at `path`."""
        for url, known in self.paths.items():
            if known.as_posix() == path:
                return url
        raise SchemaError(f"schema/{path}: missing; create it")

    def resolve(self, base: str, ref: str) -> Definition:
        """Return what `ref` in the document `base` names."""
        url, fragment = urldefrag(urljoin(base, ref))
        if url not in self.documents:
            raise SchemaError(f"schema/{self.paths[base]}: {ref!r} names no file; correct it")
        node: Json = self.documents[url]
        for part in filter(None, fragment.split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                raise SchemaError(f"schema/{self.paths[base]}: {ref!r} names nothing; correct it")
            node = node[key]
        schema = as_node(node, ref)
        name = fragment.rsplit("/", 1)[-1] or as_text(schema.get("title"), ref)
        return Definition(name, url, self.paths[url], fragment, schema)

    def definitions(self, *, raw: bool = False) -> Iterator[Definition]:
        """Yield each root and definition, file by file."""
        for url, document in (self.raw if raw else self.documents).items():
            yield from self._of(url, document)

    def in_file(self, path: str) -> Iterator[Definition]:
        """Yield the root and the definitions of one file."""
        url = self.url(path)
        yield from self._of(url, self.documents[url])

    def _of(self, url: str, document: Node) -> Iterator[Definition]:
        path = self.paths[url]
        if {"type", "oneOf", "anyOf", "$ref"} & document.keys():
            yield Definition(as_text(document.get("title"), str(path)), url, path, "", document)
        for name, schema in child(document, "$defs").items():
            yield Definition(name, url, path, f"/$defs/{name}", as_node(schema, name))

    def records(self) -> Iterator[Definition]:
        """Yield each record type, in the order of the union `Record`."""
        url = self.url("record/record.json")
        for branch in as_list(self.documents[url].get("oneOf", []), f"{url}#/oneOf"):
            yield self.resolve(url, as_text(as_node(branch).get("$ref"), f"{url}#/oneOf"))


def _expand(raw: Mapping[str, Node]) -> Mapping[str, Node]:
    """Put the envelope's fields after `type` in each type that has a transition."""
    documents = copy.deepcopy(dict(raw))
    for url, document in documents.items():
        for name, schema in child(document, "$defs").items():
            definition = as_node(schema, name)
            if "x-psych-transition" not in definition:
                continue
            envelope = _envelope(raw, url, name)
            properties = child(definition, "properties")
            head = {key: properties[key] for key in ("type",) if key in properties}
            fields = {**head, **child(envelope, "properties"), **properties}
            definition["properties"] = fields
            required = [*as_list(definition.get("required", [])), *as_list(envelope["required"])]
            definition["required"] = [key for key in fields if key in required]
    return documents


def _envelope(raw: Mapping[str, Node], url: str, name: str) -> Node:
    """Return a copy of the envelope whose references can be read from `url`."""
    home = BASE + _ENVELOPE
    if home not in raw:
        raise SchemaError(f"{url}#/$defs/{name}: no schema/{_ENVELOPE} to take the envelope from")
    envelope = copy.deepcopy(as_node(child(raw[home], "$defs").get("Envelope"), _ENVELOPE))
    for _, node in walk(envelope):
        ref = node.get("$ref")
        if isinstance(ref, str):
            target, fragment = urldefrag(urljoin(home, ref))
            file = "" if target == url else posixpath.relpath(target, posixpath.dirname(url))
            node["$ref"] = f"{file}#{fragment}"
    return envelope
