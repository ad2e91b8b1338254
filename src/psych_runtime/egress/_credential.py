"""Header values that nobody may see again (SEC-2)."""

from collections.abc import Generator, Iterable, Iterator, Mapping

import httpx2

from psych_runtime.core.redaction import Redactor
from psych_runtime.core.secret import Secret
from psych_runtime.errors import InvalidPayload
from psych_runtime.ports.secrets import MAX_SECRET_BYTES, MIN_SECRET_CHARACTERS

__all__ = ["Credential", "checked_headers"]


class Credential(httpx2.Auth):
    """Puts secret headers on a request at the last moment, and takes them out of foreign texts.

    A value of fewer than MIN_SECRET_CHARACTERS is no secret: it would be found in any text.
    """

    __slots__ = ("_headers", "_redactor")

    def __init__(self, *, bearer: str | None = None, headers: Mapping[str, str]) -> None:
        self._headers = checked_headers(headers)
        words = [(name, {value, value.split()[-1]}) for name, value in self._headers.items()]
        if bearer is not None:
            key = _checked(bearer, what="api_key")
            self._headers["Authorization"] = f"Bearer {key}"
            words.append(("api_key", {key}))
        self._redactor = Redactor(list(_secrets(words)))

    def __repr__(self) -> str:
        """Say that there are some, not what they are."""
        return f"Credential({', '.join(sorted(self._headers))})"

    def __reduce__(self) -> str:
        """Refuse to be pickled."""
        raise TypeError("a credential stays in its process")

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the headers to `request`; called by the HTTP client right before it is sent."""
        request.headers.update(self._headers)
        yield request

    def redact(self, text: str) -> str:
        """Return `text` without the secrets, in any form that Redactor knows."""
        return self._redactor.redact(text)


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without blanks around their values. InvalidPayload: one cannot be sent."""
    return {name: _checked(value, what=f"header {name}") for name, value in headers.items()}


def _secrets(words: Iterable[tuple[str, set[str]]]) -> Iterator[Secret]:
    """Yield each value under its name: of `Bearer x`, `x` alone too."""
    for name, values in words:
        for value in sorted(values):
            if len(value) >= MIN_SECRET_CHARACTERS:
                yield Secret(name, value)


def _checked(value: str, *, what: str) -> str:
    """Return `value` without blanks around it. InvalidPayload: no header can carry it.

    Left to the HTTP client, the complaint would repeat the value.
    """
    value = value.strip()
    if not value or not value.isascii() or not value.isprintable():
        raise InvalidPayload(what=what, problem="a header value is printable ASCII, not empty")
    if len(value) > MAX_SECRET_BYTES:
        problem = f"a header value has at most {MAX_SECRET_BYTES} characters"
        raise InvalidPayload(what=what, problem=problem)
    return value
