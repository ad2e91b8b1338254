"""What a check of the contract is, and what it needs from whoever runs it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from psych_runtime.ports.store import Store

__all__ = ["Check", "Harness", "check", "near", "same"]

_TOLERANCE: Final = timedelta(seconds=5)  # for stores whose clock runs on its own


class Harness(Protocol):
    """One store, empty and migrated, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[Store]:
        """Open another handle of it."""

    async def advance(self, seconds: float) -> None:
        """Let time pass for it: move its clock on, or all its stored instants back."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named truth about every store; call it with a harness. AssertionError: it does not hold.

    `promises` are the rules that it comes from, `methods` those of the port that it exercises.
    """

    name: str
    promises: tuple[str, ...]
    methods: frozenset[str]
    run: Callable[[Harness], Awaitable[None]]

    async def __call__(self, harness: Harness) -> None:
        """Run the check on the harness's store."""
        await self.run(harness)

    def __str__(self) -> str:
        """Return the name, for reports."""
        return self.name


def check(
    *promises: str, methods: tuple[str, ...]
) -> Callable[[Callable[[Harness], Awaitable[None]]], Check]:
    """Make a Check of a function; its name is the truth."""

    def made(run: Callable[[Harness], Awaitable[None]]) -> Check:
        return Check(run.__name__, promises, frozenset(methods), run)

    return made


def same(actual: object, wanted: object, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if actual != wanted:
        raise AssertionError(f"{what}: {_short(actual)}, not {_short(wanted)}")


def near(actual: datetime | None, wanted: datetime, what: str) -> None:
    """Raise AssertionError unless the instants are at most 5 seconds apart."""
    if actual is None or abs(actual - wanted) > _TOLERANCE:
        raise AssertionError(f"{what}: {actual}, not about {wanted}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]} ... ({len(text)} characters)"
