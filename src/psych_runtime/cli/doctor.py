"""`psych doctor`: what keeps Runs of a store from going on."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import typer
from pydantic import JsonValue

from psych_runtime._reads import list_runs, status
from psych_runtime._system import System
from psych_runtime.cli._reading import AsJson, StoreUrl, Tenant, look, scope_of, shown, sqlite_path
from psych_runtime.cli._text import ago, clean, columns
from psych_runtime.cli.output import console, print_json
from psych_runtime.errors import PsychError, UnsupportedStore
from psych_runtime.ports.store import Store
from psych_schema.base import format_instant
from psych_schema.common import Scope
from psych_schema.store import WorkerRow
from psych_schema.view import StatusView

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


def doctor(store: StoreUrl, tenant: Tenant = "local", as_json: AsJson = False) -> None:
    """Check that a store can be used, that workers are alive, and that Runs can go on.

    Exit code 1 when a problem was found. Of the Runs, a tenant's are looked at.
    """
    scope = scope_of(tenant)
    now = System().now()
    found: _Found | None = None
    try:
        found = look(store, lambda opened: _examine(opened, scope))
        facts = _sqlite_facts(store)
        problems = [*_of_file(facts), *_of_runs(found, now)]
    except PsychError as error:
        facts, problems = {}, [str(error)]
    if as_json:
        print_json(_as_json(store, facts, found, problems, now))
    else:
        _print(store, facts, found, problems, now)
    if problems:
        raise typer.Exit(1)


async def _examine(store: Store, scope: Scope) -> _Found:
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
    return _Found(workers, states, [await status(store, one, scope=scope) for one in looked])


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
    for one in found.unsettled:
        if one.blocked_on is not None:
            yield f"{one.run_id} is {one.lifecycle}: {one.blocked_on.message}"


def _runs(count: int) -> str:
    return "1 run needs" if count == 1 else f"{count} runs need"


def _as_json(
    url: str,
    facts: Mapping[str, str],
    found: _Found | None,
    problems: Sequence[str],
    now: datetime,
) -> JsonValue:
    workers: list[JsonValue] = [
        {
            "id": one.id,
            "alive": _alive(one, now),
            "lease_until": format_instant(one.lease_until),
            "build": one.build,
            "tools": list(one.tools),
        }
        for one in (found.workers if found else ())
    ]
    return {
        "store": shown(url),
        "facts": dict(facts),
        "workers": workers,
        "runs": dict(found.states) if found else None,
        "problems": list(problems),
    }


def _print(
    url: str,
    facts: Mapping[str, str],
    found: _Found | None,
    problems: Sequence[str],
    now: datetime,
) -> None:
    out = console()
    out.print(f"store    {shown(url)}")
    for name, value in facts.items():
        out.print(f"         {name.replace('_', ' ')} {value}")
    if found is not None:
        out.print(f"workers  {len(found.workers)}")
        rows = [
            (
                one.id,
                "alive" if _alive(one, now) else f"silent, lease over {ago(one.lease_until, now)}",
                one.build,
                ", ".join(one.tools) or "no tools",
            )
            for one in found.workers
        ]
        for line in columns(("", "", "", ""), rows):
            if line:
                out.print(f"         {line}")
        counts = ", ".join(f"{count} {state}" for state, count in found.states.items() if count)
        out.print(f"runs     {counts or 'none'}")
    for problem in problems:
        out.print(f"problem  {clean(problem)}", style="red")
    if not problems:
        out.print("all is well", style="green")
