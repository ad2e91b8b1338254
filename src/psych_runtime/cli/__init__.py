"""The command `psych`: reads and checks, never executes a Run (CLI-1, REF-1).

Exit codes: 0 all is well, 1 a problem was found, 2 wrong usage.
"""

import sys
from collections.abc import Sequence
from errno import EBADF
from io import TextIOWrapper
from os import strerror

from psych_runtime.cli.app import app
from psych_runtime.cli.output import say_error
from psych_runtime.errors import PsychError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; `arguments` are those of the process unless given."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow encoding is no problem found
    try:
        _check_output()
        app(args=None if arguments is None else list(arguments), prog_name="psych")
    except PsychError as error:
        say_error(error)
        sys.exit(1)
    except OSError as error:  # where the output goes is full or gone
        print(f"error: the output cannot be written: {error}", file=sys.stderr)
        sys.exit(1)


def _check_output() -> None:
    """Raise OSError when there is no standard output (`>&-`): Python has None in its place."""
    stream: object = sys.stdout
    if stream is None:
        raise OSError(EBADF, strerror(EBADF))
