"""The parser of server-sent events gives the same events however the bytes are split (MOD-5)."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.errors import ModelPermanent, ModelTransient
from psych_runtime.model._sse import Event, SseParser

_STREAM = (
    b"\xef\xbb\xbf: a comment\r\n\r\n"
    b'data: {"text": "gr\xc3\xbc\xc3\x9fe \xf0\x9f\x98\x80"}\r\n\r\n'
    b"event: error\ndata:no space\ndata: two lines\nid: 7\n\n"
    b"retry: 10\n\n"
    b"data\n\n"
    b"data: [DONE]\r\r"
)
_EVENTS = [
    Event("", '{"text": "grüße 😀"}'),
    Event("error", "no space\ntwo lines"),
    Event("", "[DONE]"),
]


def _feed(parser: SseParser, chunks: Iterable[bytes]) -> list[Event]:
    return [event for chunk in chunks for event in parser.feed(chunk)]


def _parse(*chunks: bytes) -> list[Event]:
    parser = SseParser()
    return _feed(parser, chunks) + parser.end()


def test_mod_5_a_whole_stream_gives_its_events() -> None:
    """Comments, retry and empty data are no events; CR, LF and CRLF end lines; a BOM is skipped."""
    assert _parse(_STREAM) == _EVENTS


@given(st.lists(st.integers(0, len(_STREAM)), max_size=8))
def test_mod_5_any_split_gives_the_same_events(cuts: list[int]) -> None:
    """Inside a character, between CR and LF, anywhere."""
    edges = [0, *sorted(cuts), len(_STREAM)]
    assert _parse(*(_STREAM[a:b] for a, b in pairwise(edges))) == _EVENTS


def test_mod_5_one_byte_at_a_time_gives_the_same_events() -> None:
    """The smallest pieces."""
    assert _parse(*(bytes([byte]) for byte in _STREAM)) == _EVENTS


def test_mod_5_an_end_without_empty_line_still_gives_the_event() -> None:
    """Some servers stop right behind the data."""
    assert _parse(b"data: a\n\ndata: b") == [Event("", "a"), Event("", "b")]


def test_mod_5_an_event_comes_as_soon_as_its_empty_line() -> None:
    """Nothing waits for the next chunk."""
    parser = SseParser()
    assert parser.feed(b"data: a\r\n\r") == [Event("", "a")]
    assert parser.feed(b"\ndata: b\n") == []
    assert parser.feed(b"\n") == [Event("", "b")]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_sec_3_a_line_above_the_bound_is_refused(size: int) -> None:
    """Also one that never ends, in pieces; nothing is kept beyond the bound."""
    stream = b"data: " + b"x" * 1000
    chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
    with pytest.raises(ModelPermanent, match="longer than 100 bytes"):
        _feed(SseParser(line_bytes=100), chunks)


def test_sec_3_a_line_at_the_bound_is_taken() -> None:
    """The bound itself is allowed."""
    parser = SseParser(line_bytes=100)
    assert parser.feed(b"data: " + b"x" * 94 + b"\n\n") == [Event("", "x" * 94)]


def test_sec_3_many_short_lines_of_one_event_are_bounded() -> None:
    """An event cannot grow without end either."""
    with pytest.raises(ModelPermanent, match="an event of the stream is longer than 100 bytes"):
        _feed(SseParser(line_bytes=100), [b"data: abc\n"] * 100)


def test_mod_5_invalid_utf_8_is_garbled() -> None:
    """Bytes that are no text are worth another try."""
    with pytest.raises(ModelTransient, match="no UTF-8"):
        _parse(b"data: \xff\xfe\n\n")


def test_mod_5_a_separator_of_text_is_no_end_of_line() -> None:
    """U+2028 and form feed may stand in JSON text."""
    assert _parse("data: a\u2028b\x0cc\x85\n\n".encode()) == [Event("", "a\u2028b\x0cc\x85")]
