"""A proxy in a process of its own: a control process that is busy must not slow the workers down.

`python -m tests.chaos.gate HOST PORT` says where it listens, then answers each line it reads.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

from tests.functional.store.proxy import Proxy, proxied
from tests.processes.tasks import next_line, started, tell

__all__ = ["Gate", "gate_to"]


class Gate:
    """The proxy as the control process has it."""

    def __init__(self, process: Popen[str]) -> None:
        self._process = process
        self.port = int(next_line(process))

    def _tell(self, command: str) -> None:
        tell(self._process, command)
        assert next_line(self._process) == "done"

    def cut(self) -> None:
        """Break every connection."""
        self._tell("cut")

    def delay(self, seconds: float) -> None:
        """Let each piece wait from now on, either way; 0 is no more."""
        self._tell(f"delay {seconds}")

    def lose_answers(self) -> None:
        """Let requests through and drop what the server says, until `mend`."""
        self._tell("lose")

    def refuse(self) -> None:
        """Break every connection, and let no new one through, until `mend`."""
        self._tell("refuse")

    def mend(self) -> None:
        """Do none of this any more.

        Connections that have lost answers break: no network delivers what comes later.
        """
        self._tell("mend")


@contextmanager
def gate_to(host: str, port: int) -> Iterator[Gate]:
    """Yield a proxy in front of a server."""
    with started("tests.chaos.gate", host, str(port)) as process:
        yield Gate(process)


def _obey(proxy: Proxy, command: str) -> None:
    match command.split():
        case ["cut"]:
            proxy.cut()
        case ["delay", seconds]:
            proxy.delay_seconds = float(seconds)
        case ["lose"]:
            proxy.loses_answers = True
        case ["refuse"]:
            proxy.refuses = True
            proxy.cut()
        case ["mend"]:
            proxy.cut()
            proxy.loses_answers = proxy.refuses = False
        case _:
            raise ValueError(f"no command: {command!r}")


async def _serve(host: str, port: int) -> None:
    async with proxied(host, port) as proxy:
        print(proxy.port, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            _obey(proxy, line)
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
