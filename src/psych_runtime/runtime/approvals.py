"""Consent: asked for before a call runs, used up by the record that starts it (R-12).

A grant is for one call, these arguments and this tool as it was defined. Where one of them is
another by now, a new approval takes its place, and says why.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from psych_runtime.core.codec import sha256
from psych_runtime.ports.policy import Allow, Ask
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.tools.arguments import Arguments, check_arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_runtime.tools.text import clip
from psych_schema.record import ApprovalDecided, ApprovalExpired, ApprovalRequested

__all__ = [
    "Cleared",
    "Unknown",
    "clear",
    "denial",
    "digest_of",
    "expired",
    "grant_of",
    "is_decided",
    "request",
]

_REASON_BYTES: Final = 2048
_WHY_BYTES: Final = 512  # as the schema has it: schema/record/approval.json
_CHANGED: Final = "Asked again: the tool has changed since somebody decided."
_MISFIT: Final = "Asked again: the edited arguments do not fit the tool."


class Cleared(NamedTuple):
    """What a call may start with; `approval_id` names the consent that it uses up."""

    arguments: Arguments
    approval_id: str | None = None


class Unknown(NamedTuple):
    """A call began, and what was consented to does not fit any more: nobody can say how it ended.

    Nobody consented to anything else, either.
    """


def digest_of(attempt: Attempt, arguments: Arguments) -> str:
    """Return what a grant names of the arguments."""
    return sha256(attempt.run_salt + arguments.digest_text)


def grant_of(attempt: Attempt, call_id: str) -> ApprovalDecided | None:
    """Return the consent to a call that is not used up."""
    asked = attempt.awaited.approval(call_id)
    if asked is None or attempt.state.get("approval", asked.approval_id).phase != "granted":
        return None
    return attempt.awaited.decision(asked.approval_id)


def clear(
    attempt: Attempt, call_id: str, tool: RegisteredTool, asked: Arguments, decision: Allow | Ask
) -> Cleared | Ask | Unknown:
    """Return what the call may start with, or that somebody must be asked, again perhaps.

    One that was started before is the same call: it names no consent, and needs none.
    """
    requested = attempt.awaited.approval(call_id)
    decided = None if requested is None else attempt.awaited.decision(requested.approval_id)
    again = attempt.state.get("call", call_id).phase == "started"
    if requested is None or decided is None:
        return Cleared(asked) if again or isinstance(decision, Allow) else decision
    arguments = _consented(tool, asked, decided)
    if arguments is None or decided.digest != digest_of(attempt, arguments):
        return Unknown() if again else _anew(decision, _MISFIT)
    if requested.identity != tool.identity or requested.risk != tool.risk:
        return Unknown() if again else _anew(decision, _CHANGED)
    if not again and requested.definition not in (None, tool.hash):
        return _anew(decision, _CHANGED)
    return Cleared(arguments, None if again else requested.approval_id)


def _anew(decision: Allow | Ask, why: str) -> Ask:
    """Return what asks once more; the policy's own time holds."""
    if isinstance(decision, Allow):
        return Ask(why)
    said = f"{why} {decision.reason}" if decision.reason else why
    return Ask(said, decision.expires_seconds)


def _consented(
    tool: RegisteredTool, asked: Arguments, decided: ApprovalDecided
) -> Arguments | None:
    """Return the arguments that were consented to; None: they do not fit the tool any more."""
    if decided.decision != "edit":
        return asked
    verdict = decided.verdict
    edited = check_arguments(tool, None if verdict is None else verdict.arguments)
    return edited if isinstance(edited, Arguments) else None


def is_decided(attempt: Attempt, call_id: str) -> bool:
    """Tell whether a proposed call can go on: nobody has to decide about it any more."""
    asked = attempt.awaited.approval(call_id)
    return asked is None or attempt.state.get("approval", asked.approval_id).phase != "open"


def request(
    attempt: Attempt, call_id: str, tool: RegisteredTool, arguments: Arguments, ask: Ask
) -> ApprovalRequested:
    """Return the record that asks for consent; it takes the place of a grant that is unused."""
    before = grant_of(attempt, call_id)
    seconds = ask.expires_seconds
    return ApprovalRequested(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        approval_id=attempt.new_id("apr"),
        call_id=call_id,
        identity=tool.identity,
        risk=tool.risk,
        arguments=dict(arguments.effective),
        digest=digest_of(attempt, arguments),
        definition=tool.hash,
        reason=None if ask.reason is None else clip(ask.reason, _WHY_BYTES),
        expires_at=None if seconds is None else attempt.store_now() + timedelta(seconds=seconds),
        supersedes=None if before is None else before.approval_id,
    )


def expired(attempt: Attempt) -> Iterator[ApprovalExpired]:
    """Yield the end of each approval whose time is over, in store time."""
    now = attempt.store_now()
    for approval_id in list(attempt.state.ids("approval", "open")):
        until = attempt.state.get("approval", approval_id).instant("expires_at")
        if until is not None and until <= now:
            yield ApprovalExpired(
                run_id=attempt.run_id,
                id=attempt.new_id("rec"),
                at=attempt.now(),
                approval_id=approval_id,
                reason="due",
            )


def denial(attempt: Attempt, call_id: str) -> str:
    """Return what the model is told of a call that nobody consented to."""
    asked = attempt.awaited.approval(call_id)
    decided = None if asked is None else attempt.awaited.decision(asked.approval_id)
    if decided is None:
        return (
            "Nobody decided about this call in time, so it was not executed. Do not ask for it "
            "again unless you are told to."
        )
    said = decided.verdict.reason if decided.verdict else None
    why = f": {clip(said, _REASON_BYTES)}" if said else "."
    return f"A person denied this call{why} It was not executed. Do not repeat it as it is."
