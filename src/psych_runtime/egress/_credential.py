"""Header values that nobody may see again (SEC-2)."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Generator, Mapping
from urllib.parse import quote, quote_plus

import httpx2

from psych_runtime.errors import InvalidPayload

__all__ = ["Credential"]

_SHORTEST = 8
"""Shorter values are no secrets, and would be found in any text."""

_REMOVED = "[removed]"


class Credential(httpx2.Auth):
    """Puts secret headers on a request at the last moment, and takes them out of foreign texts."""

    __slots__ = ("_forms", "_headers")

    def __init__(self, *, bearer: str | None = None, headers: Mapping[str, str]) -> None:
        secrets = [_checked(value, what=f"header {name}") for name, value in headers.items()]
        self._headers = dict(zip(headers, secrets, strict=True))
        if bearer is not None:
            secrets.append(_checked(bearer, what="api_key"))
            self._headers["Authorization"] = f"Bearer {secrets[-1]}"
        words = {*secrets, *(secret.split()[-1] for secret in secrets)}  # "Bearer x": x alone too
        forms = {form for word in words if len(word) >= _SHORTEST for form in _forms(word)}
        self._forms = tuple(sorted(forms, key=len, reverse=True))

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
        """Return `text` without the secrets: plain, base64, hexadecimal and URL-quoted."""
        for form in self._forms:
            text = text.replace(form, _REMOVED)
        return text


def _checked(value: str, *, what: str) -> str:
    """Return `value` without blanks around it. InvalidPayload: no header can carry it.

    Left to the HTTP client, the complaint would repeat the value.
    """
    value = value.strip()
    if not value or not value.isascii() or not value.isprintable():
        raise InvalidPayload(what=what, problem="a header value is printable ASCII, not empty")
    return value


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    coded = [b64encode(raw), urlsafe_b64encode(raw)]
    return {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        raw.hex(),
        raw.hex().upper(),
        *(form.decode().rstrip("=") for form in coded),
    }
