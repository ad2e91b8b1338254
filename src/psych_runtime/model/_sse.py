"""Reads server-sent events from bytes that may be split anywhere."""

from typing import NamedTuple

from psych_runtime.errors import ModelPermanent, ModelTransient

__all__ = ["LINE_BYTES", "Event", "SseParser"]

LINE_BYTES = 1 << 20
"""A line may be so long, and the data of one event."""

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its type, empty unless the server named one, and its data."""

    type: str
    data: str


class SseParser:
    """Keeps what is not complete yet; one for each response.

    Raises ModelPermanent for a line or an event above the bound, since the same answer would be as
    long again, and ModelTransient for bytes that are no UTF-8.
    """

    def __init__(self, *, line_bytes: int = LINE_BYTES) -> None:
        self._bound = line_bytes
        self._line = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._type = ""
        self._after_return = False
        self._first = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; return the events that are complete now."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        events: list[Event] = []
        for piece in chunk.splitlines(keepends=True):  # of bytes: \n, \r and \r\n only
            whole = piece.endswith((b"\n", b"\r"))
            self._line += piece.rstrip(b"\r\n") if whole else piece
            if len(self._line) > self._bound:
                raise ModelPermanent(f"a line of the stream is longer than {self._bound} bytes")
            if whole:
                self._end_line(events)
        return events

    def end(self) -> list[Event]:
        """Return what an end without the last empty line left over."""
        events: list[Event] = []
        if self._line:
            self._end_line(events)
        self._dispatch(events)
        return events

    def _end_line(self, events: list[Event]) -> None:
        raw = bytes(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        if not raw:
            self._dispatch(events)
            return
        line = _text(raw)
        if line is None:
            raise ModelTransient("the stream is garbled: bytes that are no UTF-8")
        name, _, value = line.partition(":")
        self._field(name, value.removeprefix(" "), len(raw))

    def _field(self, name: str, value: str, size: int) -> None:
        if name == "data":
            self._size += size
            if self._size > self._bound:
                raise ModelPermanent(f"an event of the stream is longer than {self._bound} bytes")
            self._data.append(value)
        elif name == "event":
            self._type = value

    def _dispatch(self, events: list[Event]) -> None:
        data = "\n".join(self._data)
        if data and not data.isspace():  # an empty one only keeps the connection alive
            events.append(Event(self._type, data))
        self._data = []
        self._size = 0
        self._type = ""


def _text(raw: bytes) -> str | None:
    """Return None for bytes that are no UTF-8: the decoder's error would carry them along."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
