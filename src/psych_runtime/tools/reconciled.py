"""The answer to whether a call happened whose worker died while it ran (RUN-1, R-9)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, Self

from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.executed import Executed, failed
from psych_runtime.tools.text import clip, ended
from psych_schema.record import ToolResult

__all__ = ["NO_ANSWER", "Reconcile", "Reconciled", "settled_as"]

NO_ANSWER: Final = "reconcile_no_answer"
"""The code of an outcome that nobody could look up: it settles nothing but that."""

_REASON_BYTES: Final = 1024
_STOPPED: Final = "The worker stopped while this call ran"
_FIND_OUT: Final = "It may or may not have happened. Find out before you repeat it."


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a tool's `reconcile` found out; made by `happened`, `not_happened` or `unknown`."""

    outcome: Literal["happened", "not_happened", "unknown"]
    result: object = None
    reason: str | None = None

    @classmethod
    def happened(cls, result: object = None) -> Self:
        """The call took effect; `result` is what it would have returned, judged like that."""
        return cls("happened", result)

    @classmethod
    def not_happened(cls, reason: str | None = None) -> Self:
        """The call took no effect, and will not any more; the model may call again."""
        return cls("not_happened", reason=reason)

    @classmethod
    def unknown(cls, reason: str | None = None) -> Self:
        """Nobody can tell; the model hears so, and that it must not simply repeat the call."""
        return cls("unknown", reason=reason)


type Reconcile = Callable[[StartedCall], Reconciled | Awaitable[Reconciled]]


def settled_as(
    tool: str, answer: object, brought: Callable[[object, int], Executed], max_bytes: int
) -> Executed:
    """Return the outcome that an answer gives a call; `brought` reads what it returned."""
    if not isinstance(answer, Reconciled):
        made = clip(type(answer).__name__, 80)
        return failed(NO_ANSWER, f"reconcile of {tool} returned a {made}, no Reconciled.")
    said = ended(f": {clip(answer.reason, _REASON_BYTES)}" if answer.reason else "")
    match answer.outcome:
        case "happened":
            return brought(answer.result, max_bytes)
        case "not_happened":
            message = f"{_STOPPED}, and it did not happen{said} You may call it again."
            return failed("not_happened", message, transient=True)
        case "unknown":
            return Executed("unknown", ToolResult(message=f"{_STOPPED}{said} {_FIND_OUT}"))
