"""The program of the blob tests in processes of its own."""

from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

from tests.processes import tasks
from tests.processes.tasks import go, next_line

__all__ = ["go", "next_line", "started"]


def started(task: str, root: Path) -> AbstractContextManager[Popen[str]]:
    """Run a task of the program; kill it when the block is left."""
    return tasks.started("tests.functional.blob.program", task, str(root))
