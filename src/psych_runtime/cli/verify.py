"""`psych verify`: whether logs are what was written, and headers what the logs say (LOG-6)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from psych_runtime._arguments import check_head
from psych_runtime._verify import verify_pages
from psych_runtime.cli._progress import progress
from psych_runtime.cli._reading import Prefix, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._text import clean
from psych_runtime.cli._verifying import (
    checking,
    count,
    erased_words,
    problem_lines,
    verify_each,
)
from psych_runtime.cli.output import AsJson, console, print_view, well_formed
from psych_runtime.errors import CorruptRow, InvalidArgument
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.view import VerificationView

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["verify"]


def _run_id(text: str | None) -> str | None:
    if text is not None and well_formed(text) != text:
        raise typer.BadParameter("is not Unicode")
    return text


def _hash(text: str | None) -> str | None:
    try:
        check_head(text)
    except InvalidArgument as error:
        raise typer.BadParameter(error.problem) from None
    return text


def verify(
    store: StoreUrl,
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_ID",
            callback=_run_id,
            show_default=False,
            help="A Run; without one, every Run of the tenant.",
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="HASH", callback=_hash, help="A head hash that you kept."),
    ] = None,
    tenant: Tenant = "local",
    prefix: Prefix = "",
    as_json: AsJson = False,
) -> None:
    """Read whole logs: is each what was written, and does its header say what the log says?

    With --head also: is the log, up to the record with this hash, what it was when you were told
    the hash? Receipts, reports and this command tell it; keep it elsewhere. Without it a log that
    was cut off, or written anew by somebody with access to the database, is found consistent,
    and a Run that is gone with its header is not missed: keep the ids of yours, too.

    Every column of a header is compared but `referenced` and `capped`, which other Runs and the
    tenant's cap decide. The Version and the documents that a log names must be in the store, and
    be what they were.

    Exit code 1 when something does not fit, or is not proven; nothing is repaired. Exit code 2
    when it could not be checked: wrong usage, no such Run, a store that cannot be opened or read.
    With --json each Run is a document of the published schema `verification.json`, on a line of
    its own.
    """
    scope = scope_of(tenant)
    if run_id is None:
        if head is not None:
            raise typer.BadParameter("is the hash of one Run: name the Run", param_hint="--head")
        sound = _all(store, prefix, scope, as_json)
    else:
        with checking():
            view = look(
                store,
                lambda opened: _one(opened, run_id, scope, head, bar=not as_json),
                prefix=prefix,
            )
        sound = view.consistent and view.proven is not False
        if as_json:
            print_view(view, indent=None)
        else:
            _print_one(view)
    if not sound:
        raise typer.Exit(1)


async def _one(
    store: Store, run_id: str, scope: Scope, head: str | None, *, bar: bool
) -> VerificationView:
    try:
        records = (await store.header(scope.tenant, run_id)).head
    except CorruptRow:  # which the verdict says
        records = 0
    with progress("records", records, shown=bar) as done:
        return await verify_pages(store, run_id, scope=scope, expected_head=head, done=done)


def _all(url: str, prefix: str, scope: Scope, as_json: bool) -> bool:
    """Verify every Run and print; tell whether all are consistent."""
    tell = _print_line if as_json else None
    with checking():
        views = look(
            url,
            lambda store: verify_each(store, scope, bar=not as_json, tell=tell),
            prefix=prefix,
        )
    if not as_json:
        _print_all(views, scope)
    return all(view.consistent for view in views)


def _print_all(views: Sequence[VerificationView], scope: Scope) -> None:
    out = console()
    if not views:
        out.print(f"no runs of tenant {scope.tenant!r} in this store")
        return
    wrong = [view for view in views if not view.consistent]
    for view in wrong:
        out.print(clean(view.run_id))
        _print_problems(out, view)
    records = sum(view.records for view in views)
    erased = erased_words(sum(view.erased for view in views))
    counts = f"{count(len(views), 'run')}, {count(records, 'record')}"
    if wrong:
        out.print(f"{counts}: {len(wrong)} not consistent{erased}", style="bold red")
    else:
        out.print(f"{counts}: consistent{erased}", style="green")


def _print_line(view: VerificationView) -> None:
    print_view(view, indent=None)


def _print_one(view: VerificationView) -> None:
    out = console()
    out.print(f"run      {clean(view.run_id)}")
    out.print(f"records  {view.records}")
    out.print(f"head     {view.head_hash or '-'}")
    if view.proven is not None:
        out.print(f"proven   {_proof(view)}", style="green" if view.proven else "red")
    _print_problems(out, view)
    erased = erased_words(view.erased)
    if not view.consistent:
        out.print(f"not consistent{erased}", style="bold red")
    elif view.proven is False:
        out.print(f"consistent, but not what it was{erased}", style="bold red")
    else:
        out.print(f"consistent{erased}", style="green")


def _proof(view: VerificationView) -> str:
    if view.expected_seq is None:
        return "no: no record of this log has that hash"
    if not view.proven:
        return f"no: seq {view.expected_seq} has that hash, what is before it was changed"
    return f"up to seq {view.expected_seq}"


def _print_problems(out: "Console", view: VerificationView) -> None:
    for line in problem_lines(view.problems):
        out.print(f"problem  {clean(line)}", style="red")
