"""`psych hash`: the hash that names the Version of a Spec file (SPEC-2)."""

from pathlib import Path
from typing import Annotated

import typer

from psych_runtime.cli.output import AsJson, print_view, well_formed
from psych_runtime.core.canonical import spec_hash
from psych_runtime.core.spec_file import load_spec

__all__ = ["hash_spec"]


def hash_spec(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Spec in YAML or JSON.")],
    as_json: AsJson = False,
) -> None:
    """Print the hash of a Spec, which does not depend on how the file is written.

    SHA-256 of the canonical form: key order, comments, CRLF, YAML or JSON make no difference,
    nor do values that equal the defaults. Exit code 1 when the Spec is not valid. With --json the
    document of the published schema `hash.json`.
    """
    spec = load_spec(file)
    digest = spec_hash(spec)
    if not as_json:
        print(digest)
        return
    from psych_schema.view import HashView

    name = well_formed(str(file))
    print_view(HashView(file=name, kind=spec.kind, name=spec.name, hash=digest))
