"""What the clients of all formats do alike: hold one server, and call it for many Runs (RUN-12)."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from psych_runtime.model._exchange import Exchange, Reader
from psych_schema.model import ModelEvent, ModelRequest

__all__ = ["Client"]


class Client(ABC):
    """A ModelClient over HTTP, but for how its format is written and read."""

    def __init__(self, exchange: Exchange, *, models: Iterable[str] | None) -> None:
        self._exchange = exchange
        self._endpoint = exchange.endpoint
        self._models = None if models is None else frozenset(models)

    @abstractmethod
    def _encode(self, request: ModelRequest) -> bytes:
        """Return the body. UnsendableRequest: something that this format, or server, has not."""

    @abstractmethod
    def _reader(self) -> Reader:
        """Return a reader for one answer."""

    def __repr__(self) -> str:
        """Name the address only."""
        return f"{type(self).__name__}({self._endpoint.url!r})"

    def models(self) -> frozenset[str] | None:
        """Return the names given at construction, None when every name will do."""
        return self._models

    async def aclose(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._endpoint.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Call the model and yield what it says as it says it; the last event is a Finish.

        Closing the generator ends the call and frees its connection.

        Raises:
            ModelTransient: no connection, a silent or broken stream, 408, 409, 425, 429, 5xx.
            ModelPermanent: the server refuses the request.
            UnsendableRequest: it cannot be written for this server; nothing was sent.
            ContextOverflow: the server says that the conversation is too long.
        """
        told = self._exchange.events(
            self._encode(request), self._reader(), idle_seconds=request.stream_idle_seconds
        )
        async with aclosing(told) as events:
            async for event in events:
                yield event
