"""Rows, records and units for checks: legal to store, whatever they would mean to a fold."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.core.codec import Position, seal
from psych_runtime.ports.answers import Committed
from psych_runtime.ports.checks import same
from psych_runtime.ports.store import Admit, Change, HeaderChange, Sealed, Store, Unit
from psych_schema.record import AdvisoryAdded, Record
from psych_schema.store import KeyRow, RunRow

__all__ = [
    "START",
    "TENANT",
    "Text",
    "admission",
    "admit",
    "change",
    "claim",
    "claimed",
    "enlisted",
    "header",
    "key_row",
    "named",
    "new_id",
    "now_of",
    "sealed",
    "unit",
    "write",
]

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When records of a check happen, unless it says otherwise."""

TENANT: Final = "acme"

_SYSTEM: Final = System()
_PLAIN: Final = HeaderChange()
_NO_HASHES: Final[Mapping[str, str]] = {}


class Text(NamedTuple):
    """What a record's row holds besides its place; None of body is the record's own JSON."""

    body: str | None = None
    content: str | None = None
    salt: str | None = None


_NO_TEXT: Final = Text()


def new_id(prefix: str = "run") -> str:
    """Return a new id."""
    return _SYSTEM.new_id(prefix)


def sealed(
    run_id: str,
    seq: int,
    *,
    tenant: str = TENANT,
    commit_id: str | None = None,
    epoch: int = 0,
    v: int = 1,
    at: datetime = START,
    text: Text = _NO_TEXT,
) -> Sealed:
    """Return a record at its place, as the codec seals it unless `text` has another body."""
    draft = AdvisoryAdded(
        v=v, run_id=run_id, at=at, id=new_id("rec"), advisory_id=new_id("adv"), code="contract"
    )
    commit_id = new_id("com") if commit_id is None else commit_id
    made = _seal(draft, Position(seq - 1), tenant, epoch, commit_id)
    row = made.row.model_copy(update={"content": text.content, "salt": text.salt})
    if text.body is None:
        return made._replace(row=row)
    row = row.model_copy(update={"body": text.body})
    hash = hashlib.sha256(text.body.encode("utf-8", "replace")).hexdigest()
    return Sealed(row, made.record, hash)


def _seal(draft: Record, head: Position, tenant: str, epoch: int, commit_id: str) -> Sealed:
    [made] = seal(
        [draft], head, tenant=tenant, epoch=epoch, commit_id=commit_id, salts=[_SYSTEM.salt()]
    )
    return made


def header(run_id: str, *, records: Sequence[Sealed], tenant: str = TENANT) -> RunRow:
    """Return the header of a Run that is admitted with `records`."""
    last = records[-1]
    return RunRow(
        tenant=tenant,
        run_id=run_id,
        version="0" * 64,
        state="ready",
        head=last.row.seq,
        head_hash=last.hash,
        head_at=last.record.at,
        epoch=0,
        crashes=0,
        priority=0,
        schema_version=max(each.record.v for each in records),
        thread=run_id,
        position=1,
        root=run_id,
        created_at=last.record.at,
    )


def admit(
    run_id: str | None = None,
    *,
    tenant: str = TENANT,
    deadline_seconds: float | None = None,
    columns: dict[str, object] | None = None,
) -> Admit:
    """Return an admission; `columns` are set in its header."""
    run_id = run_id or new_id()
    records = (sealed(run_id, 1, tenant=tenant),)
    row = header(run_id, records=records, tenant=tenant)
    return Admit(row.model_copy(update=columns or {}), records, deadline_seconds)


def change(
    run_id: str,
    head: int,
    *,
    fence: int | None = None,
    edit: HeaderChange = _PLAIN,
    count: int = 1,
    tenant: str = TENANT,
    commit_id: str | None = None,
) -> Change:
    """Return a change of `count` records behind `head`."""
    records = tuple(
        sealed(run_id, head + offset, tenant=tenant, epoch=fence or 0, commit_id=commit_id)
        for offset in range(1, count + 1)
    )
    return Change(run_id, head, fence, records, edit)


def unit(*changes: Change | Admit, tenant: str = TENANT, keys: Sequence[KeyRow] = ()) -> Unit:
    """Return a unit with a commit id of its own."""
    return Unit(new_id("com"), tenant, changes, tuple(keys))


def named(made: Unit, hashes: Mapping[str, str] = _NO_HASHES) -> Unit:
    """Return `made` with its commit id in its records, which are chained as a writer does.

    `hashes` has the head's hash of each Run that is continued; without one the chain begins anew.
    """
    changes: list[Change | Admit] = []
    for change in made.changes:
        records: list[Sealed] = []
        prev = hashes.get(change.run_id)
        for each in change.records:
            head = Position(each.row.seq - 1, prev)
            again = _seal(each.record, head, made.tenant, each.record.epoch, made.commit_id)
            row = each.row.model_copy(update={"body": again.row.body})
            records.append(again._replace(row=row))
            prev = again.hash
        if isinstance(change, Admit):
            header = change.header.model_copy(update={"head_hash": prev})
            changes.append(change._replace(header=header, records=tuple(records)))
        else:
            changes.append(change._replace(records=tuple(records)))
    return made._replace(changes=tuple(changes))


def key_row(
    key: str, *, run_id: str = "", tenant: str = TENANT, digest: str = "d", receipt: str = "{}"
) -> KeyRow:
    """Return a key's row."""
    return KeyRow(tenant=tenant, run_id=run_id, key=key, digest=digest, receipt=receipt)


async def write(store: Store, *units: Unit) -> None:
    """Commit units, each of which must be committed."""
    same(await store.commit(units), [Committed()] * len(units), "the answers of a plain commit")


async def admission(
    store: Store,
    *,
    tenant: str = TENANT,
    deadline_seconds: float | None = None,
    columns: dict[str, object] | None = None,
) -> str:
    """Admit a Run; return its id."""
    admitted = admit(tenant=tenant, deadline_seconds=deadline_seconds, columns=columns)
    await write(store, unit(admitted, tenant=tenant))
    return admitted.run_id


def claim(row: RunRow, worker: str) -> Unit:
    """Return the unit by which `worker` takes a Run as it was seen."""
    edit = HeaderChange(state="running", worker=worker, epoch=row.epoch + 1)
    changed = change(row.run_id, row.head, fence=row.epoch, edit=edit, tenant=row.tenant)
    return unit(changed, tenant=row.tenant)


async def claimed(store: Store, worker: str, *, tenant: str = TENANT) -> str:
    """Admit a Run that `worker` holds under epoch 1 and head 2; return its id."""
    run_id = await admission(store, tenant=tenant)
    await write(store, claim(await store.header(tenant, run_id), worker))
    return run_id


async def enlisted(store: Store, *, lease_seconds: float = 100.0) -> str:
    """Enlist a new worker; return its id."""
    worker = new_id("wrk")
    await store.enlist(worker, lease_seconds=lease_seconds, build="contract", tools=())
    return worker


async def now_of(store: Store) -> datetime:
    """Return the store's clock."""
    return (await store.ready(1)).now
