"""Whether bytes came behind an answer is known, or taken for yes (MOD-5)."""

from collections.abc import AsyncIterator
from types import SimpleNamespace

import httpcore2
import httpx2
import pytest

from psych_runtime.egress._leftover import has_leftover


class _Stream(httpx2.AsyncByteStream):
    _stream: object


def _response(trailing: object) -> httpx2.Response:
    """Return a response as the HTTP client makes it, with what its connection has read."""
    connection = SimpleNamespace(_h11_state=SimpleNamespace(trailing_data=trailing))
    pooled = SimpleNamespace(_stream=SimpleNamespace(_connection=connection))
    stream = _Stream()
    stream._stream = SimpleNamespace(_httpcore_stream=pooled)
    return httpx2.Response(200, stream=stream)


class _CoreStream:
    _stream: object

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b""


def _core_response(trailing: object) -> httpcore2.Response:
    """Return a response as the lower half of the HTTP client makes it."""
    connection = SimpleNamespace(_h11_state=SimpleNamespace(trailing_data=trailing))
    stream = _CoreStream()
    stream._stream = SimpleNamespace(_connection=connection)
    return httpcore2.Response(200, content=stream)


@pytest.mark.parametrize(
    ("trailing", "leftover"),
    [((b"", False), False), ((b"", True), False), ((b"x", False), True), (None, True), ((), True)],
)
def test_mod_5_what_the_connection_has_read_decides(trailing: object, leftover: bool) -> None:
    """Where it does not say, a connection is not used again."""
    assert has_leftover(_response(trailing)) is leftover
    assert has_leftover(_core_response(trailing)) is leftover


def test_mod_5_a_response_of_no_connection_is_not_trusted() -> None:
    """Another version of the HTTP client may keep it elsewhere."""
    assert has_leftover(httpx2.Response(200))
    assert has_leftover(httpcore2.Response(200))
