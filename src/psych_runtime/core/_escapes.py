"""Ways to write a character by an escape: percent, backslash, entity, each also escaped again.

A tilde is one, too: pointers into JSON are written with it.

What an escape stands for depends on where a reader begins, and on how often the text has been
escaped: all meanings are given, and who looks for something follows each.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from typing import Final

__all__ = ["LONGEST_ESCAPE", "escapes_at", "known_by"]

LONGEST_ESCAPE: Final = 24  # bytes

_PERCENT: Final = re.compile(rb"%(?:25){0,2}[0-9a-fA-F]{2}")
_RUN: Final = re.compile(rb"\\{1,8}")
_LONGEST_RUN: Final = 7  # before a letter: \" in JSON, in JSON, in JSON
_CODED: Final = re.compile(
    rb"u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})"
)
_LOW_HALF: Final = re.compile(rb"\\{1,7}u([dD][c-fC-F][0-9a-fA-F]{2})")
_ENTITY: Final = re.compile(
    rb"(?:#0{0,6}([0-9]{1,7})|#[xX]0{0,6}([0-9a-fA-F]{1,6})|([a-zA-Z]{2,10}));"
)
_AMP: Final = b"amp;"
_OCTAL: Final = 5  # among the groups
_POINTED: Final = {b"~0": b"~", b"~1": b"/"}
_LONGER: Final = frozenset(b"\\uUx0123")
_LETTERS: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_LAST: Final = 0x10FFFF
_TIMES: Final = 3

type _Meaning = tuple[int, bytes]
"""How many bytes an escape has, and the UTF-8 that it stands for."""


def escapes_at(data: bytes, place: int) -> Iterator[_Meaning]:
    """Yield every meaning of an escape that begins at `place`; elsewhere nothing."""
    match data[place]:
        case 0x25:
            yield from _percent(data, place)
        case 0x26:
            yield from _entity(data, place)
        case 0x2B:
            yield 1, b" "
        case 0x5C:
            yield from _backslash(data, place)
        case 0x7E if (two := data[place : place + 2]) in _POINTED:
            yield 2, _POINTED[two]


def known_by(data: bytes, place: int) -> bytes | None:
    """Return the first bytes of an escape where these alone say what it means, else None."""
    three = data[place : place + 3]
    if three[:1] == b"%":
        return three if three != b"%25" else None
    if three[:1] == b"~":
        return three[:2]
    return three[:2] if three[:1] == b"\\" and not _LONGER.issuperset(three[1:2]) else None


def _percent(data: bytes, place: int) -> Iterator[_Meaning]:
    """`%41`, `%2541`, `%252541`; the shorter ones of the last two are `%`."""
    found = _PERCENT.match(data, place)
    if found is None:
        return
    whole = found.group()
    for length in range(3, len(whole) + 1, 2):
        yield length, bytes.fromhex(whole[length - 2 : length].decode())


def _backslash(data: bytes, place: int) -> Iterator[_Meaning]:
    found = _RUN.match(data, place)
    assert found is not None
    run = found.end() - place
    for length in (2, 4, 8):
        if run >= length:
            yield length, b"\\"
    if run > _LONGEST_RUN:
        return
    after = data[found.end() : found.end() + 1]
    coded = _CODED.match(data, found.end())
    if coded:
        yield from _coded(data, place, coded)
    if after in _LETTERS:
        yield run + 1, _LETTERS[after]
    elif after and b" " <= after <= b"~" and not after.isalnum():
        yield run + 1, after


def _coded(data: bytes, place: int, coded: re.Match[bytes]) -> Iterator[_Meaning]:
    digits = next(group for group in coded.groups() if group is not None)
    point, end = int(digits, 8 if coded[_OCTAL] else 16), coded.end()
    if 0xD800 <= point < 0xDC00 and (low := _LOW_HALF.match(data, end)):
        point, end = 0x10000 + (point - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00, low.end()
    if point <= _LAST:
        yield end - place, chr(point).encode(errors="surrogatepass")
    if (coded[4] or coded[_OCTAL]) and point > 0x7F:
        yield end - place, bytes([point])  # as bytes are shown


def _entity(data: bytes, place: int) -> Iterator[_Meaning]:
    """`&lt;`, `&amp;lt;`, `&amp;amp;lt;`; the beginnings of the last two are `&`."""
    after = place + 1
    for _ in range(_TIMES):
        found = _ENTITY.match(data, after)
        meaning = _meaning(found) if found else None
        if found and meaning is not None:
            yield found.end() - place, meaning
        if not data.startswith(_AMP, after):
            return
        after += len(_AMP)


def _meaning(entity: re.Match[bytes]) -> bytes | None:
    name = entity[3]
    if name is not None:
        named = html5.get(f"{name.decode()};")
        return None if named is None else named.encode()
    point = int(entity[1]) if entity[1] is not None else int(entity[2], 16)
    return chr(point).encode(errors="surrogatepass") if point <= _LAST else None
