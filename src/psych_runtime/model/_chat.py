"""Writes a conversation as messages of the chat/completions format, images and files in place."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from psych_runtime.errors import UnsendableRequest
from psych_runtime.model._history import attached, is_readable, said_text, tool_name
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

_AUDIO = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}


def chat_messages(request: ModelRequest, reasoning_field: str | None) -> Iterator[JsonValue]:
    """Yield the messages; what is yielded for a conversation begins what is for a longer one.

    A tool's answer is text in this format: its images and files follow behind the answers of
    the turn, as a user's message that names the call. UnsendableRequest: a blob whose bytes are
    not there, or one that the model is to have said.
    """
    if request.system:
        yield {"role": "system", "content": request.system}
    shown: list[JsonValue] = []
    for place, message in enumerate(request.messages):
        if isinstance(message, ToolMessage):
            yield _result(message)
            shown += _shown(message, place, request)
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


def _result(message: ToolMessage) -> JsonValue:
    text = _text(message.parts)
    if not text and any(isinstance(part, BlobPart) for part in message.parts):
        text = "What it returned follows in the next user message."
    return {"role": "tool", "tool_call_id": message.call_id, "content": text}


def _shown(message: ToolMessage, place: int, request: ModelRequest) -> list[JsonValue]:
    """Return the images and files of a tool's answer, behind a line that says whose they are."""
    files = [part for part in message.parts if isinstance(part, BlobPart)]
    if not files:
        return []
    line: JsonValue = {"type": "text", "text": f"Returned by the call {message.call_id}:"}
    return [line, *(_file(part, place, request) for part in files)]


def _said(
    message: AssistantMessage, place: int, request: ModelRequest, reasoning_field: str | None
) -> JsonValue:
    if any(isinstance(part, BlobPart) for part in message.parts):
        problem = (
            f"message {place} is the model's and has a blob part, which this format cannot say"
        )
        raise UnsendableRequest(problem)
    text = _text(message.parts)
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
        return _text(parts)
    content: list[JsonValue] = []
    for part in parts:
        if isinstance(part, BlobPart):
            content.append(_file(part, place, request))
        elif text := _text((part,)):
            content.append({"type": "text", "text": text})
    return content


def _text(parts: Sequence[Part]) -> str:
    """Return texts and JSON values as one text."""
    return "\n".join(text for part in parts if (text := said_text(part)) is not None)


def _file(part: BlobPart, place: int, request: ModelRequest) -> JsonValue:
    kind, data = part.blob.media_type, attached(part, place, request)
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[kind]}}
    url = f"data:{kind};base64,{data}"
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": url}}


def _call(call: AskedCall) -> JsonValue:
    """Return a call under our id, so that no server can refuse the whole history for it (D5)."""
    arguments = call.arguments if is_readable(call) else "{}"
    function: JsonValue = {"name": tool_name(call), "arguments": arguments}
    return {"id": call.call_id, "type": "function", "function": function}
