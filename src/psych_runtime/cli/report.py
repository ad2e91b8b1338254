"""`psych report`: what happened in a Run and what it cost."""

from psych_runtime import _reads
from psych_runtime.cli._reading import Prefix, RunId, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._report_text import report_text
from psych_runtime.cli.output import AsJson, console, print_view

__all__ = ["report"]


def report(
    run_id: RunId,
    store: StoreUrl,
    tenant: Tenant = "local",
    prefix: Prefix = "",
    as_json: AsJson = False,
) -> None:
    """Say what happened in a Run, what it used and cost, and what nobody knows of it.

    With --json the document of the published schema `report.json`.
    """
    scope = scope_of(tenant)
    found = look(store, lambda opened: _reads.report(opened, run_id, scope=scope), prefix=prefix)
    if as_json:
        print_view(found)
        return
    out = console()
    for line in report_text(found):
        out.print(line, style="bold" if line[:1].isupper() else None)
