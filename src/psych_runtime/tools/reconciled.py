"""The answer to whether a call happened whose worker died while it ran (RUN-1, R-9)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, Self

from psych_runtime.core.streaks import NOT_HAPPENED
from psych_runtime.errors import InvalidArgument
from psych_runtime.tools.context import StartedCall
from psych_runtime.tools.executed import Executed, failed
from psych_runtime.tools.text import clip, ended
from psych_schema.record import ToolResult

__all__ = ["NO_ANSWER", "Reconcile", "Reconciled", "settled_as"]

NO_ANSWER: Final = "reconcile_no_answer"
"""The code of an outcome that nobody could look up: it settles nothing but that."""

_OUTCOMES: Final = ("happened", "not_happened", "unknown")
_REASON_BYTES: Final = 1024
_STOPPED: Final = "The worker stopped while this call ran"
_FIND_OUT: Final = "It may or may not have happened. Find out before you repeat it."


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a tool's `reconcile` found out; made by `happened`, `not_happened` or `unknown`.

    Raises InvalidArgument for another outcome, and for a reason that is no text.
    """

    outcome: Literal["happened", "not_happened", "unknown"]
    result: object = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.outcome not in _OUTCOMES:
            problem = f"one of {', '.join(_OUTCOMES)}, made by the method of that name"
            raise InvalidArgument(what="outcome", problem=problem)
        reason: object = self.reason
        if reason is not None and not isinstance(reason, str):
            problem = f"must be text for the model, not a {type(reason).__name__}; write str(...)"
            raise InvalidArgument(what="reason", problem=problem)

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
            return failed(NOT_HAPPENED, message, transient=True)
        case "unknown":
            return Executed("unknown", ToolResult(message=f"{_STOPPED}{said} {_FIND_OUT}"))
