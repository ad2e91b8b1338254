"""What the HTTP client's errors mean, in words that repeat nothing of what was sent or came."""

from typing import Final

import httpcore2
import httpx2

__all__ = ["CLIENT_ERRORS", "ProxyRefused", "Unreached", "problem_of"]


class ProxyRefused(httpcore2.ProxyError):
    """The proxy does not take who asks; it will not the next time either."""


class Unreached(httpcore2.ProxyError):
    """The proxy did not connect to this address; it may connect to another."""


CLIENT_ERRORS: Final = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)
"""What the lower half of the HTTP client raises on purpose; it has no common base."""

_PROBLEMS: Final[tuple[tuple[tuple[type[Exception], ...], str], ...]] = (
    ((httpx2.PoolTimeout, httpcore2.PoolTimeout), "every connection is in use"),
    (
        (httpx2.ConnectTimeout, httpcore2.ConnectTimeout),
        "no connection within the time allowed",
    ),
    ((httpx2.ReadTimeout, httpcore2.ReadTimeout), "silence for longer than allowed"),
    (
        (httpx2.WriteTimeout, httpcore2.WriteTimeout),
        "the request was not taken within the time allowed",
    ),
    ((httpx2.ConnectError, httpcore2.ConnectError), "no connection"),
    ((httpx2.NetworkError, httpcore2.NetworkError), "the connection broke"),
    (
        (httpx2.RemoteProtocolError, httpcore2.RemoteProtocolError),
        "the answer is no HTTP, or ended too early",
    ),
)
_CONNECT: Final = (httpx2.ConnectError, httpcore2.ConnectError)
_DETAIL_CHARACTERS: Final = 200


def problem_of(error: Exception, *, detail: str | None = None) -> str:
    """Say what `error` means.

    Only why there is no connection is told as the system says it: `detail`, or the error's own
    text. Others repeat what came. What a ProxyError says is in words of our own.
    """
    if isinstance(error, httpcore2.ProxyError):
        return str(error)
    problem = next((text for kinds, text in _PROBLEMS if isinstance(error, kinds)), "no answer")
    detail = (str(error) if detail is None else detail)[:_DETAIL_CHARACTERS]
    if detail and isinstance(error, _CONNECT):
        return f"{problem} ({detail})"
    return problem
