"""What a store answers for a unit (R-1): values, not errors: a writer expects each of them."""

from typing import NamedTuple

__all__ = [
    "Answer",
    "Committed",
    "KeyTaken",
    "LeaseLost",
    "RunNotFound",
    "SeqConflict",
    "ThreadTaken",
]


class Committed(NamedTuple):
    """The unit is durable."""


class RunNotFound(NamedTuple):
    """No such Run in the unit's tenant."""

    run_id: str


class LeaseLost(NamedTuple):
    """The fence is no longer the Run's epoch."""

    run_id: str


class SeqConflict(NamedTuple):
    """Somebody wrote at this position; it may have been this very unit (R-20)."""

    run_id: str


class KeyTaken(NamedTuple):
    """A request with this key is in the store."""

    key: str
    digest: str
    receipt: str


class ThreadTaken(NamedTuple):
    """Another Run stands at this position of the thread."""

    thread: str
    position: int


type Answer = Committed | RunNotFound | LeaseLost | SeqConflict | KeyTaken | ThreadTaken
