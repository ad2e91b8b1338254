"""Usage is what the provider counted: disjoint, the last report, not invented, not lost (TOK-1)."""

from typing import Final

from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import chunk, head
from psych_runtime.testing.model_contract._scene import ask, outcome, scene, spoken, stream
from psych_runtime.testing.model_contract._server import Script, Stop
from psych_schema.common import Usage
from psych_schema.model import Finish, TextDelta, UsageReport

__all__ = [
    "of_cumulative_usage_the_last_counts",
    "totals_become_disjoint_counters",
    "usage_before_a_failure_is_kept",
    "usage_of_one_call_is_not_that_of_the_next",
    "usage_that_is_not_told_is_unknown",
    "usage_with_the_last_message_is_told",
]

_WHOLE: Final = {
    "input_tokens": 40,
    "cache_read_tokens": 60,
    "cache_write_tokens": 7,
    "output_tokens": 20,
    "reasoning_tokens": 5,
}
_HI: Final = TextDelta(text="Hi")
_STOP: Final = Finish(reason="stop")


def _usage(harness: Harness, **counts: int) -> Usage:
    """Return a usage of the counters that the format has."""
    known = _WHOLE | counts
    return Usage(**{name: known[name] for name in harness.dialect.counters})


@check("TOK-1")
async def totals_become_disjoint_counters(harness: Harness) -> None:
    """What was cached is no input again; reasoning is a part of the output. Zero is known."""
    for usage in (_usage(harness), _usage(harness, cache_read_tokens=0, reasoning_tokens=0)):
        said = spoken(harness.dialect, _HI, UsageReport(usage=usage), _STOP)
        found = await outcome(harness, stream(harness.dialect, *said))
        same((found.usage, found.failure), (usage, None), "the usage")


@check("TOK-1", needs=("early_usage",))
async def of_cumulative_usage_the_last_counts(harness: Harness) -> None:
    """Reports are totals so far, not additions."""
    reports = [UsageReport(usage=_usage(harness, output_tokens=count)) for count in (5, 11, 20)]
    said = spoken(harness.dialect, reports[0], _HI, reports[1], _HI, reports[2], _STOP)
    found = await outcome(harness, stream(harness.dialect, *said))
    same((found.usage, found.text), (reports[-1].usage, "HiHi"), "the last of three reports")


@check("TOK-1", needs=("end_marker",))
async def usage_with_the_last_message_is_told(harness: Harness) -> None:
    """It may come behind the finish."""
    usage = _usage(harness)
    said = spoken(harness.dialect, _HI, _STOP, UsageReport(usage=usage))
    found = await outcome(harness, stream(harness.dialect, *said))
    same((found.usage, found.failure), (usage, None), "the usage behind the finish")


@check("TOK-2")
async def usage_that_is_not_told_is_unknown(harness: Harness) -> None:
    """Nothing is told of it, or that it is unknown: no zero."""
    found = await outcome(harness, stream(harness.dialect, *spoken(harness.dialect, _HI, _STOP)))
    same((found.usage, found.failure), (None, None), "a usage that nobody told")


@check("RUN-12", "TOK-3")
async def usage_of_one_call_is_not_that_of_the_next(harness: Harness) -> None:
    """A call that tells none has none."""
    usage = _usage(harness)
    first = spoken(harness.dialect, _HI, UsageReport(usage=usage), _STOP)
    second = spoken(harness.dialect, _HI, _STOP)
    scripts = [stream(harness.dialect, *body) for body in (first, second)]
    async with scene(harness, *scripts) as (_, client):
        same([(await ask(client)).usage for _ in scripts], [usage, None], "usage of two calls")


@check("MOD-5", "TOK-3", needs=("early_usage",))
async def usage_before_a_failure_is_kept(harness: Harness) -> None:
    """It was paid for: it is told before the error, whatever ends the stream."""
    usage = _usage(harness)
    said = b"".join(spoken(harness.dialect, _HI, UsageReport(usage=usage), end=False))
    for what, script in _ends(harness, said).items():
        found = await outcome(harness, script, idle_seconds=0.3 if what == "stalls" else 30.0)
        if what == "stalls" and not found.events:  # a busy machine; once more, with time
            found = await outcome(harness, script, idle_seconds=3.0)
        if found.failure is None:
            raise AssertionError(f"a stream that {what}: taken for an answer")
        same((found.usage, found.text), (usage, "Hi"), f"what was told before a stream {what}")


def _ends(harness: Harness, said: bytes) -> dict[str, Script]:
    """Return streams that say `said` in one piece, and then fail, each in its way."""
    dialect = harness.dialect
    cut = said + b"".join(spoken(dialect, _HI, end=False))[:-7]
    broken = head(200, {"Content-Type": dialect.wire.content_type, "Transfer-Encoding": "chunked"})
    scripts: dict[str, Script] = {
        "ends": stream(dialect, said),
        "ends in a message": stream(dialect, cut),
        "is closed in a chunk": [broken, chunk(said), b"ff\r\nda", Stop.CLOSE],
        "stalls": stream(dialect, said, Stop.STALL),
    }
    if "stream_errors" in dialect.features:
        failure = dialect.wire.write(dialect.failures("transient", "overloaded")[:1])
        scripts["has an error"] = stream(dialect, said, failure)
    return scripts
