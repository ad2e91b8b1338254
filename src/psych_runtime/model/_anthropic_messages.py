"""Writes a conversation as turns of the Messages format, images and files in place (D5, MOD-9).

What the service refuses is not written: blank texts, a turn without content, two turns of one
side in a row, a turn of the model that ends with what it thought.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from psych_runtime.core.preview import said_text
from psych_runtime.model._files import (
    IMAGES,
    Unsaid,
    is_text,
    kind_of,
    name_of,
    no_place,
    of_the_model,
    returned,
    sent,
    text_of,
)
from psych_runtime.model._history import attached, compact, is_readable, tool_name
from psych_runtime.model._json import parse
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    BlobPart,
    Message,
    ModelRequest,
    ReasoningPart,
    ToolMessage,
    UserMessage,
)

__all__ = ["Block", "Turn", "messages", "system"]

type Block = dict[str, JsonValue]

_UNKNOWN: Final = no_place(f"{', '.join(sorted(IMAGES))}, application/pdf and text")
_THOUGHTS: Final = frozenset({"redacted_thinking", "thinking"})
_NOTHING: Final = "(no text)"


@dataclass(slots=True)
class Turn:
    """What one side says before the other does."""

    by_user: bool
    content: list[Block] = field(default_factory=list)

    def json(self) -> JsonValue:
        """Return it as it is sent."""
        content: list[JsonValue] = [dict(block) for block in self.content]
        return {"role": "user" if self.by_user else "assistant", "content": content}


def system(request: ModelRequest) -> list[Block]:
    """Return the system prompt, and what the answer must be where nothing enforces it."""
    texts = [request.system]
    if request.output is not None and not request.output.strict:
        schema = compact(dict(request.output.json_schema))
        texts.append(
            f"Your final answer is JSON, and nothing else, that fits this schema: {schema}"
        )
    return [_text(text) for text in texts if text.strip()]


def messages(request: ModelRequest) -> list[Turn]:
    """Return the turns; those of a conversation begin those of a longer one.

    The answers to the calls of one turn are one turn of the user's, with what the user says next.
    UnsendableRequest: a blob whose bytes are not there, or a user's that has no place.
    """
    turns: list[Turn] = []
    for place, message in enumerate(request.messages):
        by_user = not isinstance(message, AssistantMessage)
        content = _content(message, place, request)
        if not content and not by_user:
            continue
        if not turns or turns[-1].by_user != by_user:
            if not turns and not by_user:
                turns.append(Turn(by_user=True, content=[_text(_NOTHING)]))
            turns.append(Turn(by_user))
        turns[-1].content += content or [_text(_NOTHING)]
    return turns or [Turn(by_user=True, content=[_text(_NOTHING)])]


def _content(message: Message, place: int, request: ModelRequest) -> list[Block]:
    if isinstance(message, AssistantMessage):
        return _said(message, place, request)
    content = list(_shown(message, place, request))
    return [_result(message, content)] if isinstance(message, ToolMessage) else content


def _shown(
    message: UserMessage | ToolMessage, place: int, request: ModelRequest
) -> Iterator[Block]:
    for part in message.parts:
        shown: str | Block | None = said_text(part)
        if isinstance(part, BlobPart):
            show = returned if isinstance(message, ToolMessage) else sent
            shown = show(part, place, request, _file)
        if isinstance(shown, str):
            if shown.strip():
                yield _text(shown)
        elif shown is not None:
            yield shown


def _result(message: ToolMessage, content: list[Block]) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": message.call_id}
    if content:
        result["content"] = [dict(block) for block in content]
    if message.failed and all(block["type"] == "text" for block in content):
        result["is_error"] = True  # refused beside an image or a file
    return result


def _said(message: AssistantMessage, place: int, request: ModelRequest) -> list[Block]:
    """Return what the model said, thought and called.

    Only this model's own reasoning goes back, and only with its signature: the service checks it.
    """
    content: list[Block] = []
    for part in message.parts:
        text = said_text(part)
        if isinstance(part, ReasoningPart):
            if part.signature and part.by == request.ref:
                content.append(_thought(part, part.signature))
        elif isinstance(part, BlobPart):
            raise of_the_model(place)
        elif text is not None and text.strip():
            content.append(_text(text))
    content += [_call(call) for call in message.calls]
    while content and content[-1]["type"] in _THOUGHTS:
        del content[-1]
    return content


def _thought(part: ReasoningPart, signature: str) -> Block:
    if part.redacted:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": part.text, "signature": signature}


def _call(call: AskedCall) -> Block:
    """Return a call under our id, with the arguments as an object: what is none goes as `{}`."""
    arguments: JsonValue = {}
    if is_readable(call):
        with contextlib.suppress(ValueError):
            value = parse(call.arguments)
            if isinstance(value, dict):
                compact(value)  # ValueError: an infinity
                arguments = value
    return {"type": "tool_use", "id": call.call_id, "name": tool_name(call), "input": arguments}


def _file(part: BlobPart, place: int, request: ModelRequest) -> Block | Unsaid:
    kind = kind_of(part)
    if kind in IMAGES:
        return {"type": "image", "source": _bytes(kind, attached(part, place, request))}
    if kind == "application/pdf":
        source = _bytes(kind, attached(part, place, request))
    elif is_text(part):
        text = text_of(part, place, request)
        if isinstance(text, Unsaid):
            return text
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return _UNKNOWN
    document: Block = {"type": "document", "source": source}
    name = name_of(part)
    return document if name is None else {**document, "title": name}


def _bytes(kind: str, data: str) -> Block:
    return {"type": "base64", "media_type": kind, "data": data}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
