"""What an adapter does about a failure before anybody hears of it."""

__all__ = ["Again", "Broken", "Unsent", "unsent"]


class Again(Exception):
    """Nothing was written: a deadlock, or a row that came in between. Send it again."""


class Broken(Exception):
    """The connection died; it may or may not have happened.

    What may happen twice is sent again, once. A commit is not: whoever brought it must know that
    it is in doubt, or would take its own records for a conflict (R-20).
    """


class Unsent(Broken):
    """No connection could be made: nothing happened."""


def unsent(error: Exception) -> Exception:
    """Return what an error means that came while connecting."""
    return Unsent(str(error)) if isinstance(error, Broken) else error
