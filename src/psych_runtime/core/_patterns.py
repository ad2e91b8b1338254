"""Matches patterns of schemas in a time that is known before: no text makes one explode (SEC-3).

The engine is that of pydantic: it never goes back, but its time and memory grow with the size
of the pattern once its counts are written out. So this size is estimated, and charged.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, core_schema

from psych_runtime.core._work import Work

__all__ = ["BadPattern", "Matcher", "Patterns"]

# Measured: 40 to 110 ns for each byte and part, when the engine has to follow all parts at once.
_PARTS_A_STEP: Final = 16
# Measured: 1 ms for each `\w` that is repeated, 20 us for each `.`; 0.3 s, then 10 MiB are full.
_STEPS_A_WIDE_PART: Final = 1_000
_STEPS_A_PART: Final = 25
_MOST_STEPS: Final = 300_000
_STEPS_A_MATCH: Final = 2
_CLASS_A_PART: Final = 32
_DIGITS: Final = 9  # what counts more is refused by the engine
_WIDE: Final = re.compile(r"\\[bBdDpPsSwW]|\(\?[a-zA-Z-]*i")
_COUNT: Final = re.compile(r"\{\s*([0-9]*)\s*,?\s*([0-9]*)\s*\}")
_ESCAPE: Final = re.compile(r"\\(?:[pPuUx]\{[^}]*\}|.)", re.DOTALL)
_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z-]*x")
_ENGINE_ERROR: Final = re.compile(r"\nerror: (.+)")
_REMEDIES: Final = {
    "look-around": "say it without, as two patterns in allOf or with not",
    "backreference": "say it without: no later part can repeat an earlier one",
    "too large": "write smaller counts and fewer of them, or use maxLength",
    "flag x": "write the pattern without blanks and remarks",
}


class BadPattern(ValueError):
    """The pattern cannot be matched; the text says why and what to do."""

    def __init__(self, pattern: str, reason: str) -> None:
        self.pattern = pattern
        remedy = next((one for word, one in _REMEDIES.items() if word in reason), None)
        super().__init__(reason if remedy is None else f"{reason}; {remedy}")


class Matcher(NamedTuple):
    """A pattern that is ready."""

    parts: int
    engine: SchemaValidator

    def is_in(self, text: str, work: Work) -> bool:
        """Say whether the pattern matches somewhere in `text`. Raises TooMuchWork."""
        size = len(text) if text.isascii() else 4 * len(text)
        work.spend(_STEPS_A_MATCH + size * self.parts // _PARTS_A_STEP)
        return self.engine.isinstance_python(text)


class Patterns:
    """The patterns of one check; each is made ready, and charged, once."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ready: dict[str, Matcher | BadPattern] = {}

    def matcher(self, pattern: str) -> Matcher:
        """Return the pattern made ready. Raises BadPattern, TooMuchWork."""
        found = self._ready.get(pattern)
        if found is None:
            found = self._ready[pattern] = self._prepare(pattern)
        if isinstance(found, BadPattern):
            raise found
        return found

    def _prepare(self, pattern: str) -> Matcher | BadPattern:
        self._work.spend(len(pattern))
        try:
            parts = _parts(pattern)
            one = _STEPS_A_WIDE_PART if _WIDE.search(pattern) else _STEPS_A_PART
            self._work.spend(min(parts * one, _MOST_STEPS))
            return Matcher(parts, _engine(pattern))
        except BadPattern as error:
            return error


@lru_cache(maxsize=32)  # one can hold 10 MiB
def _engine(pattern: str) -> SchemaValidator:
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema)
    except SchemaError as error:
        raise BadPattern(pattern, _reason(str(error))) from None


def _reason(told: str) -> str:
    if "size limit" in told:
        return "it is too large once its counts are written out"
    said = _ENGINE_ERROR.search(told)
    return said[1] if said else "the engine cannot read it"


def _parts(pattern: str) -> int:
    """Return at least how many parts `pattern` has once its counts are written out.

    Whether it is a pattern is left to the engine; of one that is, nothing is missed.
    """
    open_: list[int] = []  # for each open bracket, what stands before it
    total = last = place = 0
    while place < len(pattern):
        here, end = pattern[place], place + 1
        if here == "{" and (count := _COUNT.match(pattern, place)):
            times = max(int(one.lstrip("0")[:_DIGITS] or 1) for one in count.groups())
            total, last, end = total + last * (times - 1), last * times, count.end()
        elif here == "(":
            if _VERBOSE.match(pattern, place):
                raise BadPattern(pattern, "the flag x is not supported")
            open_.append(total)
            total = last = 0
        elif here == ")":
            last = total + 1
            total = last + (open_.pop() if open_ else 0)
        elif here not in "*+?":
            end = _end_of_part(pattern, place)
            last = 1 + (end - place) // _CLASS_A_PART
            total += last
        place = end
    return max(total, len(pattern) // _CLASS_A_PART, 1)


def _end_of_part(pattern: str, place: int) -> int:
    """Return where a character, an escape or a class ends; classes hold classes."""
    if pattern[place] != "[":
        escape = _ESCAPE.match(pattern, place)
        return escape.end() if escape else place + 1
    depth = 0
    while place < len(pattern):
        here = pattern[place]
        if here == "[":
            depth += 1
            place += 2 if pattern[place + 1 : place + 2] == "^" else 1
            place += pattern[place : place + 1] == "]"  # one that comes first is a character
        else:
            depth -= here == "]"
            place += 2 if here == "\\" else 1
        if depth == 0:
            break
    return place
