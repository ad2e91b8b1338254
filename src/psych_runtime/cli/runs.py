"""`psych runs`: a tenant's Runs, newest first."""

import sys
from typing import Annotated

import typer

from psych_runtime._reads import list_runs
from psych_runtime._system import System
from psych_runtime.cli._reading import Prefix, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._text import ago, columns
from psych_runtime.cli.output import AsJson, console, print_view
from psych_runtime.ports.store import Page
from psych_schema.common import RunPhase
from psych_schema.record import ThreadRef
from psych_schema.store import RunRow
from psych_schema.view import RunLine, RunsView

__all__ = ["runs"]

_HEAD = ("RUN", "STATE", "RECORDS", "CRASHES", "CREATED", "LAST RECORD", "VERSION", "WORKER")


def runs(
    store: StoreUrl,
    tenant: Tenant = "local",
    prefix: Prefix = "",
    state: Annotated[RunPhase | None, typer.Option("--state", help="Only Runs in it.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where to go on.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a tenant's Runs, newest first.

    When there are more, standard error says with which --cursor the next page begins. With --json
    the document of the published schema `runs.json`, which has the cursor.
    """
    scope = scope_of(tenant)
    page = look(
        store,
        lambda s: list_runs(s, scope=scope, state=state, limit=limit, cursor=cursor),
        prefix=prefix,
    )
    if as_json:
        lines = tuple(_line(header) for header in page.headers)
        print_view(RunsView(runs=lines, cursor=page.cursor))
        return
    _print(page, tenant)
    if page.cursor is not None:
        print(f"there are more: --cursor {page.cursor}", file=sys.stderr)


def _line(header: RunRow) -> RunLine:
    return RunLine(
        tenant=header.tenant,
        run_id=header.run_id,
        version=header.version,
        state=header.state,
        abort=header.abort,
        head=header.head,
        head_hash=header.head_hash,
        head_at=header.head_at,
        worker=header.worker,
        epoch=header.epoch,
        crashes=header.crashes,
        priority=header.priority,
        thread=ThreadRef(id=header.thread, position=header.position, previous=header.previous),
        parent=header.parent,
        root=header.root,
        created_at=header.created_at,
        wake_at=header.wake_at,
        deadline_at=header.deadline_at,
        remaining_seconds=header.remaining_seconds,
    )


def _print(page: Page, tenant: str) -> None:
    if not page.headers:
        print(f"no runs of tenant {tenant!r}")
        return
    now = System().now()
    rows = [
        (
            one.run_id,
            f"{one.state}, abort {one.abort}" if one.abort else one.state,
            str(one.head),
            str(one.crashes),
            ago(one.created_at, now),
            ago(one.head_at, now),
            one.version[:12],
            one.worker or "-",
        )
        for one in page.headers
    ]
    out = console()
    for line in columns(_HEAD, rows, right=(2, 3)):
        out.print(line)
