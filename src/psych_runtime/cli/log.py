"""`psych log`: the records of a Run as they are stored, also of one that is corrupt (LOG-3)."""

from datetime import datetime
from typing import Annotated, Final

import typer

from psych_runtime.cli._describe import describe
from psych_runtime.cli._reading import Prefix, RunId, StoreUrl, Tenant, look, scope_of
from psych_runtime.cli._text import brief, clean
from psych_runtime.cli.output import AsJson, fail
from psych_runtime.core.codec import Entry, decode, record_text
from psych_runtime.errors import LogError
from psych_runtime.ports.store import Store
from psych_schema.store import RecordRow
from psych_schema.view import UnreadableView

__all__ = ["log"]

_PAGE: Final = 500
_LINE: Final = "{:>6}  {:>10}  {:>5}  {:<18}  {}"
_BREAKS: Final = str.maketrans("\r\n", "  ")
"""JSON has line breaks only between its tokens, where a blank says the same."""


def log(
    run_id: RunId,
    store: StoreUrl,
    tenant: Tenant = "local",
    prefix: Prefix = "",
    after: Annotated[int, typer.Option("--after", min=0, help="Only records behind it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print a Run's records in order, each on a line: seq, seconds since admission, epoch, type.

    With --json each line is a record as it is stored, a document of the published schema
    `record.json`, for `psych_runtime.parse_record`. A row that this build cannot read has its
    place, too: a document of `unreadable.json`, whose `type` is `unreadable`; exit code 1 then.
    """
    tenant = scope_of(tenant).tenant
    broken: list[LogError] = []

    async def read(opened: Store) -> None:
        since: datetime | None = None
        if not as_json:
            since = (await opened.header(tenant, run_id)).created_at
            print(_LINE.format("SEQ", "SECONDS", "EPOCH", "TYPE", "WHAT").rstrip())
        seq = after
        while rows := await opened.read(tenant, run_id, after=seq, limit=_PAGE):
            for row in rows:
                found = _read(row)
                if isinstance(found, LogError):
                    broken.append(found)
                print(_json_line(row, found) if since is None else _line(row, found, since))
            seq = rows[-1].seq

    look(store, read, prefix=prefix)
    if broken:
        fail(str(broken[0]))


def _read(row: RecordRow) -> Entry | LogError:
    try:
        return decode(row)
    except LogError as error:
        return error


def _json_line(row: RecordRow, found: Entry | LogError) -> str:
    if not isinstance(found, LogError):
        return record_text(row).translate(_BREAKS)
    view = UnreadableView(
        run_id=row.run_id,
        seq=row.seq,
        stored_type=row.type,
        code=found.code,
        message=str(found),
        body=row.body,
        content=row.content,
    )
    return view.model_dump_json()


def _line(row: RecordRow, found: Entry | LogError, since: datetime) -> str:
    if isinstance(found, LogError):
        what = f"cannot be read: {brief(row.body)}"
        return _LINE.format(row.seq, "", "", clean(row.type), what)
    record = found.record
    passed = f"{(record.at - since).total_seconds():.3f}"
    line = _LINE.format(row.seq, passed, record.epoch, record.type, describe(record))
    return line.rstrip()
