"""What keeps a Run from trying in vain: failure streaks and repeats (TOOL-5).

A guard refuses a call and says why; a Run that goes on all the same fails. What was counted is
folded from the log, so that every worker decides alike.
"""

from collections.abc import Mapping, Sequence

from psych_runtime.core.streaks import WITHHELD
from psych_runtime.runtime.access import is_withheld, permitted_tools
from psych_runtime.runtime.approvals import digest_of
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.offer import make_offer, store_offer
from psych_runtime.runtime.signals import Stale
from psych_runtime.tools.arguments import Arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.record import AdvisoryAdded

__all__ = ["end_code", "refusal", "tell_withheld"]


def refusal(
    attempt: Attempt, call_id: str, tool: RegisteredTool, arguments: Arguments
) -> str | None:
    """Return why a call that has not begun is useless, in words for the model; None: it may run.

    A person who consents to a call consents to a repeat, too.
    """
    phase = attempt.state.get("call", call_id).phase
    if phase == "started":  # it goes on after a crash
        return None
    if is_withheld(attempt, tool):
        failures = attempt.streaks.failures(tool.identity)
        return (
            f"{tool.name} was not executed: {_withheld(failures)}. Calling it again will not "
            "help, and the run fails if you keep on. Use another tool, or answer with what you "
            "have and say what could not be done."
        )
    if phase != "asked":
        return None
    repeats = attempt.streaks.repeats(tool.identity, digest_of(attempt, arguments))
    if repeats < attempt.spec.limits.repeat_calls:
        return None
    return (
        f"{tool.name} was not executed: {repeats} calls in a row with these arguments brought "
        "the same result, which you have. Repeating it will not help, and the run fails if you "
        "keep on. Use that result, change the arguments, or do something else first."
    )


def end_code(attempt: Attempt) -> str | None:
    """Return why the Run fails before the next model call; None: it goes on."""
    limits, streaks = attempt.spec.limits, attempt.streaks
    if streaks.most_failures(limits.failure_streak) >= limits.failure_streak_stop:
        return "failure_streak"
    if streaks.most_repeats(limits.repeat_calls) >= limits.repeat_calls_stop:
        return "repeat_calls"
    return None


async def tell_withheld(attempt: Attempt) -> None:
    """Tell the model, before its next call, which tools are withheld by now. Raises Stale.

    The offer is recorded behind it, the same one: what a record has named is not told again.
    """
    if not _fresh(attempt, attempt.tools):
        return
    tools = await permitted_tools(attempt)
    fresh = _fresh(attempt, tools)
    if not fresh:
        return
    offer = make_offer(attempt, tools)
    if attempt.state.last_offer != offer.hash and await store_offer(attempt, offer):
        raise Stale
    if not attempt.streaks.told:
        attempt.journal.note(_advisory(attempt, fresh))
    attempt.journal.note(offer.record(attempt))


def _fresh(attempt: Attempt, tools: Mapping[str, RegisteredTool]) -> list[RegisteredTool]:
    """Return the tools that are withheld and not yet recorded as such."""
    known = attempt.streaks.withheld
    return [
        tool for tool in tools.values() if tool.identity not in known and is_withheld(attempt, tool)
    ]


def _advisory(attempt: Attempt, tools: Sequence[RegisteredTool]) -> AdvisoryAdded:
    said = "; ".join(
        f"{tool.name}: {_withheld(attempt.streaks.failures(tool.identity))}" for tool in tools
    )
    message = (
        f"Note of the runtime, not of the user. {said}. Do not call it again: it would be "
        "refused. Use another tool, or answer with what you have and say what could not be done."
    )
    return AdvisoryAdded(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        advisory_id=attempt.new_id("adv"),
        code=WITHHELD,
        message=message,
    )


def _withheld(failures: int) -> str:
    times = "time" if failures == 1 else "times in a row"
    return f"it failed {failures} {times} and is withheld until the run ends"
