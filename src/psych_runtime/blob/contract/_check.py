"""What a check of the contract is, and what it needs from whoever runs it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from psych_runtime.errors import PsychError
from psych_runtime.ports.blob import BlobOwner, BlobStore

__all__ = ["OURS", "THEIRS", "Check", "Harness", "check", "holds", "put", "refused", "same"]

OURS = BlobOwner("acme", "run_01k5a0000000000000000000a0")
THEIRS = BlobOwner("globex", "run_01k5a0000000000000000000a0")  # a Run's id is no secret


class Harness(Protocol):
    """One place for blobs, empty, made anew for each check."""

    def open(self) -> AbstractAsyncContextManager[BlobStore]:
        """Open another handle of it."""

    async def advance(self, seconds: float) -> None:
        """Let time pass for it: move its clock on, its stored instants back, or wait.

        A check asks for a few seconds, once.
        """

    async def damage(self, owner: BlobOwner, hash: str) -> None:
        """Change a byte of what is kept, as a broken disk does; the length stays."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named truth about every blob store; call it with a harness.

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


async def put(store: BlobStore, owner: BlobOwner, data: bytes) -> str:
    """Put a blob; return its hash."""
    ref = await store.put(*owner, data, media_type="application/octet-stream")
    return ref.hash


async def refused(what: str, kind: type[PsychError], call: Awaitable[object]) -> PsychError:
    """Return the error that a call must raise. AssertionError: it raises none, or another."""
    try:
        result = await call
    except kind as error:
        return error
    except PsychError as error:
        raise AssertionError(f"{what}: {error.code}, not {kind.code}") from error
    raise AssertionError(f"{what}: {_short(result)}, not {kind.code}")


def holds(truth: bool, what: str) -> None:
    """Raise AssertionError unless it is true."""
    if not truth:
        raise AssertionError(what)


def same(actual: object, wanted: object, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if actual != wanted:
        raise AssertionError(f"{what}: {_short(actual)}, not {_short(wanted)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]} ... ({len(text)} characters)"
