"""A large result as the model is shown it: its beginning, its end, and how to read the rest.

Part of what a log means: every attempt must show the same bytes (MOD-8), so a record says how
many are shown, and nothing else decides.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic_core import to_json

from psych_schema.common import BlobRef
from psych_schema.model import BlobPart, JsonPart, Part, TextPart

__all__ = [
    "MAX_ATTACHED_BYTES",
    "MAX_TEXT_BYTES",
    "Whole",
    "compact_text_of",
    "file_line",
    "is_long_text",
    "is_text",
    "preview",
    "said_text",
    "text_of",
    "unshown_line",
]

MAX_ATTACHED_BYTES: Final = 32 * 1024 * 1024
"""What the images and files of one request may have together: no provider takes more."""

MAX_TEXT_BYTES: Final = 160 * 1024
"""What a text that is shown may have as JSON: its record has room for the names of files, too."""

_JSON: Final = ("application/json", "+json")


class Whole(NamedTuple):
    """Where all of something is whose text the model was shown in part."""

    run_id: str
    blob: BlobRef | None = None
    parts: Sequence[Part] = ()  # in the log, where there is no blob


def is_text(media_type: str) -> bool:
    """Tell whether bytes of this type are text."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith(_JSON)


def is_long_text(part: Part, shown_bytes: int) -> bool:
    """Tell whether a part is a file of text that is too large to be shown."""
    return (
        isinstance(part, BlobPart)
        and is_text(part.blob.media_type)
        and part.blob.bytes > shown_bytes
    )


def text_of(parts: Sequence[Part]) -> str:
    """Return texts and JSON values as one text; JSON in many lines, its keys as they came.

    Not indented: it may be 30 times as long then.
    """
    return "\n".join(
        one.text if isinstance(one, TextPart) else to_json(one.value, indent=0).decode()
        for one in parts
        if isinstance(one, TextPart | JsonPart)
    )


def said_text(part: Part) -> str | None:
    """Return a text, or a JSON value as text; None for a part that is neither.

    In one line, its keys sorted. ValueError: NaN or infinity.
    """
    match part:
        case TextPart():
            return part.text
        case JsonPart():
            return json.dumps(
                part.value,
                ensure_ascii=False,
                allow_nan=False,
                separators=(",", ":"),
                sort_keys=True,
            )
        case _:
            return None


def compact_text_of(parts: Sequence[Part]) -> str:
    """Return texts and JSON values as one text, as a model gets them in a message."""
    return "\n".join(text for one in parts if (text := said_text(one)) is not None)


def preview(text: str, shown_bytes: int, *, result: str) -> str:
    """Return at most `shown_bytes` of `text`, and between them where the rest is.

    `result` is the name by which the model asks for it.
    """
    data = text.encode()
    head = data[: shown_bytes * 2 // 3].decode(errors="ignore")
    tail = data[len(data) - shown_bytes // 3 :].decode(errors="ignore")
    start, stop = len(head.encode()), len(data) - len(tail.encode())
    return (
        f"{head}\n[Bytes {start} to {stop} of {len(data)} are left out here. Read them with "
        f'read_result, or look for something with search_result: result="{result}"]\n{tail}'
    )


def file_line(part: BlobPart, *, result: str) -> str:
    """Return what stands for a file of text that is too large to be shown."""
    name = "a file" if part.name is None else part.name
    return (
        f"[{name}, {part.blob.media_type}, {part.blob.bytes} bytes, is not shown here. Read it "
        f'with read_result, or look for something with search_result: result="{result}"]'
    )


def unshown_line(part: BlobPart) -> str:
    """Return what stands for a tool's file that no request has room for any more."""
    name = "a file" if part.name is None else part.name
    return (
        f"[{name}, {part.blob.media_type}, {part.blob.bytes} bytes, cannot be shown: the images "
        f"and files of a conversation have at most {MAX_ATTACHED_BYTES} bytes together]"
    )
