"""Reads schema/examples: documents that must be valid, and such that must give a named error."""

from dataclasses import dataclass
from pathlib import Path

from codegen.tree import Node, SchemaError, as_node, as_text, read

__all__ = ["Example", "load"]


@dataclass(frozen=True, slots=True)
class Example:
    """One document of the corpus."""

    path: Path
    type: str
    name: str
    document: Node
    error: str | None
    """Type of Pydantic's first error, with ` at ` and its place; None: the document is valid."""


def load(root: Path) -> list[Example]:
    """Return the examples below `root`, the schema directory, in the order of their paths."""
    out: list[Example] = []
    for path in sorted((root / "examples").glob("*/*.json")):
        verdict, _, name = path.stem.partition("-")
        content = read(path)
        relative = path.relative_to(root)
        where = f"schema/{relative.as_posix()}"
        if verdict == "valid":
            out.append(Example(relative, path.parent.name, name, content, None))
        elif verdict == "invalid":
            document = as_node(content.get("document"), f"{where}#/document")
            error = as_text(content.get("error"), f"{where}#/error")
            out.append(Example(relative, path.parent.name, name, document, error))
        else:
            raise SchemaError(f"{where}: neither valid- nor invalid-; rename it")
    return out
