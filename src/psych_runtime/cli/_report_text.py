"""A report as text: outcome, attempts, calls, totals, what happened when, and what to know."""

from collections.abc import Iterator
from typing import Final

from psych_runtime.cli._text import clean, columns, instant, seconds
from psych_runtime.cli._waterfall import waterfall
from psych_schema.common import Cost, Usage
from psych_schema.view import ModelCallLine, ReportView, ToolCallLine

__all__ = ["report_text"]

_UNKNOWN: Final = "-"
_DECIDED: Final = {
    "approve": "approved",
    "deny": "denied",
    "edit": "edited",
    "expired": "expired",
}


def report_text(report: ReportView) -> Iterator[str]:
    """Yield the lines of a report; `-` is what nobody knows."""
    yield from _outcome(report)
    if report.attempts:
        yield from _section("ATTEMPTS", _attempts(report))
    if report.model_calls:
        yield from _section("MODEL CALLS", _models(report))
    if report.tool_calls:
        yield from _section("TOOL CALLS", _tools(report))
    yield from _section("TOTALS", _totals(report))
    if report.attempts:
        title = f"WHAT HAPPENED WHEN (0 to {seconds(report.wall_seconds)})"
        yield from _section(title, waterfall(report))
    if report.notes:
        yield from _section("TO KNOW", (f"- {clean(note)}" for note in report.notes))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield ""
    yield title
    for line in lines:
        yield f"  {line}".rstrip()


def _outcome(report: ReportView) -> Iterator[str]:
    end = report.ended
    how: str = report.lifecycle
    if end is not None:
        how += f": {end.state}" + (f" ({end.code})" if end.code else "")
    yield f"{report.run_id}  {how}"
    yield (
        f"tenant {clean(report.scope.tenant)}, version {report.version[:12]}, "
        f"admitted {instant(report.created_at)} UTC"
    )
    turns = "1 turn" if report.turns == 1 else f"{report.turns} turns"
    yield (
        f"{turns}, {report.head} records in {seconds(report.wall_seconds)}, "
        f"head {report.head_hash[:12]}"
    )


def _attempts(report: ReportView) -> Iterator[str]:
    rows = [
        (
            str(one.epoch),
            seconds((one.started_at - report.created_at).total_seconds()),
            one.reason,
            one.ended,
            str(one.crashes),
            one.worker,
        )
        for one in report.attempts
    ]
    return columns(("#", "AFTER", "WHY", "ENDED", "CRASHES", "WORKER"), rows, right=(0, 1, 4))


def _models(report: ReportView) -> Iterator[str]:
    head = ("TURN", "TRY", "MODEL", "OUTCOME", "TIME", "FIRST TOKEN", "IN", "CACHED", "OUT", "COST")
    rows = [_model(one) for one in report.model_calls]
    return columns(head, rows, right=(0, 1, 4, 5, 6, 7, 8, 9))


def _model(one: ModelCallLine) -> tuple[str, ...]:
    usage = one.usage or Usage()
    outcome = one.code or one.finish
    return (
        one.purpose if one.turn is None else str(one.turn),
        str(one.tries),
        one.model,
        f"{one.outcome}, {outcome}" if outcome else one.outcome,
        seconds(one.seconds),
        seconds(one.first_token_seconds),
        _number(usage.input_tokens),
        _number(usage.cache_read_tokens),
        _number(usage.output_tokens),
        _money(one.cost, short=True),
    )


def _tools(report: ReportView) -> Iterator[str]:
    rows = [_tool(one) for one in report.tool_calls]
    return columns(("TOOL", "OUTCOME", "TRIES", "TIME", "CALL"), rows, right=(2, 3))


def _tool(one: ToolCallLine) -> tuple[str, ...]:
    outcome = f"{one.outcome}, {one.code}" if one.code else one.outcome
    if one.decision is not None:
        by = f" by {one.decided_by}" if one.decided_by else ""
        outcome = f"{outcome}, {_DECIDED[one.decision]}{by}"
    return (
        one.name or one.identity or _UNKNOWN,
        f"{outcome} (recovered)" if one.recovered else outcome,
        str(one.tries),
        seconds(one.seconds),
        one.call_id,
    )


def _totals(report: ReportView) -> Iterator[str]:
    totals, usage = report.totals, report.totals.usage
    yield f"{totals.model_calls} model calls in {seconds(totals.model_seconds)}"
    yield f"{totals.tool_calls} tool calls in {seconds(totals.tool_seconds)}"
    yield (
        f"tokens: input {_number(usage.input_tokens)}, "
        f"cache read {_number(usage.cache_read_tokens)}, "
        f"cache write {_number(usage.cache_write_tokens)}, "
        f"output {_number(usage.output_tokens)} "
        f"(reasoning {_number(usage.reasoning_tokens)})"
    )
    yield f"cost: {_money(totals.cost)}"


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else str(value)


def _money(cost: Cost, *, short: bool = False) -> str:
    if cost.amount is None:
        return _UNKNOWN if short else f"unknown ({(cost.reason or 'not_told').replace('_', ' ')})"
    return f"{cost.amount} {cost.currency or ''}".rstrip()
