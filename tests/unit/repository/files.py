"""How the tests of the repository read its files."""

import re
from pathlib import Path

__all__ = ["ROOT", "make_targets", "text"]

ROOT = Path(__file__).parents[3]


def text(path: str) -> str:
    """Return a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def make_targets(makefile: str) -> dict[str, str]:
    """Return each documented target of a Makefile with its line of help."""
    return dict(re.findall(r"^([a-z0-9-]+):.*## (.+)$", makefile, re.MULTILINE))
