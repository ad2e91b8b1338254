"""Images and files that a tool returns: bytes beside the log, and a name for them (TOOL-6)."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from psych_runtime.errors import InvalidArgument, PayloadTooLarge
from psych_runtime.ports.blob import MAX_BLOB_BYTES
from psych_schema.common import BlobRef

__all__ = ["Attachment", "attachments_in"]

_TOKEN: Final = r"[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,64}"
_MEDIA_TYPE: Final = re.compile(rf"{_TOKEN}/{_TOKEN}(?:; ?[\x20-\x7e]{{1,64}})?")
_NAME_CHARACTERS: Final = 255
_CONTROLS: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTIONS: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What lets a name look like another one; spaces and joiners of any script are in real names."""


@dataclass(frozen=True)
class Attachment:
    """An image or file that a tool returns, alone or in a list beside texts and values.

    The bytes go to the Runtime's blob store, and to the model in its next request, where the
    model's server takes such a file; where it does not, the model is told what there is.

    Args:
        data: at most 64,000,000 bytes.
        media_type: as in `image/png`; it says to the model's server what the bytes are.
        name: a file's name, at most 255 characters, none of them a control character or one that
            changes the direction of writing.

    Raises:
        InvalidArgument: one of them is not as said.
        PayloadTooLarge: more bytes than a blob store takes.
    """

    data: bytes = field(repr=False)
    media_type: str
    name: str | None = None

    def __post_init__(self) -> None:
        """Judge the fields: what is wrong is known best where it is made."""
        given: tuple[object, object, object] = (self.data, self.media_type, self.name)
        data, media_type, name = given
        if not isinstance(data, bytes):
            problem = f"data is a {type(data).__name__}; pass bytes"
        elif not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
            problem = "media_type is a text as image/png, with one parameter at most"
        elif name is not None and not isinstance(name, str):
            problem = f"name is a {type(name).__name__}; pass text, or None"
        elif name is not None and not 0 < len(name) <= _NAME_CHARACTERS:
            problem = f"name has {len(name)} characters; pass 1 to {_NAME_CHARACTERS}, or None"
        elif name is not None and (odd := _odd_character(name)) is not None:
            problem = f"name has {name[odd]!a} at character {odd}, which no name may have"
        else:
            if len(data) > MAX_BLOB_BYTES:
                raise PayloadTooLarge(
                    what="Attachment", size_bytes=len(data), bound_bytes=MAX_BLOB_BYTES
                )
            return
        raise InvalidArgument(what="Attachment", problem=problem)

    @cached_property
    def ref(self) -> BlobRef:
        """The name of the bytes in a blob store."""
        return BlobRef(
            hash=hashlib.sha256(self.data).hexdigest(),
            bytes=len(self.data),
            media_type=self.media_type,
        )


def attachments_in(value: object) -> Iterator[Attachment]:
    """Yield the attachments that a tool returned: one alone, or those of a list or tuple."""
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, Attachment):
            yield one


def _odd_character(name: str) -> int | None:
    """Return where a character stands that no name may have."""
    odd = (
        place
        for place, one in enumerate(name)
        if unicodedata.category(one) in _CONTROLS or one in _DIRECTIONS
    )
    return next(odd, None)
