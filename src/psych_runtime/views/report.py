"""What happened in a Run and what it cost (TOK-1, TOK-2, TOK-5): all of it from the log."""

from collections.abc import Iterable, Sequence

from psych_runtime.core.codec import Entry
from psych_runtime.views._lifecycle import blocked_on, ended, lifecycle
from psych_runtime.views._lines import Lines
from psych_runtime.views._notes import notes
from psych_runtime.views._sums import cost_sum, seconds_sum, usage_sum
from psych_runtime.views._survey import survey
from psych_schema.common import Scope
from psych_schema.store import RunRow
from psych_schema.view import ModelCallLine, ReportView, ToolCallLine, Totals

__all__ = ["report_view"]


def report_view(header: RunRow, entries: Iterable[Entry]) -> ReportView:
    """Report attempts, model calls, tool calls and totals, from one pass over the log.

    What nobody reported stays None, counts as such in `totals`, and is said in `notes`. The
    totals are the Run's own: child Runs have reports of their own. The wall clock ends with
    run.settled, for a Run that lives with the last record.

    Args:
        header: the Run's header.
        entries: its log from the first record to the header's head, as for `status_view`.
    """
    lines = Lines()
    found = survey(header, entries, lines.read)
    models, tools = lines.model_calls(), lines.tool_calls()
    end = found.settled.at if found.settled else header.head_at
    wall = (end - header.created_at).total_seconds()
    report = ReportView(
        run_id=header.run_id,
        version=header.version,
        scope=found.admitted.scope if found.admitted else Scope(tenant=header.tenant),
        lifecycle=lifecycle(found, blocked_on(found)),
        ended=ended(found),
        head=header.head,
        head_hash=header.head_hash,
        created_at=header.created_at,
        wall_seconds=max(0.0, wall),
        turns=found.state.last_turn,
        attempts=lines.attempts(),
        model_calls=models,
        tool_calls=tools,
        totals=_totals(models, tools),
    )
    return report.model_copy(update={"notes": notes(found, lines, report)})


def _totals(models: Sequence[ModelCallLine], tools: Sequence[ToolCallLine]) -> Totals:
    return Totals(
        model_calls=len(models),
        tool_calls=len(tools),
        usage=usage_sum([one.usage for one in models]),
        calls_without_usage=sum(one.usage is None for one in models),
        cost=cost_sum([one.cost for one in models]),
        calls_without_cost=sum(one.cost.amount is None for one in models),
        model_seconds=seconds_sum([one.seconds for one in models]),
        tool_seconds=seconds_sum([one.seconds for one in tools]),
    )
