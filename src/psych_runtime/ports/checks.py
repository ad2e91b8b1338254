"""What the contract of a port is made of: checks, and the words in which one says what is wrong.

`psych_runtime.store.contract`, `psych_runtime.blob.contract` and `psych_runtime.memory.contract`
are made of these. Nothing here needs a test framework.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from psych_runtime.errors import PsychError

__all__ = ["Check", "check", "checks_in", "holds", "refused", "same"]

_SHOWN_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Check[H]:
    """A named truth about every adapter of a port; call it with a harness, which makes some.

    `promises` are the rules that it comes from, `methods` those of the port that it exercises.
    AssertionError: it does not hold.
    """

    name: str
    promises: tuple[str, ...]
    methods: frozenset[str]
    run: Callable[[H], Awaitable[None]]

    async def __call__(self, harness: H) -> None:
        """Run the check on what the harness makes."""
        try:
            await self.run(harness)
        except PsychError as error:
            raise AssertionError(f"{self.name}: {error.code} where it is none") from error

    def __str__(self) -> str:
        """Return the name, for reports."""
        return self.name


def check[H](
    *promises: str, methods: tuple[str, ...]
) -> Callable[[Callable[[H], Awaitable[None]]], Check[H]]:
    """Make a Check of a function; its name is the truth."""

    def made(run: Callable[[H], Awaitable[None]]) -> Check[H]:
        return Check(run.__name__, promises, frozenset(methods), run)

    return made


def checks_in[C](kind: type[C], *modules: ModuleType) -> tuple[C, ...]:
    """Return the checks of modules, in the order in which they are written."""
    return tuple(
        value for module in modules for value in vars(module).values() if isinstance(value, kind)
    )


async def refused[E: PsychError](what: str, kind: type[E], call: Awaitable[object]) -> E:
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
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]} ... ({len(text)} characters)"
