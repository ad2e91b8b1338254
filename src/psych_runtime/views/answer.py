"""What a Run answered, or what it waits for, and what to do next."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from psych_runtime.core.codec import Entry
from psych_runtime.views._failure import failure_text
from psych_runtime.views._lifecycle import blocked_on, ended, lifecycle
from psych_runtime.views._pending import pending_approvals, pending_waits
from psych_runtime.views._said import LastWords
from psych_runtime.views._survey import survey
from psych_schema.store import RunRow
from psych_schema.view import AnswerView

__all__ = ["answer_view"]

_NAMES_SHOWN: Final = 3
_REPORT: Final = "`await report(store, run_id, scope=scope)` says what happened"

_AFTER: Final[Mapping[str, str]] = {
    "timed_out": "dispatch again with a larger deadline_seconds=",
    "turn_limit": "publish the Spec with a larger limits.max_turns and dispatch again",
    "failure_streak": "a tool kept failing: report(store, run_id, scope=scope) says which",
    "repeat_calls": "a call was repeated in vain: report(store, run_id, scope=scope) says which",
    "retries_exhausted": "the provider kept failing: dispatch again when it is back",
    "context_overflow": "the conversation is too long for the model: use one with a larger window",
    "output_invalid": "the answer was not what the Spec's output asks for: see its text",
    "attempts_exhausted": "its workers kept dying: see report(store, run_id, scope=scope)",
}
"""What to do about a Run that ended so."""


def answer_view(header: RunRow, entries: Iterable[Entry]) -> AnswerView:
    """Say what the Run answered so far; `hint` is the next step, None when there is none.

    `text` is that of the last model call that ended or is streaming with deltas; the text is
    None once it has been erased. `hint` of a Run that failed quotes the last failure of its
    model, of a long text the first 500 characters.

    Args:
        header: the Run's header.
        entries: its log from the first record to the header's head, as for `status_view`.
    """
    words = LastWords()
    found = survey(header, entries, words.read)
    blocked = blocked_on(found)
    view = AnswerView(
        run_id=header.run_id,
        text=words.last(),
        output=found.settled.output if found.settled else None,
        finished=header.state == "settled",
        status=lifecycle(found, blocked),
        ended=ended(found),
        pending_approvals=pending_approvals(found),
        pending_waits=pending_waits(found),
    )
    failing = failure_text(found.failure) if found.failure and found.fails else None
    hint = blocked.message if blocked else _hint(view, words.denied, failing)
    return view.model_copy(update={"hint": hint})


def _hint(view: AnswerView, denied: Sequence[str], failing: str | None) -> str | None:
    """Return the next step, with the line of code that takes it; first, what went wrong."""
    after = _AFTER.get(view.ended.code or "") if view.ended else None
    match view.status:
        case "queued":
            return "no worker has it: `await Worker(runtime).run()` takes it"
        case "waiting":
            return _waiting(view)
        case "running" | "stopping":
            return "`await wait(store, run_id, scope=scope)` returns when it has ended"
        case "failed" if failing:
            return f"{failing}; {after or _REPORT}"
        case "failed" | "stopped" if after:
            return after
        case _ if denied:
            return _denied(denied)
        case "failed":
            return _REPORT
        case _:
            return None


def _waiting(view: AnswerView) -> str:
    if view.pending_approvals:
        first = view.pending_approvals[0]
        more = len(view.pending_approvals) - 1
        others = f" ({more} more wait, too)" if more else ""
        return (
            f"{first.identity} waits for consent{others}: `await decide(store, run_id, "
            f'scope=scope, decisions={{"{first.call_id}": "approve"}}, by=...)`'
        )
    if view.pending_waits:
        wait = view.pending_waits[0]
        if wait.kind in ("timer", "children"):
            return f"it waits for {wait.kind} and goes on by itself while a worker runs"
        return (
            f"it waits for {wait.kind}: `await deliver(store, run_id, scope=scope, "
            f'wait="{wait.wait_id}", payload=...)`'
        )
    return "it tries the model again later, by itself, while a worker runs"


def _denied(denied: Sequence[str]) -> str:
    names = list(dict.fromkeys(denied))
    shown = ", ".join(names[:_NAMES_SHOWN]) + (" ..." if len(names) > _NAMES_SHOWN else "")
    return (
        f"the policy denied {shown}: `policy=AllowAll()` allows every call, "
        '`@tool(annotations={"read-only"})` marks one that changes nothing'
    )
