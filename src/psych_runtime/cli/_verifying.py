"""Verification of all Runs of a tenant, and its words for people (LOG-6)."""

from collections.abc import Callable, Sequence

from psych_runtime._reads import list_runs
from psych_runtime._verify import verify_pages
from psych_runtime.cli._progress import progress
from psych_runtime.errors import RunNotFound
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.view import AlteredColumn, RebuiltLine, VerificationProblem, VerificationView

__all__ = ["count", "problem_text", "rebuilt_line", "verify_each"]

_PAGE = 500


async def verify_each(
    store: Store,
    scope: Scope,
    *,
    bar: bool,
    tell: Callable[[VerificationView], None] | None = None,
) -> list[VerificationView]:
    """Verify every Run that the tenant has now, newest first; `tell` is told each verdict.

    `bar` allows a progress bar.
    """
    runs: list[str] = []
    records = 0
    cursor: str | None = None
    while True:
        page = await list_runs(store, scope=scope, cursor=cursor, limit=_PAGE)
        runs += [header.run_id for header in page.headers]
        records += sum(header.head for header in page.headers)
        cursor = page.cursor
        if cursor is None:
            break
    found: list[VerificationView] = []
    with progress("records", records, shown=bar) as done:
        for run_id in runs:
            try:
                view = await verify_pages(store, run_id, scope=scope, done=done)
            except RunNotFound:  # purged meanwhile
                continue
            found.append(view)
            if tell is not None:
                tell(view)
    return found


def count(number: int, what: str) -> str:
    """Return how many of what there are, in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def problem_text(problem: VerificationProblem) -> str:
    """Return one problem on one line."""
    if problem.seq is not None:
        return f"{problem.code} at seq {problem.seq}: {problem.message}"
    return f"{problem.code}: {problem.message}"


def rebuilt_line(verified: Sequence[VerificationView]) -> RebuiltLine:
    """Return what verdicts say of headers, and whose log is not sound."""
    altered = [
        AlteredColumn(
            run_id=view.run_id,
            column=problem.column,
            found=problem.found or "",
            wanted=problem.wanted or "",
        )
        for view in verified
        for problem in view.problems
        if problem.column is not None
    ]
    unsound = [
        view.run_id
        for view in verified
        if any(problem.seq is not None for problem in view.problems)
    ]
    return RebuiltLine(
        runs=len(verified),
        records=sum(view.records for view in verified),
        altered=tuple(altered),
        unsound=tuple(unsound),
    )
