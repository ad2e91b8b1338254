"""Writes a conversation as messages of the chat/completions format, images and files in place."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.preview import compact_text_of, said_text
from psych_runtime.model._files import (
    IMAGES,
    Unsaid,
    is_text,
    kind_of,
    label,
    name_of,
    no_place,
    of_the_model,
    returned,
    sent,
    text_of,
)
from psych_runtime.model._history import attached, is_readable, tool_name
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    ModelRequest,
    Part,
    ReasoningPart,
    ToolMessage,
)

__all__ = ["chat_messages"]

type _Block = dict[str, JsonValue]

_AUDIO: Final = {
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
}
_UNKNOWN: Final = no_place(f"{', '.join(sorted({*IMAGES, *_AUDIO}))}, application/pdf and text")


def chat_messages(request: ModelRequest, reasoning_field: str | None) -> Iterator[JsonValue]:
    """Yield the messages; what is yielded for a conversation begins what is for a longer one.

    A tool's answer is text in this format: its images and files follow behind the answers of
    the turn, as a user's message that names the call. UnsendableRequest: a blob whose bytes are
    not there, a user's that has no place, or one that the model is to have said.
    """
    if request.system:
        yield {"role": "system", "content": request.system}
    shown: list[JsonValue] = []
    for place, message in enumerate(request.messages):
        if isinstance(message, ToolMessage):
            result, files = _result(message, place, request)
            yield result
            shown += files
            continue
        if shown:
            yield {"role": "user", "content": shown}
            shown = []
        if isinstance(message, AssistantMessage):
            yield _said(message, place, request, reasoning_field)
        else:
            yield {"role": "user", "content": _content(message.parts, place, request)}
    if shown:
        yield {"role": "user", "content": shown}


def _result(
    message: ToolMessage, place: int, request: ModelRequest
) -> tuple[JsonValue, list[JsonValue]]:
    """Return a tool's answer, and the files of it behind a line that says whose they are."""
    texts: list[str] = []
    files: list[JsonValue] = []
    for part in message.parts:
        shown: str | _Block | None = said_text(part)
        if isinstance(part, BlobPart):
            shown = returned(part, place, request, _file)
        if isinstance(shown, str):
            texts.append(shown)
        elif shown is not None:
            files.append(shown)
    text = "\n".join(texts)
    if files:
        text = text or "What it returned follows in the next user message."
        files.insert(0, _words(f"Returned by the call {message.call_id}:"))
    return {"role": "tool", "tool_call_id": message.call_id, "content": text}, files


def _said(
    message: AssistantMessage, place: int, request: ModelRequest, reasoning_field: str | None
) -> JsonValue:
    if any(isinstance(part, BlobPart) for part in message.parts):
        raise of_the_model(place)
    text = compact_text_of(message.parts)
    said: dict[str, JsonValue] = {"role": "assistant", "content": text}
    if message.calls:
        said["content"] = text or None
        said["tool_calls"] = [_call(call) for call in message.calls]
    thought = _thought(message.parts, request)
    if reasoning_field is not None and thought:
        said[reasoning_field] = thought
    return said


def _thought(parts: Sequence[Part], request: ModelRequest) -> str:
    """Return what this model thought: another's reasoning means nothing to it."""
    return "".join(
        part.text for part in parts if isinstance(part, ReasoningPart) and part.by == request.ref
    )


def _content(parts: Sequence[Part], place: int, request: ModelRequest) -> JsonValue:
    """Return text as text, and an array as soon as there is something else."""
    if not any(isinstance(part, BlobPart) for part in parts):
        return compact_text_of(parts)
    content: list[JsonValue] = []
    for part in parts:
        if isinstance(part, BlobPart):
            content.append(sent(part, place, request, _file))
        elif text := said_text(part):
            content.append(_words(text))
    return content


def _words(text: str) -> _Block:
    return {"type": "text", "text": text}


def _file(part: BlobPart, place: int, request: ModelRequest) -> _Block | Unsaid:
    """Return an image, audio, a PDF, or a text behind a line that says which file it is."""
    kind = kind_of(part)
    if is_text(part):
        text = text_of(part, place, request)
        return text if isinstance(text, Unsaid) else _words(f"[{label(part)}]\n{text}")
    if kind not in IMAGES and kind not in _AUDIO and kind != "application/pdf":
        return _UNKNOWN
    data = attached(part, place, request)
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[kind]}}
    url = f"data:{kind};base64,{data}"
    if kind in IMAGES:
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": name_of(part) or "file", "file_data": url}}


def _call(call: AskedCall) -> JsonValue:
    """Return a call under our id, so that no server can refuse the whole history for it (D5)."""
    arguments = call.arguments if is_readable(call) else "{}"
    function: JsonValue = {"name": tool_name(call), "arguments": arguments}
    return {"id": call.call_id, "type": "function", "function": function}
