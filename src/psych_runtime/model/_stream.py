"""What every reader of a model's stream needs: whole characters, and no trust in shapes (SEC-3)."""

import contextlib

from psych_runtime.errors import ModelTransient
from psych_runtime.model._json import mend, only

__all__ = ["Words", "due"]


class Words:
    """Joins pieces of text; half a character waits for its other half."""

    def __init__(self) -> None:
        self._half = ""

    def read(self, text: str) -> str:
        """Return what is whole so far."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mend(text)

    def end(self) -> str:
        """Return what is left: a half that nothing follows, as the replacement character."""
        text, self._half = mend(self._half), ""
        return text


def due[T](value: object, kind: type[T], *, host: str) -> T | None:
    """Return what is of `kind`, None for null and everything empty.

    Raises ModelTransient for anything else: the message is garbled, and what it said is lost.
    """
    with contextlib.suppress(ValueError):
        return only(value, kind)
    raise ModelTransient(f"{host} sent a garbled chunk: no {kind.__name__} where one was due")
