"""Harnesses for the contract of the model port: any client that closes with `aclose`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_runtime.testing.model_contract import Dialect, OpenAIDialect
from tests.functional.model.tally import TallyClient, TallyDialect

__all__ = ["ClientHarness", "ClosingClient", "Make", "openai", "tally"]


class ClosingClient(ModelClient, Protocol):
    """A client that holds connections."""

    async def aclose(self) -> None:
        """Close them."""


type Make = Callable[[str, str, int], ClosingClient]
"""Makes a client of a base URL, a key and the size of its pool."""


class ClientHarness:
    """Clients of one make."""

    def __init__(self, make: Make, dialect: Dialect) -> None:
        self.dialect = dialect
        self._make = make

    @asynccontextmanager
    async def client(
        self, base_url: str, *, api_key: str, max_connections: int
    ) -> AsyncIterator[ModelClient]:
        client = self._make(base_url, api_key, max_connections)
        try:
            yield client
        finally:
            await client.aclose()


def _openai(base_url: str, api_key: str, max_connections: int) -> OpenAIClient:
    return OpenAIClient(f"{base_url}/v1", api_key=api_key, max_connections=max_connections)


def _tally(base_url: str, api_key: str, max_connections: int) -> TallyClient:
    return TallyClient(base_url, api_key=api_key, max_connections=max_connections)


def openai() -> ClientHarness:
    """Return the harness of our own adapter."""
    return ClientHarness(_openai, OpenAIDialect())


def tally() -> ClientHarness:
    """Return the harness of a client for another format."""
    return ClientHarness(_tally, TallyDialect())
