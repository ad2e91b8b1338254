"""What a check of the contract is, and what it needs from whoever runs it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from psych_runtime.errors import PsychError
from psych_runtime.ports.memory import MAX_MEMORY_ENTRIES, MemoryStore
from psych_schema.common import Scope

__all__ = ["ANNA", "Check", "Harness", "check", "entries", "refused", "same"]

ANNA: Final = Scope(tenant="acme", principal="anna")


class Harness(Protocol):
    """One place to remember in, empty, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[MemoryStore]:
        """Open another handle of it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named truth about every memory; call it with a harness.

    `promises` are the rules that it comes from, `methods` those of the port that it exercises.
    AssertionError: it does not hold.
    """

    name: str
    promises: tuple[str, ...]
    methods: frozenset[str]
    run: Callable[[Harness], Awaitable[None]]

    async def __call__(self, harness: Harness) -> None:
        """Run the check on the harness's place."""
        try:
            await self.run(harness)
        except PsychError as error:
            raise AssertionError(f"{self.name}: {error.code} where it is none") from error

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


async def entries(
    memory: MemoryStore, scope: Scope = ANNA, query: str | None = None
) -> list[tuple[str, str]]:
    """Return all keys and values that a query finds, newest first."""
    found = await memory.recall(scope, query, limit=MAX_MEMORY_ENTRIES)
    return [(entry.key, entry.value) for entry in found]


async def refused(what: str, kind: type[PsychError], call: Awaitable[object]) -> None:
    """Raise AssertionError unless a call raises this error."""
    try:
        result = await call
    except kind:
        return
    except PsychError as error:
        raise AssertionError(f"{what}: {error.code}, not {kind.code}") from error
    raise AssertionError(f"{what}: {_short(result)}, not {kind.code}")


def same(actual: object, wanted: object, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if actual != wanted:
        raise AssertionError(f"{what}: {_short(actual)}, not {_short(wanted)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]} ... ({len(text)} characters)"
