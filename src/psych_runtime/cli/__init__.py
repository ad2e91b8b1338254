"""The command `psych`: reads and checks, never executes a Run (CLI-1, REF-1).

Exit codes: 0 all is well, 1 a problem was found, 2 wrong usage.
"""

import sys
from collections.abc import Sequence
from io import TextIOWrapper

from psych_runtime.cli.app import app
from psych_runtime.errors import PsychError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; `arguments` are those of the process unless given."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow encoding is no problem found
    try:
        app(args=None if arguments is None else list(arguments), prog_name="psych")
    except PsychError as error:
        print(f"error: {error}\ncode: {error.code}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:  # where the output goes is full or gone
        print(f"error: the output cannot be written: {error}", file=sys.stderr)
        sys.exit(1)
