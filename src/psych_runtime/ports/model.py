"""The model port: one streaming call, cancelled by closing it."""

from collections.abc import AsyncGenerator
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from psych_schema.model import ModelEvent, ModelRequest

__all__ = ["PLAIN", "DeclaringClient", "ModelClient", "ModelField", "Takes"]

type ModelField = Literal[
    "cache",
    "extras",
    "max_output_tokens",
    "output",
    "parallel_tool_calls",
    "seed",
    "stop_sequences",
    "temperature",
    "tool_choice",
    "top_p",
]
"""A field of ModelRequest that a Spec may leave unset, so that no client need have it."""


class Takes(NamedTuple):
    """What a client sends on, of what a Spec may ask for.

    `own` are the members of the provider's request that the client writes itself, whenever it
    does: no extras may have their names.
    """

    fields: frozenset[ModelField]
    own: frozenset[str] = frozenset()


PLAIN: Final = Takes(frozenset({"max_output_tokens", "temperature"}))
"""What a client is taken to send that does not say."""


class ModelClient(Protocol):
    """Calls a model on behalf of many Runs at once; keeps no state of any Run (RUN-12).

    Called on the executor's loop only (R-21): a method may await and must not block.
    """

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Call the model and yield what it says as it says it; the last event is a Finish.

        Closing the generator ends the call and frees its connection. Usage that a provider
        counts inclusively is converted to the disjoint counters; of cumulative reports the
        last counts (TOK-1). Raises ModelTransient, ModelPermanent, ContextOverflow, and
        UnsendableRequest, before anything is sent, for what the client cannot write.
        """

    def models(self) -> frozenset[str] | None:
        """Return the model names that a Spec may use, None when the client cannot know."""


@runtime_checkable
class DeclaringClient(ModelClient, Protocol):
    """A ModelClient that says what it sends on; of any other, it is PLAIN.

    A request has only what the client takes: a Spec that asks for more is refused when it is
    published, or its Run fails with `unsendable_request` before anything is sent (MOD-9).
    """

    def takes(self) -> Takes:
        """Return what is sent on; always the same."""
