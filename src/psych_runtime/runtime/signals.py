"""What unwinds an attempt: look again, or stop at once. Neither leaves the runtime."""

__all__ = ["Lost", "Stale"]


class Stale(Exception):
    """Somebody else wrote first: look at the state again and decide anew (R-2)."""


class Lost(Exception):
    """The Run is not this attempt's any more: discard everything (R-4, R-8)."""
