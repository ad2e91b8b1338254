"""What is left of a log once its contents have been erased, as a store leaves it."""

from psych_runtime.core.codec import Entry, decode_anew
from psych_runtime.testing.log_builder import LogBuilder

__all__ = ["erased"]


def erased(log: LogBuilder) -> list[Entry]:
    """Return the entries of `log` without any content."""
    gone = {"content": None, "salt": None}
    return [decode_anew(row.model_copy(update=gone)) for row in log.rows]
