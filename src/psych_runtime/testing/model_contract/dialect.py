"""What the kit has to be told of a provider's format: how it says things, never how it is read."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from psych_runtime.testing.model_contract.wire import Message, Wire
from psych_schema.model import FinishReason, ModelEvent

__all__ = ["FEATURES", "Dialect", "Kind", "Refusal"]

type Kind = Literal["transient", "permanent"]
"""Whether another try may help."""

FEATURES: Final[Mapping[str, str]] = {
    "call_ids": "a call has an id of the provider's",
    "early_usage": "usage can be told before the answer is finished",
    "end_marker": "messages follow the finish; the last one ends the stream",
    "interleaved_calls": "pieces of several calls may alternate, and be numbered with gaps",
    "json": "the data of a message is JSON",
    "plain_key": "the key can be read in the request, it is no signature",
    "reasoning": "it tells what the model thinks",
    "stream_errors": "an error can come inside a stream",
}
"""What a format may have; a check that needs one is left out where it is missing."""


class Refusal(NamedTuple):
    """An answer other than 200."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Dialect(Protocol):
    """The other side of a client: it writes what the client reads.

    Called by the checks only, in any order; it keeps no state.
    """

    @property
    def wire(self) -> Wire:
        """How messages follow one another: `Sse()`, `JsonLines()` or one of your own."""

    @property
    def features(self) -> frozenset[str]:
        """Those of FEATURES that the format has."""

    @property
    def counters(self) -> frozenset[str]:
        """The fields of `Usage` that it can tell, by name."""

    @property
    def finish_reasons(self) -> Collection[FinishReason]:
        """The reasons that it can give; `other` stands for one that was not there yesterday."""

    def answer(self, said: Sequence[ModelEvent]) -> Sequence[Sequence[Message]]:
        """Return, for each event, the messages that say it, an opening among the first.

        What follows the last event of an answer is not among them, see `end`. Usage comes as
        disjoint counters and is written as the provider counts.
        """

    def end(self) -> Sequence[Message]:
        """Return what follows a whole answer; nothing in a format that ends with its finish."""

    def idle_talk(self) -> Sequence[Message]:
        """Return messages that say nothing and may come at any time, such as pings."""

    def failures(self, kind: Kind, words: str) -> Sequence[Message]:
        """Return each form in which an error comes inside a stream."""

    def refusal(self, status: int, words: str) -> Refusal:
        """Return how a request is refused with `status`, not for its length."""

    def overflows(self) -> Mapping[str, Refusal | Message]:
        """Return, by provider, how a request that is too long is refused, or its stream broken."""

    def near_overflows(self) -> Mapping[str, tuple[Refusal | Message, Kind]]:
        """Return what only looks like an overflow, and what it is."""
