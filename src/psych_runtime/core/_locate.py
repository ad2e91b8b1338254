"""Where each value of a text stands, so that an issue can name line and column (SPEC-4)."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core._redact import mask_line
from psych_runtime.core.issues import Issue

__all__ = ["MAX_DETAILED", "Document", "Place", "Source", "pointer_of", "segments_of"]

_BREAK: Final = re.compile(r"\r\n|\n|\r")
MAX_DETAILED: Final = 100
"""Issues of one document that get their source line and a suggestion; past it, only a position."""

_MASKED: Final = 2_000
_BEFORE: Final = 80
_AFTER: Final = 40
_AT_KEY: Final = frozenset({"duplicate_key", "unknown_field"})


def pointer_of(path: Sequence[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def segments_of(pointer: str) -> list[str]:
    """Return the parts of a JSON pointer, unescaped."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


class Place:
    """Where one value starts, and for a mapping or list where its parts are."""

    __slots__ = ("items", "keys", "members", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.keys: dict[str, int] = {}
        self.members: dict[str, Place] = {}
        self.items: list[Place] = []

    def offset(self, pointer: str, *, of_key: bool = False) -> int:
        """Return where `pointer` stands; of what is missing, where the mapping is that lacks it."""
        place, start = self, self.start
        for part in segments_of(pointer):
            inner = place.members.get(part)
            if inner is None and part.isdecimal() and int(part) < len(place.items):
                inner = place.items[int(part)]
            if inner is None:
                return place.start
            start = place.keys.get(part, inner.start) if of_key else inner.start
            place = inner
        return start


class Source:
    """A text by lines; they end in LF, CRLF or CR."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [match.span() for match in _BREAK.finditer(text)]
        self._located = 0
        self._starts = [0, *(end for _, end in self._ends)]

    def locate(self, issue: Issue, offset: int) -> Issue:
        """Return `issue` with line and column of `offset`, and the first ones with their line."""
        row = bisect_right(self._starts, offset) - 1
        start = self._starts[row]
        stop = self._ends[row][0] if row < len(self._ends) else len(self.text)
        at = offset - start
        placed = issue._replace(line=row + 1, column=at + 1)
        self._located += 1
        if self._located > MAX_DETAILED:
            return placed
        first = 0 if at <= _BEFORE else at - _BEFORE
        # Masked before it is cut: half a secret looks like none. A line without end is cut first.
        wide = max(0, first - _MASKED)
        line = mask_line(self.text[start + wide : min(stop, start + at + _MASKED)])
        source = line[first - wide : at + _AFTER - wide]
        return placed._replace(source=source.rstrip(), caret=at - first + 1)


class Document(NamedTuple):
    """What a text says, and what is wrong with how it says it."""

    source: Source
    value: JsonValue
    place: Place
    issues: tuple[Issue, ...]
    readable: bool  # False: the text broke off, `value` says nothing

    def locate(self, issue: Issue) -> Issue:
        """Return `issue` with the position of its pointer; one that has a position keeps it."""
        if issue.line is not None:
            return issue
        offset = self.place.offset(issue.pointer, of_key=issue.code in _AT_KEY)
        return self.source.locate(issue, offset)
