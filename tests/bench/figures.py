"""A figure beside its yardstick: how many times as dear, how far to be believed, below a bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

__all__ = ["MAX_SPREAD", "Line", "spread_of"]

MAX_SPREAD = 0.25
"""A line whose rounds differ by more than this is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: the same rounds of ours and of the yardstick, taken in turn.

    `rate`: more is better, so the ratio is turned round; it always says how many times as dear.
    `at_worst`: what counts is the worst round, not the median: a promise that holds every time.
    `bound` is of the ratio, `limit` of ours, in `unit`. What is counted has no yardstick.
    """

    id: str
    title: str
    unit: str
    ours: Sequence[float]
    beside: str = ""
    yardstick: Sequence[float] = ()
    bound: float | None = None
    limit: float | None = None
    rate: bool = False
    at_worst: bool = False

    @property
    def value(self) -> float:
        """The median of ours, or the worst."""
        return self._typical(self.ours)

    @property
    def yardstick_value(self) -> float | None:
        """The median of the yardstick."""
        return median(self.yardstick) if self.yardstick else None

    @property
    def ratios(self) -> list[float]:
        """How many times as dear ours was, round by round: neighbours share the weather."""
        if not self.yardstick:
            return []
        pairs = zip(self.ours, self.yardstick, strict=True)
        return [theirs / our if self.rate else our / theirs for our, theirs in pairs]

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios, or the worst."""
        return self._typical(self.ratios) if self.yardstick else None

    def _typical(self, values: Sequence[float]) -> float:
        return max(values) if self.at_worst else median(values)

    @property
    def ratio_at_best(self) -> float | None:
        """The ratio of the best rounds of each: what others do only ever makes a round worse."""
        if not self.yardstick:
            return None
        if self.rate:
            return max(self.yardstick) / max(self.ours)
        return min(self.ours) / min(self.yardstick)

    @property
    def spread(self) -> float:
        """How far the ratios of half the rounds lie apart, as a share of the ratio.

        Without a yardstick, the figures themselves.
        """
        return spread_of(self.ratios or self.ours)

    @property
    def verdict(self) -> str:
        """`ok` or `ABOVE` the bound or the limit; empty without one."""
        judged = [(self.ratio, self.bound), (self.value, self.limit)]
        kept = [value <= most for value, most in judged if value is not None and most is not None]
        if not kept:
            return ""
        return "ok" if all(kept) else "ABOVE"

    @property
    def is_steady(self) -> bool:
        """Tell whether the rounds agree well enough to be believed."""
        return self.spread <= MAX_SPREAD


def spread_of(values: Sequence[float]) -> float:
    """Return the distance of the quartiles as a share of the median; 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / median(values)
