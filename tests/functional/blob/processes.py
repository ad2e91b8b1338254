"""Starts the other processes of a test, and ends those that it started."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


@contextmanager
def started(task: str, root: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a task of the program in a process of its own; kill it when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.functional.blob.program", task, str(root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def next_line(process: subprocess.Popen[str]) -> str:
    """Return what the process says next; empty when it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    """Tell the process to go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
