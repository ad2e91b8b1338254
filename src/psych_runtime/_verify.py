"""Verification of stored logs: the whole of one Run, page by page (LOG-6, R-11)."""

from collections.abc import Callable
from typing import Final

from psych_runtime._arguments import check_head, check_page
from psych_runtime.ports.store import Store
from psych_runtime.views import Verification
from psych_schema.common import Scope
from psych_schema.view import VerificationView

__all__ = ["verify", "verify_pages"]

_PAGE: Final = 500


async def verify(
    store: Store, run_id: str, *, scope: Scope, expected_head: str | None = None
) -> VerificationView:
    """Say whether the Run's log is what was written, and its header what the log says.

    Reads every record: that none is missing, that each names the one before it, that contents
    are those that were written (or erased), that the protocol could have produced them, and that
    each column of the header is what they make it. Nothing is repaired.

    That shows that a log fits together. Who can write to the database can make another one that
    does, too, or cut one off: what proves that yours is neither is a head hash that you kept
    outside of it: that of a Receipt, a report, or an earlier verification.

    Args:
        expected_head: the head hash that you kept. `proven` says whether the log up to the
            record with this hash is what it was then; None proves nothing.

    Raises:
        InvalidArgument: `expected_head` is no hash.
        RunNotFound: not in this tenant.
    """
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
    header = await store.header(tenant, run_id)
    while True:
        rows = await store.read(tenant, run_id, after=found.seq, limit=_PAGE)
        for row in rows:
            found.take(row)
        if done is not None:
            done(len(rows))
        if found.given_up:
            break
        if len(rows) == _PAGE:
            continue
        header = await store.header(tenant, run_id)  # behind the rows, which may have grown
        if header.head <= found.seq or not rows:
            break
    return found.view(header)
