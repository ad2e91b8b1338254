"""The nearest valid name: did you mean (SPEC-4)."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["nearest"]

_LONGEST: Final = 80
_LIKENESS: Final = 0.6
_SEPARATORS: Final = re.compile(r"[\s_-]+")


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that `name` probably means, None when none is like it.

    Case and separators count for nothing: maxTurns means max_turns.
    """
    if not 0 < len(name) <= _LONGEST:
        return None
    plain = {_plain(candidate): candidate for candidate in sorted(valid, reverse=True)}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_LIKENESS)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()
