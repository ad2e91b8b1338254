"""Finds lines by a pattern in a text of any size, in a time that is known before (TOOL-6, SEC-3).

The text comes in pieces, so that nobody needs all of it at once. A line that is very long is
looked at in windows that overlap; a match longer than the overlap may be missed there.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from psych_runtime.core._patterns import BadPattern, Patterns
from psych_runtime.core._work import TooMuchWork, Work
from psych_runtime.errors import InvalidPayload

__all__ = ["Hit", "TextSearch"]

_STEPS: Final = 4_000_000  # of one search: some two seconds
_PATTERN_CHARACTERS: Final = 1024
_MOST_PARTS: Final = 2000  # of a pattern: nothing else runs while a window is looked at
_TOO_LARGE: Final = "is too large once its counts are written out; write smaller counts"
_WINDOW_BYTES: Final = 4096
_OVERLAP_BYTES: Final = 512
_MOST_HITS: Final = 50
_LINE_CHARACTERS: Final = 512
_BEFORE_CHARACTERS: Final = 400  # shown of a long line, before the end of what matched
_HIT_BYTES: Final = 16  # around the text of one, when it is shown
_NO_TEXT: Final = re.compile("[\udc80-\udcff]")  # a byte that is none, as it is decoded here


class Hit(NamedTuple):
    """A line, or what stands around a match in a long one, and the byte that it begins at."""

    start: int
    text: str


class TextSearch:
    """One search; ends at the end of the text, with enough lines, or when its steps are spent.

    `hits` are at most 50 and `max_bytes` together. `stop` is where it ended, and where another
    search goes on.

    Raises InvalidPayload: `pattern` is none that can be looked for; says why.
    """

    def __init__(self, pattern: str, *, start: int, max_bytes: int) -> None:
        self.hits: list[Hit] = []
        self.stop = start
        self.is_over = False
        self._left = max_bytes
        self._work = Work(_STEPS)
        self._ends = start  # the last match in a long line: no window shows it again
        if len(pattern) > _PATTERN_CHARACTERS:
            problem = f"has {len(pattern)} characters, the bound is {_PATTERN_CHARACTERS}"
            raise InvalidPayload(what="pattern", problem=problem)
        try:
            self._matcher = Patterns(self._work).matcher(pattern)
        except BadPattern as error:
            raise InvalidPayload(what="pattern", problem=str(error)) from None
        except TooMuchWork:
            raise InvalidPayload(what="pattern", problem=_TOO_LARGE) from None
        if self._matcher.parts > _MOST_PARTS:
            raise InvalidPayload(what="pattern", problem=_TOO_LARGE)

    def look(self, data: bytes, *, is_last: bool) -> None:
        """Look at what stands at `stop`; the next piece begins where `stop` is then."""
        base = self.stop
        try:
            for place, line, end in _pieces(data, is_last=is_last):
                self.stop = max(base + place, self._ends)
                self._look_at(line[self.stop - base - place :])
                if len(self.hits) >= _MOST_HITS or self._left <= 0:
                    self.is_over = True
                self.stop = max(base + end, self._ends)
                if self.is_over:
                    return
        except TooMuchWork:
            self.is_over = True
        else:
            self.is_over = is_last

    def _look_at(self, line: bytes) -> None:
        raw = line.decode(errors="surrogateescape")
        text = raw if raw.isascii() else _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", raw)
        if not self._matcher.is_in(text, self._work):
            return
        start = 0
        if len(text) > _LINE_CHARACTERS:
            upto = self._end_of_match(text)
            self._ends = self.stop + _bytes_of(raw[:upto])
            start = max(0, upto - _BEFORE_CHARACTERS)
        shown = text[start : start + _LINE_CHARACTERS]
        self.hits.append(Hit(self.stop + _bytes_of(raw[:start]), shown))
        self._left -= len(shown.encode()) + _HIT_BYTES

    def _end_of_match(self, text: str) -> int:
        """Return how many characters of `text` the pattern needs."""
        return bisect_left(
            range(len(text)), True, key=lambda upto: self._matcher.is_in(text[:upto], self._work)
        )


def _bytes_of(raw: str) -> int:
    return len(raw.encode(errors="surrogateescape"))


def _pieces(data: bytes, *, is_last: bool) -> Iterator[tuple[int, bytes, int]]:
    """Yield lines, long ones in windows: where each begins, its bytes, where the next begins.

    A line ends with LF or CRLF. What may go on in the next piece is left.
    """
    place = 0
    while place < len(data):
        end = data.find(b"\n", place, place + _WINDOW_BYTES)
        if end >= 0:
            yield place, data[place:end].removesuffix(b"\r"), end + 1
            place = end + 1
        elif place + _WINDOW_BYTES < len(data):
            following = _character(data, place + _WINDOW_BYTES - _OVERLAP_BYTES)
            yield place, data[place : _character(data, place + _WINDOW_BYTES)], following
            place = following
        elif is_last:
            yield place, data[place:], len(data)
            return
        else:
            return


def _character(data: bytes, place: int) -> int:
    """Return where a character begins, at `place` or before it."""
    begins = (one for one in range(place, place - 4, -1) if data[one] & 0xC0 != 0x80)
    return next(begins, place)  # bytes that are no text have none
