"""Sums of tokens and money in which an unknown part stays unknown (TOK-1, TOK-2)."""

import sys
from collections import Counter
from collections.abc import Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from math import fsum
from typing import Final

from psych_schema.common import Cost, Usage

__all__ = ["COUNTERS", "cost_sum", "known_cost", "reported", "seconds_sum", "usage_sum"]

COUNTERS: Final = tuple(Usage.model_fields)
"""The names of the disjoint counters, and of reasoning_tokens, which is a part of output."""

_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def reported(usage: Usage | None) -> Usage | None:
    """Return `usage`, None when it says nothing."""
    return None if usage is None or usage == Usage() else usage


def usage_sum(usages: Sequence[Usage | None]) -> Usage:
    """Return the sum of each counter; None when one of them is unknown."""
    sums: dict[str, int | None] = {}
    for name in COUNTERS:
        counts = [_count(usage, name) for usage in usages]
        known = [count for count in counts if count is not None]
        sums[name] = sum(known) if len(known) == len(counts) else None
    return Usage(**sums)


def _count(usage: Usage | None, name: str) -> int | None:
    if usage is None:
        return None
    value: int | None = getattr(usage, name)
    return value


def seconds_sum(parts: Sequence[float | None]) -> float:
    """Return the sum of what is known; the largest number when it is beyond that."""
    try:
        return fsum(one for one in parts if one is not None)
    except OverflowError:
        return sys.float_info.max


def known_cost(costs: Sequence[Cost]) -> Cost | None:
    """Return the exact sum of the amounts that are known; None when none, or in two currencies."""
    known = [cost for cost in costs if cost.amount is not None]
    currencies = {cost.currency for cost in known}
    if len(currencies) != 1:
        return None
    total = Decimal(0)
    for cost in known:
        total = _EXACT.add(total, Decimal(cost.amount or 0))
    computed = any(cost.source == "computed" for cost in known)
    return Cost(
        amount=f"{total:f}",
        currency=currencies.pop(),
        source="computed" if computed else "provider",
    )


def cost_sum(costs: Sequence[Cost]) -> Cost:
    """Return the total cost, as an exact decimal; unknown with a reason when a part is.

    The reason is that of the parts when they agree, else `several_reasons`; amounts in two
    currencies are not summed (`mixed_currencies`); without calls it is `no_model_calls`.
    """
    if not costs:
        return Cost(source="missing", reason="no_model_calls")
    if len({cost.currency for cost in costs if cost.amount is not None}) > 1:
        return Cost(source="missing", reason="mixed_currencies")
    reasons = Counter(cost.reason or "not_told" for cost in costs if cost.amount is None)
    total = known_cost(costs)
    if total is not None and not reasons:
        return total
    reason = next(iter(reasons)) if len(reasons) == 1 else "several_reasons"
    return Cost(source="missing", reason=reason)
