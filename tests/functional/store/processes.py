"""The program of the SQLite tests in processes of its own."""

from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

from tests.processes import tasks
from tests.processes.tasks import go, next_line

__all__ = ["go", "next_line", "started", "url_of"]


def url_of(path: Path, query: str = "") -> str:
    """Return the URL of a file."""
    return f"sqlite:///{path}{query}"


def started(path: Path, task: str, *arguments: str) -> AbstractContextManager[Popen[str]]:
    """Run a task of the program on a file; kill it when the block is left."""
    return tasks.started("tests.functional.store.program", url_of(path), task, *arguments)
