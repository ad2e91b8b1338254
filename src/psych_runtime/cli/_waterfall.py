"""What happened when, as bars of ASCII: one line for each attempt, model call and tool call."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from psych_runtime.cli._text import brief, seconds
from psych_schema.view import ModelCallLine, ReportView, ToolCallLine

__all__ = ["waterfall"]

_WIDTH: Final = 48
_NAME_WIDTH: Final = 24
_LINES: Final = 40


class _Bar(NamedTuple):
    name: str
    mark: str
    begin: float  # seconds since admission
    length: float | None  # None: nobody knows


def waterfall(report: ReportView) -> Iterator[str]:
    """Yield the bars in the order of their beginnings, the first forty.

    `-` an attempt, `#` a model call, `*` a tool call, `?` from where nobody knows how long.
    """
    whole = report.wall_seconds
    bars = sorted(_bars(report), key=lambda bar: bar.begin)
    if not bars:
        return
    for bar in bars[:_LINES]:
        inside = "  " if bar.mark != "-" else ""
        name = inside + brief(bar.name, _NAME_WIDTH - len(inside))
        yield f"{name:<{_NAME_WIDTH}} |{_drawn(bar, whole)}| {seconds(bar.length)}"
    if len(bars) > _LINES:
        yield f"... and {len(bars) - _LINES} more"


def _drawn(bar: _Bar, whole: float) -> str:
    scale = _WIDTH / whole if whole > 0 else 0.0
    first = min(_WIDTH - 1, int(bar.begin * scale))
    if bar.length is None:
        return f"{' ' * first}{bar.mark}".ljust(_WIDTH, "?")
    last = min(_WIDTH, max(first + 1, round((bar.begin + bar.length) * scale)))
    return f"{' ' * first}{bar.mark * (last - first)}".ljust(_WIDTH)


def _bars(report: ReportView) -> Iterator[_Bar]:
    def since(at: datetime) -> float:
        return max(0.0, (at - report.created_at).total_seconds())

    begins = [since(one.started_at) for one in report.attempts]
    ends = [*begins[1:], report.wall_seconds]
    for one, begin, end in zip(report.attempts, begins, ends, strict=False):
        yield _Bar(f"attempt {one.epoch}", "-", begin, max(0.0, end - begin))
    for call in report.model_calls:
        yield _Bar(_model(call), "#", since(call.started_at), call.seconds)
    for tool in report.tool_calls:
        if tool.started_at is not None:
            yield _Bar(_tool(tool), "*", since(tool.started_at), tool.seconds)


def _model(call: ModelCallLine) -> str:
    return call.model + (f" try {call.tries}" if call.tries > 1 else "")


def _tool(call: ToolCallLine) -> str:
    return call.name or call.identity or call.call_id
