"""How messages follow one another in a body, and the other spellings that mean the same (MOD-5)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = ["JsonLines", "Message", "Spelling", "Sse", "Wire"]


class Message(NamedTuple):
    """One message of a stream: its data, and its type where the wire has a place for one."""

    data: str
    type: str = ""


type Spelling = Callable[[Sequence[Message]], bytes]
"""Writes messages in another way that a client must understand."""


class Wire(Protocol):
    """Puts messages into bytes."""

    @property
    def content_type(self) -> str:
        """The Content-Type of a stream."""

    def write(self, messages: Iterable[Message]) -> bytes:
        """Return the messages as the provider writes them."""

    def spellings(self) -> Mapping[str, Spelling]:
        """Return the other ways by the feature that a check names: `crlf`, `comments` ..."""


class Sse:
    """Server-sent events."""

    content_type = "text/event-stream"

    def write(self, messages: Iterable[Message]) -> bytes:
        """Return each message as one event."""
        return _events(messages)

    def spellings(self) -> Mapping[str, Spelling]:
        """Return every spelling that the standard of server-sent events allows."""
        return {
            "blank_lines": lambda told: _events(told, before="\n\ndata:\n\ndata\n\n"),
            "byte_order_mark": lambda told: b"\xef\xbb\xbf" + _events(told),
            "comments": lambda told: _events(told, before=": alive\n\n:\n\n", inside=": busy\n"),
            "cr": lambda told: _events(told, newline="\r"),
            "crlf": lambda told: _events(told, newline="\r\n"),
            "no_blank": lambda told: _events(told, blank=""),
            "other_fields": lambda told: _events(told, inside="id: 7\nretry: 100\nother: {}\nx\n"),
            "several_lines": lambda told: _events(map(_spread, told)),
        }


class JsonLines:
    """One JSON value on each line."""

    content_type = "application/x-ndjson"

    def write(self, messages: Iterable[Message]) -> bytes:
        """Return each message as one line."""
        return b"".join(f"{message.data}\n".encode() for message in messages)

    def spellings(self) -> Mapping[str, Spelling]:
        """Return what readers of such lines put up with."""
        return {
            "blank_lines": lambda told: b"\n" + self.write(told).replace(b"\n", b"\n\n"),
            "crlf": lambda told: self.write(told).replace(b"\n", b"\r\n"),
        }


def _events(
    messages: Iterable[Message],
    *,
    newline: str = "\n",
    before: str = "",
    inside: str = "",
    blank: str = " ",
) -> bytes:
    """Return events; `before` stands before each of them, `inside` between its type and data."""
    texts: list[str] = []
    for message in messages:
        named = f"event:{blank}{message.type}\n" if message.type else ""
        data = "".join(f"data:{blank}{line}\n" for line in message.data.split("\n"))
        texts.append(f"{before}{named}{inside}{data}\n")
    return "".join(texts).replace("\n", newline).encode()


def _spread(message: Message) -> Message:
    """Spread JSON over several lines; other data stays as it is."""
    try:
        value: object = json.loads(message.data)
    except ValueError:
        return message
    return message._replace(data=json.dumps(value, ensure_ascii=False, indent=1))
