"""Why a model call brought nothing, with the text that the log keeps of it (R-8, RUN-14)."""

from typing import Final

from psych_schema.record import ModelFailed

__all__ = ["failure_text"]

_MESSAGE_CHARACTERS: Final = 500


def failure_text(failed: ModelFailed) -> str:
    """Return code and text of a failure, of a long text the beginning; the code once erased."""
    message = failed.said.message if failed.said else None
    if not message:
        return f"model call failed: {failed.failure.code}"
    if len(message) > _MESSAGE_CHARACTERS:
        message = message[: _MESSAGE_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return f"model call failed: {failed.failure.code}: {message}"
