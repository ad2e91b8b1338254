"""`psych hash`: the hash that names the Version of a Spec file (SPEC-2)."""

from pathlib import Path
from typing import Annotated

import typer

from psych_runtime.cli.output import print_json
from psych_runtime.core.canonical import spec_hash
from psych_runtime.core.spec_file import load_spec

__all__ = ["hash_spec"]


def hash_spec(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Spec in YAML or JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Print the hash of a Spec, which does not depend on how the file is written.

    SHA-256 of the canonical form: key order, comments, CRLF, YAML or JSON make no difference,
    nor do values that equal the defaults. Exit code 1 when the Spec is not valid.
    """
    spec = load_spec(file)
    digest = spec_hash(spec)
    if as_json:
        print_json({"file": str(file), "kind": spec.kind, "name": spec.name, "hash": digest})
    else:
        print(digest)
