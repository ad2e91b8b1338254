"""`psych schema`: the published JSON Schemas, for editors and other languages (SPEC-5)."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

import psych_schema
from psych_runtime.cli.output import AsJson, print_view
from psych_runtime.core.near import nearest
from psych_schema.view import SchemasView

__all__ = ["schema"]


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which one; without it, list them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a published JSON Schema, or the names of all of them.

    Each stands alone (draft 2020-12, no references to other files). In an editor, put
    `# yaml-language-server: $schema=agent.json` on top of a Spec. With --json the names are the
    document of the published schema `schemas.json`; a schema is JSON as it is.
    """
    published = _published()
    if name is not None:
        wanted = name.removesuffix(".json")
        if wanted not in published:
            near = nearest(wanted, published)
            hint = f"; did you mean {near!r}?" if near else ""
            known = ", ".join(published)
            raise typer.BadParameter(f"no schema {wanted!r}; there are {known}{hint}")
        print(published[wanted].read_text(encoding="utf-8"), end="")
    elif as_json:
        print_view(SchemasView(schemas=tuple(published)))
    else:
        print("\n".join(published))


def _published() -> dict[str, Traversable]:
    """Return the schemas by name: in a wheel inside the package, in a checkout beside it."""
    folder = files(psych_schema) / "published" / "schema"
    if not folder.is_dir():
        folder = Path(str(psych_schema.__file__)).parent.parent / "schema"
    found = {
        entry.name.removesuffix(".json"): entry
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    return dict(sorted(found.items()))
