"""What an adapter does about a failure before anybody hears of it."""

__all__ = ["Again", "Broken"]


class Again(Exception):
    """Nothing was written: a deadlock, or a row that came in between. Send it again."""


class Broken(Exception):
    """The connection died; it may or may not have happened. Send it again, once."""
