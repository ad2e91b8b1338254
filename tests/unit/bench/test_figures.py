"""A figure beside its yardstick: the ratio, the bound, and how far to believe it."""

from dataclasses import replace

import pytest

from tests.bench.figures import Line, spread_of


def line(
    ours: list[float],
    yardstick: list[float],
    *,
    bound: float | None = None,
    rate: bool = False,
) -> Line:
    return Line(
        id="x",
        title="an x",
        unit="ms",
        beside="a y",
        ours=ours,
        yardstick=yardstick,
        bound=bound,
        rate=rate,
    )


def test_bench_the_ratio_is_that_of_the_middle_round() -> None:
    """Each round is compared with its neighbour: a slow minute slows both."""
    found = line([2.0, 30.0, 6.0], [1.0, 10.0, 1.0])
    assert found.ratios == [2.0, 3.0, 6.0]
    assert found.ratio == 3.0
    assert (found.value, found.yardstick_value) == (6.0, 1.0)


def test_bench_a_promise_that_holds_every_time_is_judged_by_the_worst_round() -> None:
    """The value and the ratio are of the same round; the middle one would keep the limit."""
    middle = replace(line([6.0, 6.5, 7.5], [6.0] * 3), limit=7.0)
    worst = replace(middle, at_worst=True)
    assert (middle.value, middle.verdict) == (6.5, "ok")
    assert (worst.value, worst.ratio, worst.verdict) == (7.5, 1.25, "ABOVE")


def test_bench_the_ratio_of_a_rate_says_how_much_dearer_ours_is() -> None:
    """Half as many a second is twice as dear."""
    assert line([50.0], [100.0], rate=True).ratio == 2.0
    assert line([50.0], [100.0]).ratio == 0.5


def test_bench_the_best_rounds_are_those_least_disturbed() -> None:
    """The least that a thing cost, the most that were done in a second."""
    assert line([9.0, 4.0, 5.0], [3.0, 2.0, 8.0]).ratio_at_best == 2.0
    assert line([50.0, 20.0], [90.0, 100.0], rate=True).ratio_at_best == 2.0


@pytest.mark.parametrize(
    ("ours", "bound", "verdict"), [(2.0, 2.0, "ok"), (2.1, 2.0, "ABOVE"), (9.0, None, "")]
)
def test_bench_a_bound_is_kept_up_to_itself(ours: float, bound: float | None, verdict: str) -> None:
    """Without one nothing is judged."""
    assert line([ours], [1.0], bound=bound).verdict == verdict


def test_bench_the_spread_is_the_middle_half_beside_the_median() -> None:
    """One wild round is none; a round alone has no spread."""
    assert spread_of([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert spread_of([2.0, 2.0, 2.0, 2.0, 90.0]) == 0.0
    assert spread_of([7.0]) == 0.0


def test_bench_rounds_that_disagree_are_not_steady() -> None:
    """Half of the rounds within a quarter of the ratio is still believed."""
    assert line([1.0, 1.1, 1.2], [1.0] * 3).is_steady
    assert not line([1.0, 1.5, 2.0, 3.0], [1.0] * 4).is_steady


def test_bench_what_is_counted_has_a_limit_of_its_own_and_no_ratio() -> None:
    """The figure itself is judged, up to the limit; its rounds say how steady it is."""
    counted = Line(id="x", title="an x", unit="", ours=[5.0, 4.0, 6.0], limit=5.0)
    assert (counted.value, counted.verdict) == (5.0, "ok")
    assert (counted.yardstick_value, counted.ratio, counted.ratio_at_best) == (None, None, None)
    assert counted.spread == pytest.approx(0.2)
    assert replace(counted, ours=[5.1]).verdict == "ABOVE"


@pytest.mark.parametrize(
    ("bound", "limit", "verdict"), [(2.0, 8.0, "ok"), (1.9, 8.0, "ABOVE"), (2.0, 7.9, "ABOVE")]
)
def test_bench_a_line_with_both_must_keep_both(bound: float, limit: float, verdict: str) -> None:
    """Beside its yardstick, and in its unit."""
    assert replace(line([8.0], [4.0], bound=bound), limit=limit).verdict == verdict
