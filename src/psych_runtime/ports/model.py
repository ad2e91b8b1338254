"""The model port: one streaming call, cancelled by closing it."""

from collections.abc import AsyncGenerator
from typing import Protocol

from psych_schema.model import ModelEvent, ModelRequest

__all__ = ["ModelClient"]


class ModelClient(Protocol):
    """Calls a model on behalf of many Runs at once; keeps no state of any Run (RUN-12).

    Called on the executor's loop only (R-21): a method may await and must not block.
    """

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Call the model and yield what it says as it says it; the last event is a Finish.

        Closing the generator ends the call and frees its connection. Usage that a provider
        counts inclusively is converted to the disjoint counters; of cumulative reports the
        last counts (TOK-1). Raises ModelTransient, ModelPermanent, ContextOverflow.
        """

    def models(self) -> frozenset[str] | None:
        """Return the model names that a Spec may use, None when the client cannot know."""
