"""A bar for long work: on a terminal only, so that no file and no pipe gets one (CLI-1)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(what: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield what is told how much more is done of `total`; the bar is gone when all is.

    Nothing is drawn unless `shown` and both outputs are a terminal.
    """
    if not (shown and sys.stdout.isatty() and sys.stderr.isatty()):
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.update(task, advance=amount)


def _nothing(amount: int) -> None:
    """Draw no bar."""
