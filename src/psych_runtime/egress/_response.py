"""Reads an answer within its bounds, and gives its connection back (SEC-1, MOD-5)."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from types import MappingProxyType

import httpcore2

from psych_runtime.egress._leftover import has_leftover
from psych_runtime.egress._redirect import Hop
from psych_runtime.egress.request import OutboundAnswer
from psych_runtime.errors import EgressFailed

__all__ = ["give_back", "read_answer"]


async def read_answer(
    response: httpcore2.Response, hop: Hop, *, bound_bytes: int
) -> OutboundAnswer:
    """Return the whole answer. Raises EgressFailed: too much, or encoded."""
    headers = _read_headers(response.headers)
    if hop.method != "HEAD":
        if not _is_plain(headers.get("content-encoding", "")):
            raise _failed(hop, "the body is encoded, although it was asked for as it is")
        if int(headers.get("content-length", "0").partition(",")[0]) > bound_bytes:
            raise _too_much(hop, bound_bytes)
    body = bytearray()
    assert isinstance(response.stream, AsyncIterable)
    pieces = response.stream.__aiter__()
    try:
        async for piece in pieces:
            body += piece
            if len(body) > bound_bytes:
                raise _too_much(hop, bound_bytes)
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
    return OutboundAnswer(
        status=response.status, headers=headers, body=bytes(body), url=hop.target.text
    )


async def give_back(response: httpcore2.Response, *, whole: bool) -> None:
    """Let the next request have the connection, or close it: not all of it was read, or more."""
    stream = response.extensions.get("network_stream")
    if whole and has_leftover(response) and isinstance(stream, httpcore2.AsyncNetworkStream):
        await stream.aclose()
    await response.aclose()


def _read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("ascii").lower()
        text = _text(value)
        found[key] = f"{found[key]}, {text}" if key in found else text
    return MappingProxyType(found)


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_plain(encodings: str) -> bool:
    return all(each.strip().lower() in ("", "identity") for each in encodings.split(","))


def _too_much(hop: Hop, bound_bytes: int) -> EgressFailed:
    return _failed(hop, f"the answer has more than {bound_bytes} bytes")


def _failed(hop: Hop, problem: str) -> EgressFailed:
    host = hop.target.origin.host
    return EgressFailed(host=host, problem=problem, sent=True, transient=False)
