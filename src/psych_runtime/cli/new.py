"""`psych new`: a small project that runs as it is."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from psych_runtime.cli import _templates as templates
from psych_runtime.cli.output import AsJson, console, fail, print_view, well_formed
from psych_schema.view import CreatedView

__all__ = ["new"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Names the agent and its folder: a-z 0-9 _ -")
    ],
    folder: Annotated[
        Path, typer.Option("--dir", help="Where the folder is made.", file_okay=False)
    ] = Path(),
    python: Annotated[
        bool, typer.Option("--python/--yaml", help="Write the agent in Python, or in YAML.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a project with one agent and one tool; `python NAME/run.py` runs it.

    Without OPENAI_API_KEY or PSYCH_BASE_URL in the environment the model is a script, so it
    runs offline. Nothing that exists is overwritten: exit code 1, and nothing was written. With
    --json the document of the published schema `created.json`.
    """
    if _NAME.fullmatch(name) is None:
        raise typer.BadParameter(f"{name!r} must be 1 to 63 of a-z 0-9 _ -, a letter first")
    target = folder / name
    contents = templates.project(name, python=python)
    try:
        _write(target, contents)
    except FileExistsError as error:
        fail(f"{error.filename} exists; nothing was written. Choose another name or --dir")
    except OSError as error:
        fail(f"{error.filename} cannot be written: {(error.strerror or str(error)).lower()}")
    paths = {file: well_formed(str(target / file)) for file in contents}
    if as_json:
        print_view(CreatedView(files=tuple(paths.values())))
        return
    out = console()
    for path in paths.values():
        out.print(f"wrote {path}")
    out.print(f"\nNext: python {paths['run.py']}")
    if not python:
        out.print(f"      psych validate {paths['agent.yaml']}")


def _write(target: Path, contents: dict[str, str]) -> None:
    """Write all files or none; FileExistsError names the first that is there."""
    for file in contents:
        if (target / file).exists():
            raise FileExistsError(17, "exists", str(target / file))
    target.mkdir(parents=True, exist_ok=True)
    for file, text in contents.items():
        with (target / file).open("x", encoding="utf-8", newline="\n") as out:
            out.write(text)
