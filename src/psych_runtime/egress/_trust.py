"""Whose certificates count (SEC-1)."""

import asyncio
import ssl

import httpx2

__all__ = ["Trust"]


class Trust:
    """The trust that was given, or that of the system, whatever the environment says."""

    def __init__(self, given: ssl.SSLContext | None) -> None:
        self._context = given
        self._none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # http needs none

    async def of(self, scheme: str) -> ssl.SSLContext:
        """Return the context for `scheme`; the system's is read once, which takes a while."""
        if scheme == "http":
            return self._none
        if self._context is None:
            self._context = await asyncio.to_thread(httpx2.create_ssl_context, trust_env=False)
        return self._context
