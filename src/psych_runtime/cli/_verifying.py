"""Verification of all Runs of a tenant, and its words for people (LOG-6)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer

from psych_runtime._verify import verify_pages
from psych_runtime.cli._listing import ENDED, Broken, each_header
from psych_runtime.cli._progress import progress
from psych_runtime.cli.output import say_error
from psych_runtime.errors import PsychError, RunNotFound
from psych_runtime.ports.store import Store
from psych_schema.common import Scope
from psych_schema.view import AlteredColumn, RebuiltLine, VerificationProblem, VerificationView

__all__ = [
    "checking",
    "count",
    "erased_words",
    "problem_lines",
    "problem_text",
    "rebuilt_line",
    "verify_each",
]


@contextmanager
def checking() -> Iterator[None]:
    """Exit with 2 on an error that keeps the check from being made: 1 is for what it finds."""
    try:
        yield
    except PsychError as error:
        say_error(error)
        raise typer.Exit(2) from None


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
    runs: list[tuple[str, Broken | None]] = []
    records = 0
    async for one in each_header(store, scope):
        if isinstance(one, Broken):
            runs.append((one.error.key, one))
        else:
            runs.append((one.run_id, None))
            records += one.head
    found: list[VerificationView] = []
    with progress("records", records, shown=bar) as done:
        for run_id, broken in runs:
            try:
                view = await verify_pages(store, run_id, scope=scope, done=done)
            except RunNotFound:  # purged meanwhile
                if broken is None:
                    continue
                view = VerificationView(run_id=run_id, records=0, consistent=False, problems=())
            if broken is not None:
                view = _with_listing(view, broken)
            found.append(view)
            if tell is not None:
                tell(view)
    return found


def _with_listing(view: VerificationView, broken: Broken) -> VerificationView:
    """Return a verdict with what the list of Runs has shown, too."""
    error, problems = broken.error, list(view.problems)
    if all(problem.code != error.code for problem in problems):
        problems.append(VerificationProblem(code=error.code, message=str(error)))
    if broken.ended:
        problems.append(VerificationProblem(code="listing_ended", message=ENDED))
    return view.model_copy(update={"consistent": False, "problems": tuple(problems)})


def count(number: int, what: str) -> str:
    """Return how many of what there are, in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def problem_text(problem: VerificationProblem) -> str:
    """Return one problem on one line."""
    if problem.seq is not None:
        return f"{problem.code} at seq {problem.seq}: {problem.message}"
    return f"{problem.code}: {problem.message}"


def problem_lines(problems: Iterable[VerificationProblem]) -> Iterator[str]:
    """Yield problems as lines: the same one of records in a row is one line."""
    same: list[VerificationProblem] = []
    for problem in problems:
        if same and not _follows(same[-1], problem):
            yield _line(same)
            same.clear()
        same.append(problem)
    if same:
        yield _line(same)


def _follows(before: VerificationProblem, problem: VerificationProblem) -> bool:
    """Tell whether it is the problem before, at the next record."""
    if before.seq is None or problem.seq != before.seq + 1:
        return False
    return (before.code, before.message) == (problem.code, problem.message)


def _line(same: Sequence[VerificationProblem]) -> str:
    first, last = same[0], same[-1]
    if len(same) == 1:
        return problem_text(first)
    return f"{first.code} at seq {first.seq} to {last.seq}: {first.message}"


def erased_words(number: int) -> str:
    """Return what follows a verdict when contents are erased."""
    return f", {count(number, 'content')} erased" if number else ""


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
        view.run_id for view in verified if any(problem.column is None for problem in view.problems)
    ]
    return RebuiltLine(
        runs=len(verified),
        records=sum(view.records for view in verified),
        altered=tuple(altered),
        unsound=tuple(unsound),
    )
