"""Erasing what was said in a Run: facts, totals and the chain of its log stay (R-11, ST-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from psych_runtime._arguments import check_page, check_text
from psych_runtime._kin import followers, known
from psych_runtime._shown import is_erased
from psych_runtime._system import System, ambient_system
from psych_runtime.errors import InvalidArgument, RunNotSettled
from psych_runtime.ports.blob import BlobStore
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, write_outside
from psych_runtime.runtime.requests import check_actor, check_blob, check_store
from psych_schema.common import Scope
from psych_schema.record import Record, RunErased
from psych_schema.store import RunRow

__all__ = ["Erasure", "RemainingCopy", "erase"]


@dataclass(frozen=True, slots=True)
class RemainingCopy:
    """A Run that may hold what was said in an erased one.

    A successor in its thread went on with its conversation; the parent was given its result.
    """

    run_id: str
    kind: Literal["successor", "parent"]


@dataclass(frozen=True, slots=True)
class Erasure:
    """Whose contents are gone (`dry_run`: would be), and where copies of them are left."""

    run_ids: tuple[str, ...]
    copies: tuple[RemainingCopy, ...]


class _Moved(Exception):
    """The log has grown since it was looked at."""


async def erase(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    by: str,
    reason: str | None = None,
    dry_run: bool = False,
    cascade: bool = False,
    blob: BlobStore | None = None,
    system: System | None = None,
) -> Erasure:
    """Take away for good what people, models and tools said in a settled Run (R-11).

    First `run.erased` is appended, from when on readers give no content; then contents go, and
    the Run's blobs when `blob` is given. When it returns they are gone; repeat it after any
    error: it goes on where it stopped. What backups and the database's own files keep is not
    reached: see the guide on operations.

    Args:
        by: who asked for it; stays in the log, as `reason` does. Name no content there.
        dry_run: say what would be erased and where copies would be left; write nothing.
        cascade: erase the Runs that follow in the thread as well.

    Raises:
        RunNotSettled: the Run, or the one that goes on with its thread, has not settled.
        RunNotFound: not in this tenant.
        InvalidArgument, InvalidPayload, PayloadTooLarge: an argument; nothing was written.
        StoreUnavailable, BlobUnavailable: repeat it.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_blob(blob, "delete")
    check_page(run_id, scope)
    _check_said(by, reason)
    tenant = scope.tenant
    header = await store.header(tenant, run_id)
    behind = await followers(store, header)
    _check_settled(header, behind, cascade=cascade)
    erased = (header, *behind) if cascade else (header,)
    copies = () if cascade else tuple(RemainingCopy(row.run_id, "successor") for row in behind)
    found = Erasure(tuple(row.run_id for row in erased), (*copies, *await _parents(store, erased)))
    if not dry_run:
        for one in found.run_ids:
            await _say(store, tenant, one, by, reason, system)
        for one in found.run_ids:
            await _take_away(store, tenant, one, blob)
    return found


def _check_said(by: object, reason: str | None) -> None:
    if by is None:
        raise InvalidArgument(what="by", problem="say who erases: a name of 1 to 256 characters")
    check_actor(by)
    check_text(reason, what="reason", problem="say why in a text")


def _check_settled(header: RunRow, behind: list[RunRow], *, cascade: bool) -> None:
    """Raise RunNotSettled for a Run that must have ended and has not.

    A corrupt follower ended, too; only it cannot be erased itself.
    """
    rests = ("settled",) if cascade else ("settled", "corrupt")
    if header.state != "settled":
        raise RunNotSettled(run_id=header.run_id, state=header.state)
    for row in behind:
        if row.state not in rests:
            raise RunNotSettled(run_id=row.run_id, state=row.state, follows=header.run_id)


async def _parents(store: Store, erased: tuple[RunRow, ...]) -> list[RemainingCopy]:
    names = dict.fromkeys(row.parent for row in erased)
    rows = [await known(store, erased[0].tenant, name) for name in names]
    return [RemainingCopy(row.run_id, "parent") for row in rows if row is not None]


async def _say(
    store: Store, tenant: str, run_id: str, by: str, reason: str | None, system: System
) -> None:
    """Append `run.erased`, once, whoever else does it at the same time."""
    while True:
        seen = await store.header(tenant, run_id)
        if await is_erased(store, seen):
            return

        async def make(header: RunRow, seen: RunRow = seen) -> Sequence[Record]:
            if header.head != seen.head:
                raise _Moved
            erased = RunErased(
                run_id=run_id, id=system.new_id("rec"), at=system.now(), by=by, reason=reason
            )
            return (erased,)

        try:
            await write_outside(store, Request(tenant, run_id, None, ""), make, system=system)
        except _Moved:
            continue


async def _take_away(store: Store, tenant: str, run_id: str, blob: BlobStore | None) -> None:
    over = False
    while not over:
        over = await store.blank(tenant, run_id)
    if blob is not None:
        await blob.delete(tenant, run_id)
