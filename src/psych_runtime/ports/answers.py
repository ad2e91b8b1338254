"""What a store answers for a unit (R-1): values, not errors: a writer expects each of them."""

from dataclasses import dataclass

__all__ = [
    "Answer",
    "CapReached",
    "Committed",
    "KeyTaken",
    "LeaseLost",
    "RunNotFound",
    "SeqConflict",
    "ThreadTaken",
]


@dataclass(frozen=True, slots=True)
class Committed:
    """The unit is durable."""


@dataclass(frozen=True, slots=True)
class RunNotFound:
    """No such Run in the unit's tenant."""

    run_id: str


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The fence is no longer the Run's epoch."""

    run_id: str


@dataclass(frozen=True, slots=True)
class SeqConflict:
    """Somebody wrote at this position; it may have been this very unit (R-20)."""

    run_id: str


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """A request with this key is in the store."""

    key: str
    digest: str
    receipt: str


@dataclass(frozen=True, slots=True)
class ThreadTaken:
    """Another Run stands at this position of the thread."""

    thread: str
    position: int


@dataclass(frozen=True, slots=True)
class CapReached:
    """As many of the tenant's Runs are running as its cap allows (R-15)."""

    tenant: str


type Answer = (
    Committed | RunNotFound | LeaseLost | SeqConflict | KeyTaken | ThreadTaken | CapReached
)
