"""What every format says of images and files, and what it says in their place (MOD-9).

What a person sends and a format has no words for is refused. What a tool returned ends no Run: a
line of text stands in its place.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Final, NamedTuple

from psych_runtime.core import preview
from psych_runtime.errors import UnsendableRequest
from psych_runtime.model._history import attached
from psych_schema.model import BlobPart, ModelRequest

__all__ = [
    "IMAGES",
    "Unsaid",
    "is_text",
    "kind_of",
    "label",
    "name_of",
    "no_place",
    "of_the_model",
    "returned",
    "sent",
    "text_of",
]

IMAGES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""What is an image to each of our formats."""

_SHOWN_CHARACTERS: Final = 80


class Unsaid(NamedTuple):
    """Why a format has no words for a blob: as a model is told, and as whoever sent it is."""

    told: str
    problem: str


type Write[T] = Callable[[BlobPart, int, ModelRequest], T | Unsaid]
"""Writes a blob of a message at this place of a request in some format, or says why not."""

_BLANK: Final = Unsaid("this is blank", " that is blank")
_NO_TEXT: Final = Unsaid("this is no text in UTF-8", " that is no text in UTF-8")


def no_place(known: str) -> Unsaid:
    """Return what is said of a blob of another media type than the `known` ones."""
    problem = f", which this format has no place for; it takes {known}"
    return Unsaid("this cannot be shown to you", problem)


def sent[T](part: BlobPart, place: int, request: ModelRequest, write: Write[T]) -> T:
    """Return a person's image or file as `write` writes it. UnsendableRequest: it does not."""
    written = write(part, place, request)
    if isinstance(written, Unsaid):
        kind = _shown(part.blob.media_type)
        raise UnsendableRequest(f"message {place} has a blob part ({kind}){written.problem}")
    return written


def returned[T](part: BlobPart, place: int, request: ModelRequest, write: Write[T]) -> T | str:
    """Return what a tool returned, or the words that stand in its place.

    A text without a name is no file but the result itself, too long for the log: its words.
    """
    words = part.name is None and is_text(part)
    written = text_of(part, place, request) if words else write(part, place, request)
    return f"[{label(part)}: {written.told}]" if isinstance(written, Unsaid) else written


def of_the_model(place: int) -> UnsendableRequest:
    """Return the error where the model is to have said a blob."""
    problem = f"message {place} is the model's and has a blob part"
    return UnsendableRequest(f"{problem}, which this format cannot say")


def kind_of(part: BlobPart) -> str:
    """Return the media type, in small letters and without parameters."""
    return part.blob.media_type.partition(";")[0].strip().lower()


def is_text(part: BlobPart) -> bool:
    """Tell whether a blob is text, by its media type."""
    return preview.is_text(part.blob.media_type)


def text_of(part: BlobPart, place: int, request: ModelRequest) -> str | Unsaid:
    """Return the text that a blob is. UnsendableRequest: its bytes are not there."""
    data = attached(part, place, request)
    try:
        text = b64decode(data, validate=True).decode()
    except ValueError:
        return _NO_TEXT
    return text if text.strip() else _BLANK


def name_of(part: BlobPart) -> str | None:
    """Return the name of a file, short and on one line; None where nothing of it is left."""
    return _shown(part.name or "") or None


def label(part: BlobPart) -> str:
    """Return in one line which file it is: `report.zip, application/zip, 1234 bytes`."""
    facts = (name_of(part), _shown(kind_of(part)), f"{part.blob.bytes} bytes")
    return ", ".join(fact for fact in facts if fact)


def _shown(foreign: str) -> str:
    """Return foreign text without what is not printed, and short."""
    printed = "".join(one if one.isprintable() else " " for one in foreign)
    return " ".join(printed.split())[:_SHOWN_CHARACTERS].strip()
