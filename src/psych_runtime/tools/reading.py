"""What a model reads the rest of a large result with (TOOL-6).

Offered as soon as a result is shown in part, by no grant but that of the tool it came from.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final, NamedTuple

from psych_runtime.tools._options import ToolOptions
from psych_runtime.tools.registered import RegisteredTool, registered

__all__ = ["Range", "Search", "reading_tools"]

_OPTIONS: Final = ToolOptions(
    annotations=frozenset({"read-only"}), safe_to_retry=True, timeout_seconds=60.0
)
_RESULT: Final = "Its name, as it stands where something is left out."


class Range(NamedTuple):
    """A part of a result is to be read."""

    result: str
    start: int
    size: int


class Search(NamedTuple):
    """Lines of a result are to be found."""

    result: str
    pattern: str
    start: int


def _read_result(
    result: Annotated[str, _RESULT],
    start: Annotated[int, "The first byte."] = 0,
    size: Annotated[int, "How many bytes; more than the Run shows at once are not given."] = 8192,
) -> Range:
    """Read a part of a result that is too large to be shown whole."""
    return Range(result, start, size)


def _search_result(
    result: Annotated[str, _RESULT],
    pattern: Annotated[
        str, "A regular expression that a line matches somewhere; no look-around, no references."
    ],
    start: Annotated[int, "The byte to begin at."] = 0,
) -> Search:
    """Find lines in a result that is too large to be shown whole, and where they begin."""
    return Search(result, pattern, start)


@cache
def reading_tools() -> Mapping[str, RegisteredTool]:
    """Return the tools by name."""
    named = {"read_result": _read_result, "search_result": _search_result}
    return {
        name: registered(function, name, _OPTIONS, kind="builtin")
        for name, function in named.items()
    }
