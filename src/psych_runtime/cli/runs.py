"""`psych runs`: a tenant's Runs, newest first."""

import sys
from typing import Annotated

import typer
from pydantic import TypeAdapter

from psych_runtime._reads import list_runs
from psych_runtime._system import System
from psych_runtime.cli._reading import AsJson, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._text import ago, columns
from psych_runtime.cli.output import console
from psych_runtime.ports.store import Page
from psych_schema.common import RunPhase
from psych_schema.store import RunRow

__all__ = ["runs"]

_HEAD = ("RUN", "STATE", "RECORDS", "CRASHES", "CREATED", "LAST RECORD", "VERSION", "WORKER")


def runs(
    store: StoreUrl,
    tenant: Tenant = "local",
    state: Annotated[RunPhase | None, typer.Option("--state", help="Only Runs in it.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where to go on.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a tenant's Runs, newest first.

    With --json an array of their headers. When there are more, standard error says with which
    --cursor the next page begins.
    """
    scope = scope_of(tenant)
    page = look(store, lambda s: list_runs(s, scope=scope, state=state, limit=limit, cursor=cursor))
    if as_json:
        rows: TypeAdapter[tuple[RunRow, ...]] = TypeAdapter(tuple[RunRow, ...])
        print(rows.dump_json(page.headers, indent=2).decode())
    else:
        _print(page, tenant)
    if page.cursor is not None:
        print(f"there are more: --cursor {page.cursor}", file=sys.stderr)


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
