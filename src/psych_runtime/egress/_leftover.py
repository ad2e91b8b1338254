"""Finds bytes that came behind an answer: with some, a connection answers nobody else (MOD-5)."""

import httpcore2
import httpx2

__all__ = ["has_leftover"]

_CORE_BUFFER = ("_stream", "_connection", "_h11_state", "trailing_data")
_BUFFER = ("_stream", "_httpcore_stream", *_CORE_BUFFER)
"""From a response's stream to what its connection has read and not used; there is no public way."""


def has_leftover(response: httpx2.Response | httpcore2.Response) -> bool:
    """Tell whether the connection has read more than `response`; call it before closing that.

    The HTTP client would take the rest for the answer to the next request, whoever asks it.
    True also where it cannot be told: then the connection is not used again.
    """
    found: object = response.stream
    for name in _BUFFER if isinstance(response, httpx2.Response) else _CORE_BUFFER:
        found = getattr(found, name, None)
    return not (isinstance(found, tuple) and found and found[0] == b"")
