"""The agent loop: look at the state, do the next thing, look again.

Nothing is remembered between two looks; whatever crashed, the next attempt sees the same.
"""

from typing import Final

from psych_runtime.core.fold import RunState
from psych_runtime.errors import InvalidArgument
from psych_runtime.ports.policy import Allow, Deny
from psych_runtime.runtime.approvals import expired
from psych_runtime.runtime.attempt import Attempt, Stop
from psych_runtime.runtime.calls import can_run, run_calls
from psych_runtime.runtime.guards import end_code, tell_withheld
from psych_runtime.runtime.model_call import call_model
from psych_runtime.runtime.output import OUTPUT_INVALID, Output, read_output, repair_text
from psych_runtime.runtime.settle import settle
from psych_runtime.runtime.signals import Stale
from psych_runtime.runtime.suspension import suspend
from psych_runtime.runtime.waits import has_expired, overdue_waits
from psych_schema.model import AssistantMessage, TextPart
from psych_schema.record import AdvisoryAdded, AttemptEnded, Failure, Record
from psych_schema.spec import OutputRules

__all__ = ["run_agent"]

_PARK_SECONDS: Final = 5.0  # a longer wait for a retry holds no slot (RUN-14)


async def run_agent(attempt: Attempt) -> None:
    """Execute the Run until this attempt ends in order. Raises Lost."""
    allowed = attempt.state.last_turn > 0 or await _may_begin(attempt)
    ended = False
    while not ended:
        try:
            ended = await (_look(attempt) if allowed else _turn_away(attempt))
        except Stale:
            continue


async def _look(attempt: Attempt) -> bool:
    """Do the next thing; True when the attempt has ended."""
    state = attempt.state
    stop = attempt.stop()
    if stop is not None:
        return await _end(attempt, stop)
    if state.any("call", "asked", "proposed", "started"):
        return await _go_on_with_calls(attempt)
    model = state.get("model", state.last_model)
    if model.phase == "failed" and model.text("next") == "retry":
        retry_at = model.instant("retry_at")
        if retry_at is not None and retry_at > attempt.store_now():
            return await _wait_for_retry(attempt)
    if model.phase == "failed" and model.text("next") == "give_up":
        failure = model.get("failure")
        await settle(attempt, "failed", _code_of(failure))
        return True
    finishing = _has_answered(attempt)
    queues = ("steer", "follow_up") if finishing else ("steer",)
    entries = _queued(state, *queues)
    if finishing and not entries:
        return await _finish(attempt)
    code = end_code(attempt)
    if code is not None:
        await settle(attempt, "failed", code)
        return True
    if not state.any("turn", "open") and state.last_turn >= attempt.spec.limits.max_turns:
        await settle(attempt, "failed", "turn_limit")
        return True
    await tell_withheld(attempt)
    await call_model(attempt, entries)
    return False


async def _may_begin(attempt: Attempt) -> bool:
    """Ask whether the Run may begin at all. InvalidArgument: the policy said something else."""
    scope, version = attempt.admitted.scope, attempt.admitted.version
    decision: object = await attempt.host.runtime.policy.allow_run(scope, version)
    if isinstance(decision, Allow | Deny):
        return isinstance(decision, Allow)
    problem = f"allow_run returned {decision!r:.80}; return Allow() or Deny(reason)"
    raise InvalidArgument(what="policy", problem=problem)


async def _turn_away(attempt: Attempt) -> bool:
    """End a Run that may not begin."""
    stop = attempt.stop()
    if stop is not None:
        return await _end(attempt, stop)
    await settle(attempt, "failed", "not_allowed")
    return True


async def _go_on_with_calls(attempt: Attempt) -> bool:
    """Run the calls that can run; where each waits for somebody, let go of the Run (SUS-4)."""
    over: tuple[Record, ...] = (*expired(attempt), *overdue_waits(attempt))
    if over:
        await attempt.journal.decide(*over)
    elif has_expired(attempt):
        await settle(attempt, "expired", "wait_expired")
        return True
    elif can_run(attempt):
        await run_calls(attempt)
    else:
        await suspend(attempt)
        return True
    return False


def _queued(state: RunState, *queues: str) -> tuple[str, ...]:
    """Return the queued entries, in the order they came."""
    ids = state.ids("entry", "queued")
    return tuple(e for e in ids if state.get("entry", e).text("queue") in queues)


def _code_of(failure: object) -> str:
    """Return why a Run fails whose model call brought nothing."""
    if not isinstance(failure, Failure):
        return "model_failed"
    return "retries_exhausted" if failure.transient else failure.code


def _has_answered(attempt: Attempt) -> bool:
    """Tell whether the model's last word asks for nothing more."""
    messages = attempt.conversation.messages
    last = messages[-1] if messages else None
    answered = attempt.state.get("model", attempt.state.last_model).phase == "completed"
    return answered and isinstance(last, AssistantMessage) and not last.calls


async def _finish(attempt: Attempt) -> bool:
    """Settle with the model's last words; what is no whole answer is not completed (MOD-4).

    False: the model is to repair them first.
    """
    last = attempt.conversation.messages[-1]
    parts = last.parts if isinstance(last, AssistantMessage) else ()
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    finish = attempt.state.get("model", attempt.state.last_model).text("finish")
    code: str | None = None
    if finish == "content_filter":
        code = "content_filter"
    elif finish == "length":
        code = "output_truncated"
    elif not text.strip():
        code = "empty_answer"
    elif attempt.spec.output is not None:
        return await _finish_with_data(attempt, attempt.spec.output, text)
    await settle(attempt, "failed" if code else "completed", code, text or None)
    return True


async def _finish_with_data(attempt: Attempt, rules: OutputRules, text: str) -> bool:
    """Settle with the data that the answer is; for what is none the model has one more turn."""
    found = read_output(text, rules)
    if isinstance(found, Output):
        await settle(attempt, "completed", None, found.value)
        return True
    if OUTPUT_INVALID in attempt.conversation.advised:
        await settle(attempt, "failed", OUTPUT_INVALID)
        return True
    attempt.journal.note(
        AdvisoryAdded(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            advisory_id=attempt.new_id("adv"),
            code=OUTPUT_INVALID,
            message=repair_text(found, rules),
        )
    )
    return False


async def _wait_for_retry(attempt: Attempt) -> bool:
    state = attempt.state
    retry_at = state.get("model", state.last_model).instant("retry_at")
    if retry_at is None:
        return False
    rest = (retry_at - attempt.store_now()).total_seconds()
    if rest <= _PARK_SECONDS:
        await attempt.sleep(rest)
        return False
    await suspend(attempt, until=retry_at)
    return True


async def _end(attempt: Attempt, stop: Stop) -> bool:
    """End the attempt for `stop`; True once it has.

    What a newer build wrote may be more than this one knows of: only who reads it settles (R-16).
    """
    needs = attempt.journal.needs_version
    if needs is None and (stop == "aborted" or stop == "timed_out"):
        await settle(attempt, stop, stop)
        return True
    attempt.left_alone = needs is not None
    await attempt.journal.decide(
        AttemptEnded(
            run_id=attempt.run_id,
            id=attempt.new_id("rec"),
            at=attempt.now(),
            reason="drained" if needs is None else "blocked",
            needs_version=needs,
        )
    )
    return True
