"""Usage of the Messages format: disjoint counters already, told in several reports (TOK-1)."""

from collections.abc import Mapping

from psych_runtime.model._json import count_at, object_at
from psych_schema.common import Usage
from psych_schema.model import UsageReport

__all__ = ["Counters"]

_NAMES: Mapping[str, str] = {
    "cache_creation_input_tokens": "cache_write_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
}


class Counters:
    """Keeps the last value of each counter: a report has totals so far, not always all of them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._told = Usage()

    def read(self, usage: Mapping[str, object]) -> UsageReport | None:
        """Return what is known by now; None when that has been told before."""
        found = {ours: count_at(usage, theirs) for theirs, ours in _NAMES.items()}
        details = object_at(usage, "output_tokens_details")
        found["reasoning_tokens"] = count_at(details, "thinking_tokens")
        self._counts |= {name: count for name, count in found.items() if count is not None}
        known = Usage(**self._counts)
        if (known.reasoning_tokens or 0) > (known.output_tokens or 0):
            known = known.model_copy(update={"reasoning_tokens": None})  # it is no part of it
        if known == self._told:
            return None
        self._told = known
        return UsageReport(usage=known)
