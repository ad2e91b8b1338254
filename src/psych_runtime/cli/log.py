"""`psych log`: the records of a Run as they are stored, also of one that is corrupt (LOG-3)."""

from datetime import datetime
from typing import Annotated, Final

import typer

from psych_runtime.cli._describe import describe
from psych_runtime.cli._reading import AsJson, RunId, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._text import brief
from psych_runtime.cli.output import console, fail
from psych_runtime.core.codec import Entry, decode, record_text
from psych_runtime.errors import LogError
from psych_runtime.ports.store import Store
from psych_schema.store import RecordRow

__all__ = ["log"]

_PAGE: Final = 500
_LINE: Final = "{:>6}  {:>10}  {:>5}  {:<18}  {}"


def log(
    run_id: RunId,
    store: StoreUrl,
    tenant: Tenant = "local",
    after: Annotated[int, typer.Option("--after", min=0, help="Only records behind it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print a Run's records in order, each on a line: seq, seconds since admission, epoch, type.

    With --json each line is a record as it is stored, for `psych_runtime.parse_record`. Records
    that cannot be read are shown, too; exit code 1 then.
    """
    tenant = scope_of(tenant).tenant
    broken: list[LogError] = []
    out = console()

    async def read(opened: Store) -> None:
        since: datetime | None = None
        if not as_json:
            since = (await opened.header(tenant, run_id)).created_at
            out.print(_LINE.format("SEQ", "SECONDS", "EPOCH", "TYPE", "WHAT").rstrip())
        seq = after
        while rows := await opened.read(tenant, run_id, after=seq, limit=_PAGE):
            for row in rows:
                try:
                    entry = decode(row)
                except LogError as error:
                    broken.append(error)
                    entry = None
                if since is None:
                    print(record_text(row))
                else:
                    out.print(_line(row, entry, since))
            seq = rows[-1].seq

    look(store, read)
    if broken:
        fail(str(broken[0]))


def _line(row: RecordRow, entry: Entry | None, since: datetime) -> str:
    if entry is None:
        return _LINE.format(row.seq, "", "", row.type, f"cannot be read: {brief(row.body)}")
    record = entry.record
    passed = f"{(record.at - since).total_seconds():.3f}"
    line = _LINE.format(row.seq, passed, record.epoch, record.type, describe(record))
    return line.rstrip()
