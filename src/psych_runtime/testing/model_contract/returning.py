"""What a tool returned reaches the model, in whole or as a line that says what it was (MOD-9).

A person's file that a format has no place for may be refused: a person chose it. A tool's may not,
since that would end the Run.
"""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._scene import ask, hello, is_whole, request, scene, stream
from psych_schema.common import BlobRef
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    ModelRequest,
    Part,
    TextPart,
    ToolMessage,
)

__all__ = [
    "a_long_result_is_told_as_its_text",
    "a_tools_file_is_told_by_its_name",
    "the_name_of_a_tools_file_is_short_and_on_one_line",
    "what_a_tool_returned_ends_no_call",
]

_CALL: Final = "call_" + "0" * 26
_PNG: Final = b"\x89PNG\r\n\x1a\n kit image"
_ZIP: Final = b"PK\x03\x04 kit archive"
_LONG: Final = 'kit {"line": 1}\n\tkit é 2'
_TEXTS: Final = ("text/plain", "text/html; charset=utf-8", "application/json", "application/x+json")
_TYPES: Final = (
    *_TEXTS,
    "",
    "application/pdf",
    "application/zip",
    "audio/wav",
    "image/png",
    "image/svg+xml",
    "x-kit\nno type",
)
_NAME_CHARACTERS: Final = 80


def _blob(data: bytes, media_type: str, *, name: str | None = None) -> BlobPart:
    ref = BlobRef(hash=sha256(data).hexdigest(), bytes=len(data), media_type=media_type)
    return BlobPart(blob=ref, name=name)


def _returned(*parts: Part, failed: bool = False) -> ModelRequest:
    """Return a request behind a call that returned these parts."""
    call = AskedCall(call_id=_CALL, provider_id="kit", name="add", arguments="{}")
    said = AssistantMessage(parts=(), calls=(call,))
    answered = ToolMessage(call_id=_CALL, parts=parts, failed=failed)
    there = {sha256(data).hexdigest(): b64encode(data).decode() for data in _data()}
    return request().model_copy(
        update={"messages": (*request().messages, said, answered), "attachments": there}
    )


def _data() -> Iterator[bytes]:
    """Yield bytes of every kind: an image, an archive, text, blanks, none at all."""
    yield from (_PNG, _ZIP, _LONG.encode(), b" \n", b"", b"\xff\xfe")


async def _bodies(harness: Harness, *asked: ModelRequest) -> list[bytes]:
    """Return what each request is sent as; it must be answered."""
    script = stream(harness.dialect, *hello(harness.dialect))
    async with scene(harness, script) as (server, client):
        for one in asked:
            is_whole(await ask(client, asked=one), "a call behind what a tool returned")
        return [sent.partition(b"\r\n\r\n")[2] for sent in server.requests]


@check("MOD-9")
async def what_a_tool_returned_ends_no_call(harness: Harness) -> None:
    """Any media type with any bytes, named or not, alone or among words, of a call that failed."""
    files = [
        _blob(data, media_type, name=name)
        for data in _data()
        for media_type in _TYPES
        for name in (None, "kit-file")
    ]
    words = TextPart(text="Done.")
    alone = (_returned(file) for file in files)
    await _bodies(harness, *alone, _returned(words, *files, words, failed=True))


@check("MOD-9")
async def a_tools_file_is_told_by_its_name(harness: Harness) -> None:
    """The model learns that it is there, whether the format has a place for it or not."""
    for media_type in ("application/zip", "application/x-kit", "video/mp4"):
        [body] = await _bodies(harness, _returned(_blob(_ZIP, media_type, name="kit-file.bin")))
        same(b"kit-file.bin" in body, True, f"that the name of {media_type} is in the request")


@check("MOD-9")
async def the_name_of_a_tools_file_is_short_and_on_one_line(harness: Harness) -> None:
    """It is foreign text: it ends no line, and fills no prompt."""
    name = "kit-a\r\nkit-b\x1b[2J" + "k" * 4 * _NAME_CHARACTERS
    for media_type in ("application/zip", "application/pdf", "text/plain"):
        [body] = await _bodies(harness, _returned(_blob(_LONG.encode(), media_type, name=name)))
        broken = (b"kit-a\r", b"kit-a\n", b"kit-a\\r", b"kit-a\\n", b"\x1b", b"u001b")
        same([one for one in broken if one in body], [], f"of a name in lines, as {media_type}")
        long = b"k" * (_NAME_CHARACTERS + 1) in body
        same(long, False, f"that more than {_NAME_CHARACTERS} characters of a name are sent")


@check("MOD-9", "TOOL-6")
async def a_long_result_is_told_as_its_text(harness: Harness) -> None:
    """A text without a name is the result itself, kept apart from the log for its size."""
    for media_type in _TEXTS:
        apart = _returned(_blob(_LONG.encode(), media_type))
        kept, said = await _bodies(harness, apart, _returned(TextPart(text=_LONG)))
        same(kept, said, f"a result that is kept as {media_type}")
        same(b"kit" in kept, True, "that the result is in the request")
