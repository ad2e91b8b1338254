"""Which claimable Runs a worker takes: those it can execute, and risky ones one at a time (R-7)."""

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from psych_runtime.core.codec import SCHEMA_VERSION
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import InvalidSpec
from psych_runtime.ports.store import Exclude
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.runtime import Runtime
from psych_schema.spec import AgentSpec
from psych_schema.store import RunRow

__all__ = ["Chooser", "Chosen", "Pick", "is_risky"]

_log: Final = logging.getLogger("psych_runtime")

_RISKY_CRASHES: Final = 2  # a Run that crashed so often runs alone of its kind
_MAX_LEFT_ALONE: Final = 256
_MAX_SPECS: Final = 1024


def is_risky(header: RunRow) -> bool:
    """Tell whether a Run may well bring its worker down."""
    return header.crashes >= _RISKY_CRASHES


class Pick(NamedTuple):
    """A Run to claim, and the crashes that the claim counts."""

    header: RunRow
    crashes: int


class Chosen(NamedTuple):
    """What becomes of claimable Runs.

    `learned`: how many are left out from now on; what stands behind them comes next.
    """

    picked: Sequence[Pick]
    exhausted: Sequence[Pick]  # died too often: to be failed
    learned: int


class Chooser:
    """What a worker knows of Runs and Versions that are not for it."""

    def __init__(self, runtime: Runtime, *, max_attempts: int) -> None:
        self._runtime = runtime
        self._max_attempts = max_attempts
        self._postponed: set[str] = set()  # Runs that wait until no risky one is held
        self._left_alone: dict[str, None] = {}  # Runs that another build must go on with
        self._specs: dict[tuple[str, str], AgentSpec | None] = {}

    def exclude(self, in_hand: Collection[str], held: Iterable[Attempt]) -> Exclude:
        """Return what need not be found, holding these."""
        if not any(is_risky(one.header) for one in held):
            self._postponed.clear()
        return Exclude(
            (*in_hand, *self._postponed, *self._left_alone), self._unrunnable(), SCHEMA_VERSION
        )

    async def choose(self, headers: Iterable[RunRow], held: Iterable[Attempt]) -> Chosen:
        """Say what becomes of claimable Runs; at most one risky one is held at a time."""
        risky = any(is_risky(one.header) for one in held)
        picked: list[Pick] = []
        exhausted: list[Pick] = []
        learned = 0
        for header in headers:
            crashes = header.crashes + (header.state == "running")
            if await self.spec(header) is None:
                learned += 1
            elif crashes >= self._max_attempts:
                exhausted.append(Pick(header, crashes))
            elif crashes >= _RISKY_CRASHES and risky:
                self._postponed.add(header.run_id)
                learned += 1
            else:
                risky = risky or crashes >= _RISKY_CRASHES
                picked.append(Pick(header, crashes))
        return Chosen(picked, exhausted, learned)

    async def spec(self, header: RunRow) -> AgentSpec | None:
        """Return the Run's Spec, None when this worker cannot run it (PUB-3)."""
        key = (header.tenant, header.version)
        if key not in self._specs:
            text = await self._runtime.store.version(*key)
            self._keep(key, text)
        spec = self._specs[key]
        return None if spec is None or self._runtime.missing(spec) else spec

    def _keep(self, key: tuple[str, str], text: str | None) -> None:
        if len(self._specs) >= _MAX_SPECS:
            del self._specs[next(iter(self._specs))]
        try:
            self._specs[key] = read_spec(text) if text is not None else None
        except InvalidSpec as error:
            _log.warning("version %s cannot be read by this build: %s", key[1], error)
            self._specs[key] = None

    def _unrunnable(self) -> tuple[str, ...]:
        return tuple(
            hash
            for (_, hash), spec in self._specs.items()
            if spec is None or self._runtime.missing(spec)
        )

    def leave_alone(self, run_id: str) -> None:
        """Find a Run no more that this build cannot go on with (R-16)."""
        self._left_alone[run_id] = None
        if len(self._left_alone) > _MAX_LEFT_ALONE:
            del self._left_alone[next(iter(self._left_alone))]
