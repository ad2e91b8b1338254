"""Keeps secrets out of foreign text where it enters: model, log and spans see the same (R-24).

Found are secrets as they are, in hexadecimal and in base64 (at any place of a longer text, as in
`Basic` credentials), each also with any of its characters escaped for URLs, JSON, HTML or source
code, up to three times over. Not found is what no longer holds the whole value: a text that was
cut before it got here, a digest, another encoding or a compressed one.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime.core._secret_scan import Scanner, Span
from psych_runtime.core.secret import Secret

__all__ = ["ForeignError", "Redactor", "describe_error"]

_ROUNDS: Final = 4
_BARE_LABEL: Final = "[***]"  # shorter than a secret
_LEAST_DIGITS: Final = 6  # as many as a secret has characters
_MESSAGE_CHARACTERS: Final = 2_048
_TYPE_CHARACTERS: Final = 80
_NOTES: Final = 3
_INNER: Final = 3
_DEEPEST: Final = 3
_UNREADABLE: Final = "(its text cannot be read)"


class Redactor:
    """Takes some secrets out of texts: `[secret NAME]` stands in their place.

    Made of the secrets that a call resolved, and dropped with it. A text without them comes
    back as it is. Time is linear in the length of a text.
    """

    __slots__ = ("_labels", "_scanner")

    def __init__(self, secrets: Sequence[Secret] = ()) -> None:
        self._scanner = Scanner([secret.reveal().encode() for secret in secrets])
        labels = [f"[secret {secret.name}]" for secret in secrets]
        self._labels = [
            _BARE_LABEL if self._scanner.spans(label.encode()) else label for label in labels
        ]

    def __repr__(self) -> str:
        """Say what it writes."""
        return f"Redactor({', '.join(self._labels)})"

    def redact(self, text: str) -> str:
        """Return `text` without the secrets."""
        if not self._labels:
            return text
        data = str.encode(text, errors="surrogatepass")
        clean = self.redact_bytes(data)
        return text if clean is data else clean.decode(errors="surrogatepass")

    def redact_bytes(self, data: bytes) -> bytes:
        """Return a text in UTF-8, or whatever else holds some, without the secrets."""
        for _ in range(_ROUNDS if self._labels else 0):
            spans = self._scanner.spans(data)
            if not spans:
                return data
            data = b"".join(self._parts(data, spans))
        if self._labels and self._scanner.spans(data):  # labels and what stood around make new ones
            return _BARE_LABEL.encode()
        return data

    def redact_start(self, text: str, characters: int) -> str:
        """Return at most the first `characters` of `text`, without the secrets.

        Of one that goes on behind them nothing is left; cut first, its beginning would be.
        """
        if not self._labels or len(text) <= characters:
            return self.redact(text)[:characters]
        data = text[: characters + self._scanner.longest].encode(errors="surrogatepass")
        stop = len(text[:characters].encode(errors="surrogatepass"))
        for span in _merged(self._scanner.spans(data)):
            if span.start < stop < span.stop:
                stop = span.start
        return self.redact(data[:stop].decode(errors="surrogatepass"))[:characters]

    def redact_json(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without the secrets, in keys and numbers too.

        Keys that become the same are told apart by a number behind them.
        """
        if not self._labels:
            return value
        match value:
            case str():
                return self.redact(value)
            case dict():
                return self._members(value)
            case list():
                return [self.redact_json(one) for one in value]
            case bool() | None:
                return value
        written = json.dumps(value)
        clean = self.redact(written) if len(written) >= _LEAST_DIGITS else written
        return value if clean == written else clean

    def _members(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {}
        numbers: dict[str, int] = {}  # the last one of each name: many keys may become the same
        for key, one in value.items():
            clean = name = self.redact(key)
            while name in members or (name != key and name in value):
                numbers[clean] = numbers.get(clean, 1) + 1
                name = f"{clean} {numbers[clean]}"
            members[name] = self.redact_json(one)
        return members

    def _parts(self, data: bytes, spans: Sequence[Span]) -> Iterator[bytes]:
        place = 0
        for span in _merged(spans):
            yield data[place : span.start]
            yield self._labels[span.secret].encode()
            place = span.stop
        yield data[place:]


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return sorted spans without overlaps; of several, the longest gives the secret."""
    merged: list[Span] = []
    longest = 0
    for span in spans:
        length = span.stop - span.start
        if not merged or span.start >= merged[-1].stop:
            merged.append(span)
            longest = length
            continue
        last = merged[-1]
        secret = span.secret if length > longest else last.secret
        longest = max(longest, length)
        merged[-1] = Span(last.start, max(last.stop, span.stop), secret)
    return merged


class ForeignError(NamedTuple):
    """What may be told of an exception that foreign code raised; data, with no hold on it."""

    type_name: str
    message: str


def describe_error(error: BaseException, redactor: Redactor) -> ForeignError:
    """Return type and text of a foreign exception, without secrets and short.

    The text has its notes, of a group the first errors, and what caused it. Let go of the
    exception itself: chained, logged or kept, it shows what its own attributes hold.
    """
    text = "; ".join(_told(error, redactor, set()))
    return ForeignError(
        redactor.redact_start(type(error).__name__, _TYPE_CHARACTERS),
        redactor.redact_start(text, _MESSAGE_CHARACTERS),
    )


def _told(error: BaseException, redactor: Redactor, seen: set[int]) -> Iterator[str]:
    """Yield an exception's text, its notes, and each error behind it with its type."""
    seen.add(id(error))
    depth = len(seen)
    text = _text(error)
    if text:
        yield redactor.redact_start(text, _MESSAGE_CHARACTERS)
    for note in _notes(error):
        yield redactor.redact_start(note, _MESSAGE_CHARACTERS)
    for word, other in _behind(error):
        if id(other) in seen or depth > _DEEPEST:
            continue
        name = redactor.redact_start(type(other).__name__, _TYPE_CHARACTERS)
        said = "; ".join(_told(other, redactor, seen))
        yield f"{word} {name}: {said}" if said else f"{word} {name}"


def _behind(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions[:_INNER]:
            yield "with", one
    if error.__cause__ is not None:
        yield "caused by", error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__:
        yield "after", error.__context__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # foreign code
        return _UNREADABLE


def _notes(error: BaseException) -> list[str]:
    try:
        notes: object = getattr(error, "__notes__", None)
    except Exception:  # foreign code
        return []
    if not isinstance(notes, list):
        return []
    return [note for note in notes[:_NOTES] if isinstance(note, str)]
