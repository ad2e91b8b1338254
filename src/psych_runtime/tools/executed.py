"""What one execution of a tool brought, before it is decided what of it the log keeps."""

from typing import Final, Literal, NamedTuple

from psych_runtime.tools.attachment import Attachment
from psych_runtime.tools.text import clip
from psych_schema.record import Failure, ToolResult

__all__ = ["MESSAGE_BYTES", "RAN", "Executed", "failed"]

MESSAGE_BYTES: Final = 2048
"""How much a model is told of what went wrong."""

RAN: Final = "It was executed."
"""What a model must know of a call whose result is lost: to repeat it is to do it twice."""


class Executed(NamedTuple):
    """What an execution brought; `failure` is None when it is ok, and when nobody knows."""

    outcome: Literal["ok", "error", "timed_out", "unknown"]
    result: ToolResult
    failure: Failure | None = None
    attachments: tuple[Attachment, ...] = ()  # the bytes that the result's blob parts name


def failed(
    code: str, message: str, *, status: int | None = None, transient: bool = False
) -> Executed:
    """Return a call that failed; `message` is for the model."""
    failure = Failure(code=code, transient=transient, status=status)
    return Executed("error", ToolResult(message=clip(message, MESSAGE_BYTES)), failure)
