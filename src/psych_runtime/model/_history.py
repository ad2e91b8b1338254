"""What every format needs to write a history that no server refuses (D5, MOD-8)."""

import json
import re
from typing import Final

from pydantic import JsonValue

from psych_runtime.errors import UnsendableRequest
from psych_schema.model import AskedCall, BlobPart, ModelRequest

__all__ = ["attached", "compact", "is_readable", "tool_name"]

_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARACTERS: Final = 64


def compact(value: JsonValue) -> str:
    """Return `value` as JSON text without spaces. ValueError: NaN or infinity."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def tool_name(call: AskedCall) -> str:
    """Return the name that was called, in characters that a tool's name could have.

    Servers check the names of a history.
    """
    return _NO_NAME.sub("_", call.name)[:_NAME_CHARACTERS] or "_"


def is_readable(call: AskedCall) -> bool:
    """Tell whether arguments can go back: servers parse those of a history."""
    return call.problem is None and bool(call.arguments.strip())


def attached(part: BlobPart, place: int, request: ModelRequest) -> str:
    """Return the bytes of a blob, in base64. UnsendableRequest: they are not there."""
    data = request.attachments.get(part.blob.hash)
    if data is None:
        kind = part.blob.media_type
        raise UnsendableRequest(
            f"message {place} has a blob part ({kind}) whose bytes are not among the attachments"
        )
    return data
