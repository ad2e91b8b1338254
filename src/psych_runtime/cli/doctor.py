"""`psych doctor`: what keeps Runs of a store from going on."""

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import typer

from psych_runtime._reads import status
from psych_runtime._system import System
from psych_runtime.cli._listing import ENDED, Broken, each_header
from psych_runtime.cli._reading import Prefix, StoreUrl, Tenant, look, scope_of, shown, sqlite_path
from psych_runtime.cli._text import ago, clean, columns
from psych_runtime.cli._verifying import (
    count,
    problem_lines,
    problem_text,
    rebuilt_line,
    verify_each,
)
from psych_runtime.cli.output import AsJson, console, print_view, well_formed
from psych_runtime.errors import CorruptRow, PsychError, UnsupportedStore
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
_LOOKED_AT: Final = 50
"""Of so many unsettled Runs the status is read; the log of each is."""


class _Found(NamedTuple):
    """What the store said; `workers` is None when they could not be read."""

    workers: Sequence[WorkerRow] | None
    states: Mapping[str, int]
    unsettled: Sequence[StatusView]
    verified: Sequence[VerificationView] | None
    broken: Sequence[Broken]  # rows that cannot be read


def doctor(
    store: StoreUrl,
    tenant: Tenant = "local",
    prefix: Prefix = "",
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compare every Run's header with its whole log.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that a store can be used, that workers are alive, and that Runs can go on.

    With --rebuild the header of every Run is recomputed from its log, and each column that is
    not what the log makes it is named, as is each log that is not what was written. It finds and
    changes nothing: a log is never repaired. Where a header is wrong, the log is right; of the
    columns `referenced` and `capped` it says nothing, since other Runs and the tenant's cap decide
    them. A Run that is gone with its header is not missed: that takes a list of ids that you kept.

    Exit code 1 when a problem was found; with --rebuild, 2 when the store could not be opened or
    read, so that nothing was compared. Of the Runs, a tenant's are looked at. With --json the
    document of the published schema `doctor.json`.
    """
    scope = scope_of(tenant)
    now = System().now()
    found: _Found | None = None
    try:
        found = look(
            store,
            lambda opened: _examine(opened, scope, rebuild, bar=not as_json),
            prefix=prefix,
        )
        facts = _sqlite_facts(store)
        problems = [*_of_file(facts), *_of_runs(found, now, each=as_json)]
    except PsychError as error:
        facts, problems = {}, [str(error)]
    view = DoctorView(
        store=well_formed(shown(store)),
        facts=facts,
        workers=tuple(_line(one, now) for one in found.workers or ()) if found else (),
        runs=RunCounts.model_validate(found.states) if found else None,
        rebuilt=rebuilt_line(found.verified) if found and found.verified is not None else None,
        problems=tuple(map(well_formed, problems)),
    )
    if as_json:
        print_view(view)
    else:
        _print(view, now)
    if problems:
        raise typer.Exit(2 if rebuild and found is None else 1)


async def _examine(store: Store, scope: Scope, rebuild: bool, *, bar: bool) -> _Found:
    broken: list[Broken] = []
    try:
        workers = await store.workers()
    except CorruptRow as error:
        broken.append(Broken(error))
        workers = None
    states = dict.fromkeys(_STATES, 0)
    looked: list[str] = []
    async for header in each_header(store, scope):
        if isinstance(header, Broken):
            broken.append(header)
            continue
        states[header.state] += 1
        if header.state != "settled" and len(looked) < _LOOKED_AT:
            looked.append(header.run_id)
    unsettled: list[StatusView] = []
    for run_id in looked:
        try:
            unsettled.append(await status(store, run_id, scope=scope))
        except CorruptRow as error:
            broken.append(Broken(error))
    verified = await verify_each(store, scope, bar=bar) if rebuild else None
    return _Found(workers, states, unsettled, verified, broken)


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


def _of_runs(found: _Found, now: datetime, *, each: bool) -> Iterator[str]:
    """Yield what is wrong; `each` gives the same problem of many records one by one."""
    waiting = found.states["ready"] + found.states["running"]
    if waiting and found.workers is not None and not any(_alive(w, now) for w in found.workers):
        yield f"{_runs(waiting)} a worker and none is alive: start one"
    unsound = [one for one in found.verified or () if not one.consistent]
    told = {one.run_id for one in unsound}
    yield from _of_rows(found.broken, told)
    for one in found.unsettled:
        blocked = one.blocked_on
        if blocked is not None and not (blocked.code == "corrupt_log" and one.run_id in told):
            yield f"{one.run_id} is {one.lifecycle}: {blocked.message}"
    for view in unsound:
        lines = map(problem_text, view.problems) if each else problem_lines(view.problems)
        for line in lines:
            yield f"{view.run_id}: {line}"


def _of_rows(broken: Sequence[Broken], told: Set[str]) -> Iterator[str]:
    """Yield each row that cannot be read, once; those of Runs in `told` are told elsewhere."""
    rows = {str(one.error): one for one in reversed(broken)}
    for text, one in reversed(rows.items()):
        key = one.error.key.partition(" ")[0]  # of a record: run_id and seq
        if one.error.table in ("run", "record") and key in told:
            continue
        yield text
        if one.error.table == "run" and one.ended:
            yield f"{key}: {ENDED}"


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
