"""`psych doctor`: what keeps Runs of a store from going on."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import typer

from psych_runtime._reads import list_runs, status
from psych_runtime._system import System
from psych_runtime.cli._reading import StoreUrl, Tenant, look, scope_of, shown, sqlite_path
from psych_runtime.cli._text import ago, clean, columns
from psych_runtime.cli._verifying import count, problem_text, rebuilt_line, verify_each
from psych_runtime.cli.output import AsJson, console, print_view, well_formed
from psych_runtime.errors import PsychError, UnsupportedStore
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.store import WorkerRow
from psych_schema.view import (
    DoctorView,
    RunCounts,
    StatusView,
    VerificationView,
    WorkerLine,
)

__all__ = ["doctor"]

_STATES: Final = ("ready", "running", "suspended", "settled", "corrupt")
_PAGE: Final = 500
_LOOKED_AT: Final = 50
"""Of so many unsettled Runs the status is read; the log of each is."""


class _Found(NamedTuple):
    """What the store said."""

    workers: Sequence[WorkerRow]
    states: Mapping[str, int]
    unsettled: Sequence[StatusView]
    verified: Sequence[VerificationView] | None


def doctor(
    store: StoreUrl,
    tenant: Tenant = "local",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compare every Run's header with its whole log.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that a store can be used, that workers are alive, and that Runs can go on.

    With --rebuild the header of every Run is recomputed from its log, and each column that is
    not what the log makes it is named, as is each log that is not what was written. It finds and
    changes nothing: a log is never repaired. Where a header is wrong, the log is right.

    Exit code 1 when a problem was found. Of the Runs, a tenant's are looked at. With --json the
    document of the published schema `doctor.json`.
    """
    scope = scope_of(tenant)
    now = System().now()
    found: _Found | None = None
    try:
        found = look(store, lambda opened: _examine(opened, scope, rebuild, bar=not as_json))
        facts = _sqlite_facts(store)
        problems = [*_of_file(facts), *_of_runs(found, now)]
    except PsychError as error:
        facts, problems = {}, [str(error)]
    view = DoctorView(
        store=well_formed(shown(store)),
        facts=facts,
        workers=tuple(_line(one, now) for one in found.workers) if found else (),
        runs=RunCounts.model_validate(found.states) if found else None,
        rebuilt=rebuilt_line(found.verified) if found and found.verified is not None else None,
        problems=tuple(map(well_formed, problems)),
    )
    if as_json:
        print_view(view)
    else:
        _print(view, now)
    if problems:
        raise typer.Exit(1)


async def _examine(store: Store, scope: Scope, rebuild: bool, *, bar: bool) -> _Found:
    workers = await store.workers()
    states = dict.fromkeys(_STATES, 0)
    looked: list[str] = []
    cursor: str | None = None
    while True:
        page = await list_runs(store, scope=scope, cursor=cursor, limit=_PAGE)
        for header in page.headers:
            states[header.state] += 1
            if header.state != "settled" and len(looked) < _LOOKED_AT:
                looked.append(header.run_id)
        cursor = page.cursor
        if cursor is None:
            break
    unsettled = [await status(store, one, scope=scope) for one in looked]
    verified = await verify_each(store, scope, bar=bar) if rebuild else None
    return _Found(workers, states, unsettled, verified)


def _sqlite_facts(url: str) -> dict[str, str]:
    """Return what SQLite says of its file; nothing for another store."""
    path = sqlite_path(url)
    if path is None:
        return {}
    import sqlite3

    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
    try:
        [mode] = connection.execute("PRAGMA journal_mode").fetchone()
    except sqlite3.Error as error:
        raise UnsupportedStore(problem=f"{path}: {error}", remedy="check the file") from error
    finally:
        connection.close()
    return {"sqlite_version": sqlite3.sqlite_version, "journal_mode": str(mode)}


def _of_file(facts: Mapping[str, str]) -> Iterator[str]:
    mode = facts.get("journal_mode", "wal")
    if mode != "wal":
        yield f"journal mode is {mode}, not wal: another program changed it; a worker sets it back"


def _alive(worker: WorkerRow, now: datetime) -> bool:
    return not worker.dead and worker.lease_until >= now


def _of_runs(found: _Found, now: datetime) -> Iterator[str]:
    waiting = found.states["ready"] + found.states["running"]
    if waiting and not any(_alive(one, now) for one in found.workers):
        yield f"{_runs(waiting)} a worker and none is alive: start one"
    unsound = [one for one in found.verified or () if not one.consistent]
    told = {one.run_id for one in unsound}
    for one in found.unsettled:
        blocked = one.blocked_on
        if blocked is not None and not (blocked.code == "corrupt_log" and one.run_id in told):
            yield f"{one.run_id} is {one.lifecycle}: {blocked.message}"
    for view in unsound:
        for problem in view.problems:
            yield f"{view.run_id}: {problem_text(problem)}"


def _runs(count: int) -> str:
    return "1 run needs" if count == 1 else f"{count} runs need"


def _line(worker: WorkerRow, now: datetime) -> WorkerLine:
    return WorkerLine(
        id=worker.id,
        alive=_alive(worker, now),
        lease_until=worker.lease_until,
        build=worker.build,
        tools=worker.tools,
    )


def _print(view: DoctorView, now: datetime) -> None:
    out = console()
    out.print(f"store    {view.store}")
    for name, value in view.facts.items():
        out.print(f"         {name.replace('_', ' ')} {value}")
    if view.runs is not None:
        out.print(f"workers  {len(view.workers)}")
        rows = [
            (
                one.id,
                "alive" if one.alive else f"silent, lease over {ago(one.lease_until, now)}",
                one.build,
                ", ".join(one.tools) or "no tools",
            )
            for one in view.workers
        ]
        for line in columns(("", "", "", ""), rows):
            if line:
                out.print(f"         {line}")
        states = view.runs.model_dump().items()
        counts = ", ".join(f"{count} {state}" for state, count in states if count)
        out.print(f"runs     {counts or 'none'}")
    if view.rebuilt is not None:
        checked = view.rebuilt
        done = f"{count(checked.runs, 'header')} from {count(checked.records, 'record')}"
        out.print(f"rebuilt  {done}")
    for problem in view.problems:
        out.print(f"problem  {clean(problem)}", style="red")
    if not view.problems:
        out.print("all is well", style="green")
