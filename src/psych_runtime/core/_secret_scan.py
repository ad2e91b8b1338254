"""Finds forms of secrets in bytes, in a time that is linear in their length (R-24).

Most texts hold none: fast searches say so, and where a closer look begins otherwise. The closer
look follows all forms at once through every meaning of every escape, one bit for each byte of a
form ("shift and"): no text makes it go back. Measured, of a megabyte: 20 ms of words, 0.1 s of
JSON with URLs, 0.4 s of JSON in JSON, 2 s where every character is an escape.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from psych_runtime.core._escapes import LONGEST_ESCAPE, escapes_at, known_by
from psych_runtime.core._secret_forms import Form, forms_of

__all__ = ["Scanner", "Span"]

_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_BREAKS: Final = b"\r\n"
_WRITTEN_BREAKS: Final = (b"\r", b"\n")
_PADDING: Final = re.compile(
    rb"(?:=|%(?:25){0,2}3[dD]|\\{1,7}u003[dD]|&(?:amp;)?(?:#61|#[xX]3[dD]|equals);){1,2}"
)
_ESCAPE: Final = re.compile(rb"[%&\\~]")
_ESCAPE_OR_PLUS: Final = re.compile(rb"[%&+\\~]")
_ESCAPES: Final = frozenset(b"%&+\\~")


class Span(NamedTuple):
    """Where a form of the secret with this number begins and ends."""

    start: int
    stop: int
    secret: int


class _Needle(NamedTuple):
    """A form of the secret with this number."""

    secret: int
    form: Form


class _End(NamedTuple):
    """What the last byte of a form belongs to."""

    first: int  # the bit of its first byte
    secret: int
    padded: bool


class Scanner:
    """Looks for some secrets."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._needles = [
            _Needle(secret, form) for secret, value in enumerate(values) for form in forms_of(value)
        ]
        self._masks, self._first, self._in_lines = _masks([needle.form for needle in self._needles])
        self._ends: dict[int, _End] = {}
        bit = 0
        for secret, form in self._needles:
            self._ends[bit + len(form.sets) - 1] = _End(bit, secret, form.in_lines)
            bit += len(form.sets)
        self._last = sum(1 << end for end in self._ends)
        self._longest = max((len(form.sets) for _, form in self._needles), default=0)
        self._escape = _ESCAPE_OR_PLUS if self._masks[0x20] else _ESCAPE

    @property
    def longest(self) -> int:
        """How many bytes the longest way has to write one of them, but for line breaks."""
        return self._longest * LONGEST_ESCAPE

    def spans(self, data: bytes) -> list[Span]:
        """Return where secrets are, sorted; they may overlap."""
        texts = {"plain": data, "hex": data.lower(), "base64": data.translate(_TO_STANDARD)}
        found: list[Span] = []
        for needle in self._needles:
            found += _whole(needle, texts[needle.form.kind], data)
        divided = self._is_divided(data, texts["base64"])
        place = 0
        for start, trigger in [(0, len(data))] if divided else self._suspicions(data):
            if trigger >= place:
                place = self._look(data, max(start, place), trigger, found)
        return sorted(set(found))

    def _is_divided(self, data: bytes, folded: bytes) -> bool:
        """Say whether base64 is there that line breaks divide."""
        joined = folded.translate(None, _BREAKS)
        if len(joined) == len(data):
            return False
        cores = [form.core for _, form in self._needles if form.in_lines]
        return any(joined.count(core) > folded.count(core) for core in cores)

    def _suspicions(self, data: bytes) -> list[tuple[int, int]]:
        """Return where forms may have begun whose first escape is at the second place, sorted."""
        found: list[tuple[int, int]] = []
        known: dict[bytes, int] = {}
        for escape in self._escape.finditer(data):
            place = escape.start()
            key = known_by(data, place)
            bits = known.get(key) if key is not None else None
            if bits is None:
                bits = self._bits_of(data, place)
                if key is not None and place + len(key) < len(data):
                    known[key] = bits
            start = self._begun(data, place, bits) if bits else None
            if start is not None:
                found.append((start, place))
        return sorted(found)

    def _bits_of(self, data: bytes, place: int) -> int:
        """Return which bytes of forms an escape may stand for, or stand before."""
        bits = 0
        for _, meaning in escapes_at(data, place):
            bits |= self._masks[meaning[0]]
            if meaning in _WRITTEN_BREAKS:
                bits |= self._in_lines << 1
        return bits

    def _begun(self, data: bytes, place: int, bits: int) -> int | None:
        """Return where the earliest form began that one of `bits` goes on with at `place`."""
        begun = None
        while bits:
            if bits & self._first:
                begun = place
            if place == 0:
                break
            place -= 1
            byte = data[place]
            same = bits & self._in_lines << 1 if byte in _BREAKS else 0
            bits = bits >> 1 & self._masks[byte] | same
        return begun

    def _look(self, data: bytes, place: int, trigger: int, found: list[Span]) -> int:
        """Follow all forms from `place` until `trigger` is behind and none goes on; return where.

        `arriving` has, for each place ahead, the bits of what has been read up to there.
        """
        way = _Way(data)
        arriving: dict[int, int] = {}
        while True:
            bits = arriving.pop(place, 0)
            if bits:
                way.bits[place] = bits
                way.bits.pop(place - self.longest, None)
                self._report(way, place, bits & self._last, found)
            elif not arriving:
                if place > trigger:
                    return place
                way.forget()
            if place == len(data):
                return place
            for length, reached in self._steps(way, place, bits):
                arriving[place + length] = arriving.get(place + length, 0) | reached
            place += 1

    def _steps(self, way: "_Way", place: int, bits: int) -> Iterator[tuple[int, int]]:
        """Yield how far one byte or escape leads, and which bits are read then."""
        ahead = bits << 1 | self._first
        byte = way.data[place]
        reached = ahead & self._masks[byte]
        if byte in _BREAKS:
            reached |= bits & self._in_lines
        if reached:
            yield 1, reached
        if byte not in _ESCAPES:
            return
        for length, meaning in escapes_at(way.data, place):
            reached = ahead & self._masks[meaning[0]]
            for more in meaning[1:]:
                reached = reached << 1 & self._masks[more]
            if meaning in _WRITTEN_BREAKS:
                reached |= bits & self._in_lines
            if reached:
                way.escapes.setdefault(place + length, []).append((place, meaning))
                yield length, reached

    def _report(self, way: "_Way", stop: int, ended: int, found: list[Span]) -> None:
        while ended:
            bit = ended.bit_length() - 1
            ended ^= 1 << bit
            end = self._ends[bit]
            start = self._back(way, stop, bit, end.first)
            padding = _PADDING.match(way.data, stop) if end.padded else None
            found.append(Span(start, padding.end() if padding else stop, end.secret))

    def _back(self, way: "_Way", place: int, bit: int, first: int) -> int:
        """Return where the form began whose `bit` was reached at `place`."""
        while bit >= first:
            for start, meaning in way.arrivals(place):
                before = bit - len(meaning)
                known = before < first or way.bits.get(start, 0) >> before & 1
                read = before >= first - 1 and all(
                    self._masks[byte] >> before + 1 + n & 1 for n, byte in enumerate(meaning)
                )
                if known and read:
                    place, bit = start, before
                    break
                same = way.bits.get(start, 0) & self._in_lines
                if meaning in _WRITTEN_BREAKS and same >> bit & 1:
                    place = start
                    break
            else:
                break  # further back than anything is kept
        return place


class _Way:
    """What a closer look has passed: the bits at each place, and the escapes that led there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bits: dict[int, int] = {}
        self.escapes: dict[int, list[tuple[int, bytes]]] = {}

    def forget(self) -> None:
        """Drop what no form that goes on has passed."""
        self.bits.clear()
        self.escapes.clear()

    def arrivals(self, place: int) -> Iterator[tuple[int, bytes]]:
        """Yield from where `place` is reached, and by reading what."""
        if place > 0:
            yield place - 1, self.data[place - 1 : place]
        yield from self.escapes.get(place, ())


def _masks(forms: Sequence[Form]) -> tuple[list[int], int, int]:
    """Return each byte's bits, the bits that begin a form, and those of forms in lines."""
    size = sum(len(form.sets) for form in forms) // 8 + 1
    rows = [bytearray(size) for _ in range(256)]
    first = in_lines = place = 0
    for form in forms:
        first |= 1 << place
        if form.in_lines:  # but for its last byte, after which nothing goes on
            in_lines |= (1 << place + len(form.sets) - 1) - (1 << place)
        for allowed in form.sets:
            for byte in allowed:
                rows[byte][place >> 3] |= 1 << (place & 7)
            place += 1
    return [int.from_bytes(row, "little") for row in rows], first, in_lines


def _whole(needle: _Needle, text: bytes, data: bytes) -> Iterator[Span]:
    """Yield where a form stands without escapes; `text` is the data as its core is written."""
    secret, form = needle
    place = text.find(form.core)
    while place >= 0:
        start = place - form.edge
        stop = start + len(form.sets)
        if start >= 0 and _fits(form, data[start:stop]):
            padding = _PADDING.match(data, stop) if form.in_lines else None
            yield Span(start, padding.end() if padding else stop, secret)
        place = text.find(form.core, place + 1)


def _fits(form: Form, part: bytes) -> bool:
    """Say whether the edges are right too."""
    edges = (0, -1) if form.in_lines else ()
    return len(part) == len(form.sets) and all(part[edge] in form.sets[edge] for edge in edges)
