"""A program of the tests in a process of its own, which says lines and is told lines."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.processes import ROOT

__all__ = ["go", "next_line", "started", "tell"]


@contextmanager
def started(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process of its own; kill it when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", program, *arguments],
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


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Say a line to the process."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def go(process: subprocess.Popen[str]) -> None:
    """Tell the process to go on."""
    tell(process, "")
