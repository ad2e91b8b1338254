"""The command `psych`: reads and checks, never executes a Run (CLI-1, REF-1).

Exit codes: 0 all is well, 1 a problem was found, 2 wrong usage.
"""

import sys
from collections.abc import Sequence

from psych_runtime.cli.app import app
from psych_runtime.errors import PsychError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; `arguments` are those of the process unless given."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="psych")
    except PsychError as error:
        print(f"error: {error}\ncode: {error.code}", file=sys.stderr)
        sys.exit(1)
