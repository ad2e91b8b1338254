"""Turns the inclusive totals of the OpenAI format into disjoint counters (TOK-1)."""

from collections.abc import Mapping
from decimal import Decimal

from psych_runtime.model._json import count_at, object_at
from psych_schema.common import Cost, Usage
from psych_schema.model import UsageReport

__all__ = ["usage_report"]

_READS = ("cached_tokens",)
_READS_ON_TOP = ("prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITES = ("cache_write_tokens", "cache_creation_tokens")
_WRITES_ON_TOP = ("cache_creation_input_tokens",)


def usage_report(usage: Mapping[str, object]) -> UsageReport:
    """Return what a `usage` object reports; what is missing or contradicts itself is None."""
    prompt = count_at(usage, "prompt_tokens")
    details = object_at(usage, "prompt_tokens_details")
    read = _first(details, _READS, usage, _READS_ON_TOP)
    write = _first(details, _WRITES, usage, _WRITES_ON_TOP)
    left = None if prompt is None else prompt - (read or 0) - (write or 0)
    if left is not None and left < 0:
        left = read = write = None  # which of them is wrong cannot be known
    output, reasoning = _output(usage, prompt)
    return UsageReport(
        usage=Usage(
            input_tokens=left,
            cache_read_tokens=read,
            cache_write_tokens=write,
            output_tokens=output,
            reasoning_tokens=reasoning,
        ),
        cost=_cost(usage.get("cost")),
    )


def _output(usage: Mapping[str, object], prompt: int | None) -> tuple[int | None, int | None]:
    """Return output and, as a part of it, reasoning.

    Some servers count reasoning beside the completion; their total says so.
    """
    output = count_at(usage, "completion_tokens")
    reasoning = count_at(object_at(usage, "completion_tokens_details"), "reasoning_tokens")
    if output is None or reasoning is None:
        return output, reasoning
    total = count_at(usage, "total_tokens")
    if reasoning and prompt is not None and total == prompt + output + reasoning:
        output += reasoning
    return output, reasoning if reasoning <= output else None


def _cost(value: object) -> Cost | None:
    """Return what the provider says it cost, in its one currency; None where it says nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    amount = Decimal(str(value))  # the shortest text of a float is what the server wrote
    if not amount.is_finite() or amount < 0:
        return None
    return Cost(amount=format(abs(amount), "f"), currency="USD", source="provider")


def _first(
    inner: Mapping[str, object],
    inner_names: tuple[str, ...],
    outer: Mapping[str, object],
    outer_names: tuple[str, ...],
) -> int | None:
    for place, names in ((inner, inner_names), (outer, outer_names)):
        for name in names:
            found = count_at(place, name)
            if found is not None:
                return found
    return None
