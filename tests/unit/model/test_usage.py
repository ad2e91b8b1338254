"""OpenAI-style inclusive usage becomes four disjoint counters, once each (TOK-1, U1)."""

import pytest

from psych_runtime.model._usage import usage_report
from psych_schema.common import Cost, Usage

_TABLE: dict[str, tuple[dict[str, object], Usage]] = {
    "plain": (
        {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        Usage(input_tokens=100, output_tokens=20),
    ),
    "openai, cached and reasoning are parts": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 12},
        },
        Usage(input_tokens=40, cache_read_tokens=60, output_tokens=20, reasoning_tokens=12),
    ),
    "a cold cache is known to be zero": (
        {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}},
        Usage(input_tokens=9, cache_read_tokens=0, output_tokens=1),
    ),
    "openrouter, with cache writes": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 50},
        },
        Usage(input_tokens=20, cache_read_tokens=30, cache_write_tokens=50, output_tokens=5),
    ),
    "a proxy to anthropic": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 50,
        },
        Usage(input_tokens=20, cache_read_tokens=30, cache_write_tokens=50, output_tokens=5),
    ),
    "deepseek": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "prompt_cache_hit_tokens": 64,
            "prompt_cache_miss_tokens": 36,
        },
        Usage(input_tokens=36, cache_read_tokens=64, output_tokens=5),
    ),
    "reasoning beside the completion, as the total says": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 115,
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        Usage(input_tokens=10, output_tokens=105, reasoning_tokens=100),
    ),
    "more cached than asked: which is wrong is unknown": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 1000},
        },
        Usage(output_tokens=5),
    ),
    "more written than asked": (
        {"prompt_tokens": 10, "completion_tokens": 5, "cache_creation_input_tokens": 11},
        Usage(output_tokens=5),
    ),
    "more reasoning than output": (
        {
            "prompt_tokens": 1,
            "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 6},
        },
        Usage(input_tokens=1, output_tokens=5),
    ),
    "cached without prompt": (
        {"completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}},
        Usage(cache_read_tokens=3, output_tokens=5),
    ),
    "nonsense is unknown, never zero": (
        {"prompt_tokens": -1, "completion_tokens": "many", "prompt_tokens_details": None},
        Usage(),
    ),
}


@pytest.mark.parametrize("name", _TABLE)
def test_tok_1_inclusive_totals_become_disjoint(name: str) -> None:
    """No token is counted twice, none is invented."""
    given, expected = _TABLE[name]
    assert usage_report(given).usage == expected


@pytest.mark.parametrize(
    ("value", "amount"),
    [(0.00014, "0.00014"), (1.5e-05, "0.000015"), (0, "0"), (2, "2"), (1e-12, "0.000000000001")],
)
def test_tok_3_a_provider_s_cost_is_an_exact_decimal(value: float, amount: str) -> None:
    """As the provider wrote it, without an exponent."""
    report = usage_report({"prompt_tokens": 1, "completion_tokens": 1, "cost": value})
    assert report.cost == Cost(amount=amount, currency="USD", source="provider")


@pytest.mark.parametrize("value", [-1, True, None, "0.1", float("inf"), float("nan"), {"usd": 1}])
def test_tok_2_a_cost_that_is_none_stays_unknown(value: object) -> None:
    """Nothing is guessed."""
    assert usage_report({"prompt_tokens": 1, "cost": value}).cost is None
