"""What all commands print with: JSON for programs, colours for terminals only, one way to fail."""

import json
import sys
from typing import NoReturn

from pydantic import JsonValue
from rich.console import Console

__all__ = ["console", "fail", "print_json"]


def console() -> Console:
    """Return a console on standard output that wraps nothing and colours only a terminal."""
    return Console(highlight=False, markup=False, soft_wrap=True, emoji=False)


def print_json(value: JsonValue) -> None:
    """Print `value` as one indented JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def fail(message: str) -> NoReturn:
    """Say on standard error what is wrong, and exit with 1."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
