"""What all commands print with: JSON for programs, colours for terminals only, one way to fail."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from psych_runtime.errors import PsychError
    from psych_schema.base import Open

__all__ = ["AsJson", "console", "fail", "print_view", "say_error", "well_formed"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def console() -> "Console":
    """Return a console on standard output that wraps nothing and colours only a terminal."""
    from rich.console import Console

    return Console(highlight=False, markup=False, soft_wrap=True, emoji=False)


def print_view(view: "Open", *, indent: int | None = 2) -> None:
    """Print `view` as one JSON document, which its published schema describes.

    `indent` None puts it on one line, for commands that print many.
    """
    text = view.model_dump_json(indent=indent)
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    print(text if encoding.startswith("utf") else json.dumps(json.loads(text), indent=indent))


def well_formed(text: str) -> str:
    r"""Return `text` with what is not Unicode (a byte in a file's name) written as `\udcff`."""
    return text.encode(errors="backslashreplace").decode()


def say_error(error: "PsychError") -> None:
    """Say on standard error what went wrong, with the code of it."""
    print(f"error: {error}\ncode: {error.code}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Say on standard error what is wrong, and exit with 1."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
