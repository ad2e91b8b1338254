"""What a check of the contract is, and what it needs from whoever runs it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from psych_runtime.ports.model import ModelClient
from psych_runtime.testing.model_contract.dialect import Dialect

__all__ = ["PATIENCE_SECONDS", "Check", "Harness", "check", "offered", "same"]

PATIENCE_SECONDS: Final = 30.0
"""A check that takes longer has met a client that hangs."""

_SHOWN_CHARACTERS: Final = 300


class Harness(Protocol):
    """One client implementation, and the format that it speaks."""

    @property
    def dialect(self) -> Dialect:
        """How the provider says things."""

    def client(
        self, base_url: str, *, api_key: str, max_connections: int
    ) -> AbstractAsyncContextManager[ModelClient]:
        """Make a client, and close it in the end.

        Args:
            base_url: `http://127.0.0.1:<port>`; add the path that the client expects.
            api_key: what the client shall authenticate with, in whatever way.
            max_connections: the most that its pool may hold, where it has one.
        """


@dataclass(frozen=True, slots=True)
class Check:
    """A named truth about every client; call it with a harness. AssertionError: it does not hold.

    `promises` are the rules that it comes from, `needs` the features of a dialect without which
    it says nothing (see `checks_for`).
    """

    name: str
    promises: tuple[str, ...]
    needs: frozenset[str]
    run: Callable[[Harness], Awaitable[None]]

    async def __call__(
        self, harness: Harness, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Run the check on clients of the harness, for at most `patience_seconds`.

        Raises:
            AssertionError: it does not hold, or the client hangs.
            ValueError: the dialect lacks what the check needs.
        """
        missing = self.needs - offered(harness.dialect)
        if missing:
            raise ValueError(f"{self.name} needs {sorted(missing)}, which this dialect has not")
        limit = asyncio.timeout(patience_seconds)
        try:
            async with limit:
                await self.run(harness)
        except AssertionError:
            raise
        except Exception as error:  # foreign code, where no call is made that could judge it
            if not limit.expired():
                raise AssertionError(f"{self.name}: {error!r} came out of the client") from error
        if limit.expired():
            raise AssertionError(
                f"{self.name}: not done after {patience_seconds:g} s: the client hangs, or this "
                "machine needs a greater patience_seconds"
            )

    def __str__(self) -> str:
        """Return the name, for reports."""
        return self.name


def check(
    *promises: str, needs: tuple[str, ...] = ()
) -> Callable[[Callable[[Harness], Awaitable[None]]], Check]:
    """Make a Check of a function; its name is the truth."""

    def made(run: Callable[[Harness], Awaitable[None]]) -> Check:
        return Check(run.__name__, promises, frozenset(needs), run)

    return made


def offered(dialect: Dialect) -> frozenset[str]:
    """Return the features of a dialect and the spellings of its wire."""
    return dialect.features | frozenset(dialect.wire.spellings())


def same(actual: object, wanted: object, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if actual != wanted:
        raise AssertionError(f"{what}: {_short(actual)}, not {_short(wanted)}")


def _short(value: object) -> str:
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]} ... ({len(text)} characters)"
