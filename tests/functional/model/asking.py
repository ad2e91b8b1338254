"""A small request, and what a client makes of its answer."""

from collections.abc import Iterable

from psych_runtime.ports.model import ModelClient
from psych_schema.model import ModelEvent, ModelRequest, TextDelta, TextPart, UserMessage

__all__ = ["request", "text_of", "told_by"]


def request(*, idle: float = 30.0, **more: object) -> ModelRequest:
    """Return a small request."""
    user = UserMessage(parts=(TextPart(text="Hello"),))
    asked = ModelRequest(model="m", system="Be brief.", messages=(user,), stream_idle_seconds=idle)
    return asked.model_copy(update=more)


async def told_by(client: ModelClient, asked: ModelRequest | None = None) -> list[ModelEvent]:
    """Return all that it tells of one answer, to a small request unless `asked` says what."""
    return [event async for event in client.stream(asked or request())]


def text_of(told: Iterable[ModelEvent]) -> str:
    """Return the words."""
    return "".join(event.text for event in told if isinstance(event, TextDelta))
