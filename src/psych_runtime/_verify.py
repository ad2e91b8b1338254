"""Verification of stored logs: the whole of one Run, page by page (LOG-6, R-11)."""

from collections.abc import Callable
from typing import Final

from psych_runtime._arguments import check_head, check_page
from psych_runtime.errors import CorruptRow
from psych_runtime.ports.store import Store
from psych_runtime.runtime.requests import check_store
from psych_runtime.views import Verification
from psych_runtime.views._named_texts import NamedText
from psych_schema.common import Scope
from psych_schema.store import RecordRow, RunRow
from psych_schema.view import VerificationView

__all__ = ["verify", "verify_pages"]

_PAGE: Final = 500


async def verify(
    store: Store, run_id: str, *, scope: Scope, expected_head: str | None = None
) -> VerificationView:
    """Say whether the Run's log is what was written, and its header what the log says.

    Reads every record: that none is missing, that each names the one before it, that contents
    are those that were written (or erased, which a record must say), that the protocol could have
    produced them, that the Version and each document that they name are in the store as they
    were, and that each column of the header is what the log makes it: all but `referenced` and
    `capped`, which other Runs and the tenant's cap decide. Nothing is repaired.

    That shows that a log fits together. Who can write to the database can make another one that
    does, too, or cut one off: what proves that yours is neither is a head hash that you kept
    outside of it: that of a Receipt, a report, or an earlier verification. A Run whose header is
    gone is not found: that it was there, only a list of ids that you kept tells.

    Args:
        expected_head: the head hash that you kept. `proven` says whether the log up to the
            record with this hash is what it was then; None proves nothing.

    Raises:
        InvalidArgument: `expected_head` is no hash.
        RunNotFound: not in this tenant.
    """
    check_store(store)
    check_page(run_id, scope)
    check_head(expected_head)
    return await verify_pages(store, run_id, scope=scope, expected_head=expected_head)


async def verify_pages(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    expected_head: str | None = None,
    done: Callable[[int], None] | None = None,
) -> VerificationView:
    """Do what `verify` says; `done` is told how many records each page had."""
    tenant = scope.tenant
    found = Verification(expected_head=expected_head)
    header = await _header(store, tenant, run_id)
    while True:
        rows, more = await _page(store, tenant, run_id, found)
        for row in rows:
            found.take(row)
        for named in found.unasked():
            found.judge(named, await _text(store, tenant, named))
        if done is not None:
            done(len(rows))
        if found.given_up:
            break
        if more:
            continue
        header = await _header(store, tenant, run_id)  # behind the rows, which may have grown
        if isinstance(header, CorruptRow) or header.head <= found.seq or not rows:
            break
    return found.view(run_id, header)


async def _page(
    store: Store, tenant: str, run_id: str, found: Verification
) -> tuple[list[RecordRow], bool]:
    """Return the next rows, and whether there may be more; what cannot be read is passed over."""
    limit = _PAGE
    while not found.given_up:
        try:
            rows = await store.read(tenant, run_id, after=found.seq, limit=limit)
        except CorruptRow as error:
            if limit == 1:
                found.skip(error)
            limit = max(1, limit // 2)  # up to the row in front of it
        else:
            return rows, limit < _PAGE or len(rows) == limit
    return [], False


async def _text(store: Store, tenant: str, named: NamedText) -> str | None:
    """Return a text; "" for one that cannot be read, which has no such hash either."""
    get = store.version if named.kind == "version" else store.document
    try:
        return await get(tenant, named.hash)
    except CorruptRow:
        return ""


async def _header(store: Store, tenant: str, run_id: str) -> RunRow | CorruptRow:
    """Return the header, or why it cannot be read."""
    try:
        return await store.header(tenant, run_id)
    except CorruptRow as error:
        return error
