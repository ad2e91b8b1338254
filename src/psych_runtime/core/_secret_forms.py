"""The forms of a secret that are looked for: as it is, in hexadecimal, in base64.

A form is a row of sets, one for each byte of a text: which bytes may stand there.
"""

from binascii import b2a_base64
from typing import Final, Literal, NamedTuple

__all__ = ["Form", "forms_of"]

_STANDARD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DIGIT: Final = [bytes([byte]) for byte in _STANDARD[:62]] + [b"+-", b"/_"]
_VALUE: Final = {byte: value for value, byte in enumerate(_STANDARD)}
_WHOLE: Final = 0b111111
_BYTES: Final = [bytes([byte]) for byte in range(256)]
_HEX: Final = [
    bytes({digit, digit ^ 0x20}) if digit > 0x40 else bytes([digit]) for digit in range(256)
]


class Form(NamedTuple):
    """One form: `core` is the part of it that is always the same, from `edge` on.

    `core` of hexadecimal is in small letters, of base64 in the standard alphabet.
    """

    kind: Literal["plain", "hex", "base64"]
    sets: list[bytes]
    core: bytes
    edge: int = 0

    @property
    def in_lines(self) -> bool:
        """Whether line breaks may stand anywhere in it."""
        return self.kind == "base64"


def forms_of(value: bytes) -> list[Form]:
    """Return the forms of a value, base64 at each of three alignments."""
    in_hex = value.hex().encode()
    return [
        Form("plain", [_BYTES[byte] for byte in value], value),
        Form("hex", [_HEX[digit] for digit in in_hex], in_hex),
        *(_base64(value, lead) for lead in range(3)),
    ]


def _base64(value: bytes, lead: int) -> Form:
    """Return the digits of a value with `lead` bytes before it.

    At each edge one digit may have bits of what stands around.
    """
    digits = _digits(value, lead)
    sets = [
        _DIGIT[digit]
        if known == _WHOLE
        else b"".join(_DIGIT[other] for other in range(64) if other & known == digit & known)
        for digit, known in digits
    ]
    core = bytes(_STANDARD[digit] for digit, known in digits if known == _WHOLE)
    return Form("base64", sets, core, int(digits[0][1] != _WHOLE))


def _digits(value: bytes, lead: int) -> list[tuple[int, int]]:
    """Return digits of six bits, and which of these bits are the value's."""
    tail = -(lead + len(value)) % 3
    whole = b"\0" * lead + value + b"\0" * tail
    known = b"\0" * lead + b"\xff" * len(value) + b"\0" * tail
    pairs = zip(_sixes(whole), _sixes(known), strict=True)
    return [(digit, bits) for digit, bits in pairs if bits]


def _sixes(data: bytes) -> list[int]:
    coded = b2a_base64(data, newline=False)
    return [_VALUE[byte] for byte in coded]
