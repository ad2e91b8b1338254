"""The process from which workers are forked, as it sees it itself: imports once, starts quickly.

A program says how to be a worker; `tests.processes.nursery` has the other side.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

__all__ = ["append", "fork_each"]


def append(folder: Path, name: str, *facts: object) -> None:
    """Write one line to a file that all processes share, in one piece."""
    line = " ".join(map(str, facts)) + "\n"
    descriptor = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def fork_each(live: Callable[[str], Coroutine[object, object, None]]) -> None:
    """Fork a process that lives by it for each line of input, and answer with its id.

    When the input ends, so do the processes.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    children: list[int] = []  # handles: the id of one that is long dead may be another's by now
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            asyncio.run(live(line))
            os._exit(0)
        with suppress(ProcessLookupError):
            children.append(os.pidfd_open(child))
        print(child, flush=True)
    for handle in children:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
