"""Reads JSON text slowly: with positions, everything wrong at once, and no recursion (SEC-3).

The fast reader is `foreign.parse_json`; it comes here when it has to say what is wrong, and
`spec_file` comes here always.
"""

import json
import re
from typing import Final

from pydantic import JsonValue

from psych_runtime.core._locate import Document, Place, Source, pointer_of
from psych_runtime.core._numbers import Refused, read_number
from psych_runtime.core._redact import shown_in
from psych_runtime.core.issues import Issue

__all__ = ["STRING", "read_json_text"]

STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
"""A JSON string without its last quote."""

_TOKEN: Final = re.compile(
    r"[ \t\n\r]*+(?:"
    r"(?P<mark>[{}\[\],:])"
    rf'|(?P<string>{STRING}"?+)'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.]))"
    r"|(?P<word>[^\s{}\[\],:\"]++)"
    r"|(?P<other>.)|(?P<end>\Z))",
    re.DOTALL,
)
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}
_NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Broken(Exception):
    """The text is no JSON from here on."""


class _Frame:
    """A list or mapping that is open."""

    __slots__ = ("key", "place", "value")

    def __init__(self, value: dict[str, JsonValue] | list[JsonValue], place: Place) -> None:
        self.value = value
        self.place = place
        self.key: str | None = None  # None: between two members


class _Reader:
    def __init__(self, text: str, *, max_depth: int, whole: bool) -> None:
        self.source = Source(text)
        self.issues: list[Issue] = []
        self._text = text
        self._max_depth = max_depth
        self._whole = whole
        self._open: list[_Frame] = []
        self._at = 0  # where the current token starts
        self._next = 0  # where the next one is looked for
        self._kind = ""
        self._token = ""

    def read(self) -> Document:
        place = Place(0)
        try:
            value, place = self._document()
        except _Broken:
            return Document(self.source, None, place, tuple(self.issues), readable=False)
        return Document(self.source, value, place, tuple(self.issues), readable=True)

    def _document(self) -> tuple[JsonValue, Place]:
        self._advance()
        value, place = self._value()
        while self._open:
            frame = self._open[-1]
            if not self._element(frame):
                self._open.pop()
                continue
            inner, inner_place = self._value()
            self._keep(frame, inner, inner_place)
        self._advance()
        if self._kind != "end":
            raise self._broken("the document has ended; something follows")
        return value, place

    def _element(self, frame: _Frame) -> bool:
        """Go to the next value of `frame`, and for a mapping past its key; False at its end."""
        end = "}" if isinstance(frame.value, dict) else "]"
        first = not frame.value
        frame.key = None
        self._advance()
        if self._token == end and self._kind == "mark":
            return False
        if not first:
            if self._kind != "mark" or self._token != ",":
                raise self._broken(f"expected ',' or '{end}'")
            self._advance()
            if self._kind == "mark" and self._token == end:
                raise self._broken(f"a ',' too many before '{end}'")
        if isinstance(frame.value, dict):
            self._key(frame)
        return True

    def _key(self, frame: _Frame) -> None:
        if self._kind != "string":
            raise self._broken("expected a key in double quotes")
        frame.key = key = self._string()
        if key in frame.place.keys:
            self._fault("duplicate_key", "this key is there already", shown_in((), key))
        else:
            frame.place.keys[key] = self._at
        self._advance()
        if self._kind != "mark" or self._token != ":":
            raise self._broken("expected ':' after the key")
        self._advance()

    def _keep(self, frame: _Frame, value: JsonValue, place: Place) -> None:
        if isinstance(frame.value, list):
            frame.value.append(value)
            frame.place.items.append(place)
        elif frame.key is not None and frame.key not in frame.value:
            frame.value[frame.key] = value
            frame.place.members[frame.key] = place

    def _value(self) -> tuple[JsonValue, Place]:
        """Return the value at the current token; a list or mapping is returned open and empty."""
        place = Place(self._at)
        if self._kind == "mark" and self._token in "{[":
            if len(self._open) == self._max_depth:
                raise self._broken(f"nested deeper than {self._max_depth}", code="too_deep")
            value: dict[str, JsonValue] | list[JsonValue] = {} if self._token == "{" else []
            self._open.append(_Frame(value, place))
            return value, place
        if self._kind == "string":
            return self._string(), place
        if self._kind == "number":
            return self._number(), place
        if self._kind == "word" and self._token in _WORDS:
            return _WORDS[self._token], place
        if self._kind == "word" and self._token in _NOT_NUMBERS:
            self._fault("not_finite", "NaN and Infinity are no JSON", self._token)
            return None, place
        raise self._broken("expected a value")

    def _number(self) -> JsonValue:
        number = read_number(self._token, whole=self._whole)
        if isinstance(number, Refused):
            self._fault(number.code, number.message, self._shown(self._token))
            return None
        return number

    def _string(self) -> str:
        try:
            # Without a last quote the token is no JSON string either.
            text = str(json.loads(self._token))
        except json.JSONDecodeError as error:
            self._at += min(error.pos, len(self._token))
            raise self._broken(_STRING_FAULTS.get(error.msg, error.msg.lower())) from None
        if _SURROGATE.search(text):
            self._fault("not_unicode", "half of a surrogate pair is no character", None)
            return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
        return text

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._next)
        assert match is not None  # the last branches take anything
        assert match.lastgroup is not None
        self._kind = match.lastgroup
        self._token = match[self._kind]
        self._at = match.start(self._kind)
        self._next = match.end()

    def _path(self) -> list[str | int]:
        """Return where the current token stands; a list holds what is open in it already."""
        path: list[str | int] = []
        last = len(self._open) - 1
        for depth, frame in enumerate(self._open):
            if isinstance(frame.value, list):
                path.append(len(frame.value) - (depth < last))
            elif frame.key is not None:
                path.append(frame.key)
        return path

    def _shown(self, value: str) -> str:
        path = [part for part in self._path() if isinstance(part, str)]
        text = shown_in(path, value)
        return text[1:-1] if text.startswith('"') else text

    def _fault(self, code: str, message: str, value: str | None) -> None:
        issue = Issue(pointer_of(self._path()), message, code, value)
        self.issues.append(self.source.locate(issue, self._at))

    def _broken(self, message: str, *, code: str = "syntax") -> _Broken:
        self._fault(code, message, None)
        return _Broken()


_STRING_FAULTS: Final = {
    "Invalid control character at": "a line break or control character inside a text; escape it",
    "Invalid \\escape": "no such escape; write \\\\ for a backslash",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits",
    "Unterminated string starting at": "this text has no end",
}


def read_json_text(text: str, *, max_depth: int, whole: bool) -> Document:
    """Read JSON; `whole` applies the rule of Specs for numbers (SPEC-1). Raises nothing."""
    return _Reader(text, max_depth=max_depth, whole=whole).read()
