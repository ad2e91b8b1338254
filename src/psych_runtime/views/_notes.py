"""What a reader of a report should know, in plain sentences: recoveries, unknowns, failures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from psych_runtime.views._failure import failure_text
from psych_runtime.views._lines import Lines
from psych_runtime.views._sums import COUNTERS, known_cost, reported, usage_sum
from psych_runtime.views._survey import Survey
from psych_schema.view import ModelCallLine, ReportView, ToolCallLine

__all__ = ["notes"]

_NAMES_SHOWN: Final = 5
_MAX_DIGITS: Final = 4300
_UNTELLABLE: Final = 10**_MAX_DIGITS
_ALWAYS_COUNTED: Final = ("input_tokens", "output_tokens")


def notes(found: Survey, lines: Lines, report: ReportView) -> tuple[str, ...]:
    """Return the sentences, the gravest first."""
    return (
        *_of_log(found, lines),
        *_of_attempts(report, lines),
        *_of_tools(report.tool_calls),
        *_of_models(report.model_calls),
        *_of_failure(found),
        *_of_messages(found),
        *_of_tokens(report.model_calls),
        *_of_cost(report),
        *_of_children(lines),
    )


def _of_log(found: Survey, lines: Lines) -> Iterator[str]:
    read = found.state.position.seq
    if found.problem is not None:
        reason, seq = found.problem
        yield f"The log is corrupt ({reason} at seq {seq}); this report is of what comes before."
    elif not found.whole:
        needs = found.header.schema_version
        yield (
            f"From seq {read + 1} on the log needs schema version {needs}: upgrade psych-runtime. "
            "This report is of what comes before."
        )
    if lines.erased:
        yield "What was said has been erased; facts and totals are left."


def _of_attempts(report: ReportView, lines: Lines) -> Iterator[str]:
    taken = [str(one.epoch) for one in report.attempts if one.ended == "taken"]
    if taken:
        yield (
            f"{_count(taken, 'attempt')} ended without a word ({_names(taken)}): "
            "the worker stopped, and another one took the Run over."
        )
    if lines.errors:
        yield f"{_count(lines.errors, 'attempt')} ended with an error: {_tally(lines.errors)}."


def _of_tools(calls: Sequence[ToolCallLine]) -> Iterator[str]:
    unknown = [_name(one) for one in calls if one.outcome == "unknown"]
    if unknown:
        yield (
            f"Nobody knows whether {_count(unknown, 'tool call')} took effect: {_names(unknown)}. "
            "Not repeated: the worker stopped, or gave up, in the middle."
        )
    again = [_name(one) for one in calls if one.recovered and one.tries > 1]
    if again:
        yield (
            f"{_count(again, 'tool call')} ran again under the same id after a worker died, "
            f"being safe to retry: {_names(again)}."
        )
    denied = [_name(one) for one in calls if one.outcome == "refused" and one.code == "denied"]
    if denied:
        yield f"{_count(denied, 'tool call')} denied: {_names(denied)}."


def _of_models(calls: Sequence[ModelCallLine]) -> Iterator[str]:
    cut = [one.call for one in calls if one.outcome == "interrupted"]
    if cut:
        yield (
            f"Cut off when a worker died: {_count(cut, 'model call')}; "
            "nobody reported what was used."
        )
    failed = [one.code or "unknown" for one in calls if one.outcome == "failed"]
    if failed:
        yield f"{_count(failed, 'model call')} failed: {_tally(failed)}."


def _of_failure(found: Survey) -> Iterator[str]:
    """Yield what the last failure said, also when a later call brought the answer."""
    if found.failure is not None:
        yield f"The last failure: {failure_text(found.failure)}"


def _of_messages(found: Survey) -> Iterator[str]:
    settled = found.settled
    if settled is None:
        return
    if settled.unconsumed:
        yield f"Not read before the end: {_count(settled.unconsumed, 'message')}."
    if settled.next_run is not None:
        yield f"Messages for the next Run are answered by {settled.next_run}."


def _of_tokens(calls: Sequence[ModelCallLine]) -> Iterator[str]:
    told = [usage for one in calls if (usage := reported(one.usage)) is not None]
    silent = [one.outcome for one in calls if reported(one.usage) is None]
    if silent:
        known = usage_sum(told)
        rest = ""
        if told and known.input_tokens is not None and known.output_tokens is not None:
            rest = (
                f" The others used {_digits(known.input_tokens)} input and "
                f"{_digits(known.output_tokens)} output tokens."
            )
        yield (
            f"The token totals are unknown: {len(silent)} of {_count(calls, 'model call')} "
            f"reported no usage ({_tally(silent)}).{rest}"
        )
    for name in COUNTERS:
        blind = [usage for usage in told if getattr(usage, name) is None]
        if blind and (len(blind) < len(told) or name in _ALWAYS_COUNTED):
            yield (
                f"{name} is unknown: {len(blind)} of {_count(told, 'report')} "
                "of usage did not have it."
            )


def _of_cost(report: ReportView) -> Iterator[str]:
    costs = [one.cost for one in report.model_calls]
    if report.totals.cost.reason == "mixed_currencies":
        currencies = sorted({cost.currency or "none" for cost in costs if cost.amount is not None})
        yield f"Costs in {', '.join(currencies)} are not summed."
    missing = [cost.reason or "not_told" for cost in costs if cost.amount is None]
    if missing:
        known = known_cost(costs)
        rest = f" The others cost {known.amount} {known.currency or ''}".rstrip() if known else ""
        yield (
            f"The cost is unknown: {len(missing)} of {_count(costs, 'model call')} had none "
            f"({_tally(missing)}).{rest + '.' if rest else ''}"
        )


def _of_children(lines: Lines) -> Iterator[str]:
    if lines.children:
        yield f"The totals do not have what {lines.children} child Runs used."


def _name(call: ToolCallLine) -> str:
    return call.name or call.identity or call.call_id


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}" + ("" if len(things) == 1 else "s")


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _digits(count: int) -> str:
    """Return a count as text; Python writes no number of more than 4,300 digits."""
    return str(count) if count < _UNTELLABLE else f"more than 1e{_MAX_DIGITS - 1}"


def _tally(values: Iterable[str]) -> str:
    return ", ".join(f"{count} {value}" for value, count in sorted(Counter(values).items()))
