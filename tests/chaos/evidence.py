"""What is left when a run is over: logs, effects, and what became of which process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from psych_runtime import verify
from psych_runtime.core.codec import decode_anew
from psych_runtime.core.fold import fold
from psych_runtime.errors import LogError
from psych_runtime.ports.store import RunFilter, Store
from psych_runtime.runtime.commit import ask_surely
from psych_schema.common import Scope
from psych_schema.record import Record
from psych_schema.store import RunRow
from tests.chaos.work import Order
from tests.processes.nursery import Life

__all__ = ["Admission", "Effect", "Evidence", "Pause", "RunLog", "WorkerId", "read_logs"]


class Admission(NamedTuple):
    """An order, and the Runs that dispatching it gave, one for each time it was dispatched."""

    order: Order
    tenant: str
    run_ids: tuple[str, ...]


class Effect(NamedTuple):
    """One execution of a tool."""

    tool: str
    run_id: str
    turn: int
    call_id: str
    epoch: int
    pid: int


class WorkerId(NamedTuple):
    """An id, and which worker of which process took it."""

    id: str
    pid: int
    number: int
    made: float


class Pause(NamedTuple):
    """A time without a turn for a process, told at its end."""

    pid: int
    ended: float
    seconds: float


@dataclass(frozen=True)
class RunLog:
    """One Run as the store has it.

    Attributes:
        state: the header's.
        problems: what verifying and folding the log found.
    """

    run_id: str
    tenant: str
    state: str
    records: tuple[Record, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All of it.

    Attributes:
        ended_alone: processes that nobody has killed and that are gone.
        raised: what the API raised to the control process, retries of a store that is away aside.
    """

    admissions: Sequence[Admission]
    logs: Mapping[str, RunLog]
    effects: Sequence[Effect]
    workers: Sequence[WorkerId]
    lives: Mapping[int, Life]
    lease_seconds: float
    ended_alone: Sequence[int] = ()
    pauses: Sequence[Pause] = ()
    raised: Sequence[str] = ()


def read_effects(folder: Path) -> list[Effect]:
    """Return what the tools of all processes did."""
    return [
        Effect(name, run_id, int(turn), call_id, int(epoch), int(pid))
        for name, run_id, turn, call_id, epoch, pid in _lines(folder / "effects")
    ]


def read_workers(folder: Path) -> list[WorkerId]:
    """Return all worker ids."""
    found = _lines(folder / "workers")
    return [WorkerId(id, int(pid), int(number), float(made)) for id, pid, number, made in found]


def read_pauses(folder: Path) -> list[Pause]:
    """Return when processes had no turn for long."""
    found = _lines(folder / "pauses")
    return [Pause(int(pid), float(ended), float(seconds)) for pid, ended, seconds in found]


def _lines(file: Path) -> list[list[str]]:
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


async def read_logs(store: Store, tenants: Sequence[str]) -> dict[str, RunLog]:
    """Return every Run that the tenants have, whoever admitted it."""
    logs = {}
    for tenant in tenants:
        for header in await _headers(store, tenant):
            logs[header.run_id] = await _log(store, header)
    return logs


async def _headers(store: Store, tenant: str) -> list[RunRow]:
    found: list[RunRow] = []
    cursor: str | None = None
    while True:
        ask = partial(store.list_runs, tenant, filter=RunFilter(), cursor=cursor, limit=100)
        page = await ask_surely(ask)
        found += page.headers
        cursor = page.cursor
        if cursor is None:
            return found


async def _log(store: Store, header: RunRow) -> RunLog:
    tenant, run_id = header.tenant, header.run_id
    seen = await ask_surely(lambda: verify(store, run_id, scope=Scope(tenant=tenant)))
    problems = [f"{one.code} at {one.seq}: {one.message}" for one in seen.problems]
    records: tuple[Record, ...] = ()
    try:
        entries = [decode_anew(row) for row in await ask_surely(lambda: store.read(tenant, run_id))]
        records = tuple(entry.record for entry in entries)
        fold(entries)
    except LogError as error:
        problems.append(str(error))
    return RunLog(run_id, tenant, header.state, records, tuple(problems))
