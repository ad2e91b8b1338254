"""Writes HTTP answers as scripts, well-formed unless told otherwise."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Literal

from psych_runtime.testing.model_contract._server import Script, Step, Stop
from psych_runtime.testing.model_contract.dialect import Refusal

__all__ = ["Framing", "answer", "bytewise", "chunk", "head", "refuse"]

type Framing = Literal["chunked", "length", "close"]
"""How a client can know where the body ends."""


def answer(
    *body: Step,
    content_type: str | None,
    framing: Framing = "chunked",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> Script:
    """Return the script of one answer; each step of bytes is sent, and framed, by itself.

    Args:
        content_type: None leaves it out.
        length: a Content-Length that need not be true; None is the true one.
    """
    fields = dict(headers or {})
    if content_type is not None:
        fields["Content-Type"] = content_type
    if framing == "chunked":
        fields["Transfer-Encoding"] = "chunked"
    elif framing == "length":
        whole = sum(len(step) for step in body if isinstance(step, bytes))
        fields["Content-Length"] = str(whole if length is None else length)
    else:
        fields["Connection"] = "close"
    return [head(status, fields), *_framed(body, framing)]


def refuse(refusal: Refusal, *, headers: Mapping[str, str] | None = None) -> Script:
    """Return the script of an answer that is a refusal."""
    return answer(
        refusal.body,
        content_type=refusal.content_type,
        framing="length",
        status=refusal.status,
        headers=headers,
    )


def head(status: int, fields: Mapping[str, str]) -> bytes:
    """Return a status line and header lines, with the empty line behind them."""
    known = {item.value: item.phrase for item in HTTPStatus}
    lines = [f"HTTP/1.1 {status} {known.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(piece: bytes) -> bytes:
    """Return `piece` as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def bytewise(body: bytes) -> Sequence[bytes]:
    """Return each byte of `body` by itself."""
    return [body[at : at + 1] for at in range(len(body))]


def _framed(body: Sequence[Step], framing: Framing) -> Iterator[Step]:
    for step in body:
        if framing == "chunked" and isinstance(step, bytes):
            if step:
                yield chunk(step)
        else:
            yield step
    if body and isinstance(body[-1], Stop):
        return
    if framing == "chunked":
        yield b"0\r\n\r\n"
    elif framing == "close":
        yield Stop.CLOSE
