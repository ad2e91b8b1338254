"""Worker processes as a test has them: started, killed, stopped, and accounted for."""

import json
import os
import select
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Self

from tests.processes import ROOT
from tests.processes.tasks import next_line, tell

__all__ = ["Life", "Nursery", "Process", "Stop"]

_END_SECONDS = 20.0


@dataclass
class Stop:
    """A time for which a process stood still; `ended` is None while it does."""

    begun: float
    ended: float | None = None


@dataclass
class Life:
    """What was done to a process, by the wall clock."""

    pid: int
    killed: float | None = None
    stops: list[Stop] = field(default_factory=list)


class Process:
    """One worker process; its handle keeps to it, should the pid be given to another."""

    def __init__(self, pid: int) -> None:
        self.life = Life(pid)
        self._handle = os.pidfd_open(pid)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.life.pid

    @property
    def stands(self) -> bool:
        """Whether it is stopped at the moment."""
        return bool(self.life.stops) and self.life.stops[-1].ended is None

    def kill(self) -> None:
        """Kill it with -9; one that has ended by itself is not counted as killed."""
        if self.has_ended():
            return
        self.life.killed = time.time()
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Let it stand still."""
        self.life.stops.append(Stop(time.time()))
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)
        self.life.stops[-1].ended = time.time()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has just ended by itself
            signal.pidfd_send_signal(self._handle, number)

    def has_ended(self) -> bool:
        """Tell whether it is gone, by our doing or not."""
        return self._gone(0.0)

    def wait(self) -> None:
        """Return once it is gone; a killed one takes a moment."""
        assert self._gone(_END_SECONDS)

    def _gone(self, seconds: float) -> bool:
        gone = select.poll()
        gone.register(self._handle, select.POLLIN)
        return bool(gone.poll(seconds * 1000))

    def forget(self) -> None:
        """Give the handle back."""
        os.close(self._handle)


class Nursery[Job]:
    """The process that starts the others: `program` gives `fork_each` what a `Job` asks for.

    A Job is JSON in the fields that it has. What the processes say goes to the file `log`, or to
    where ours goes.
    """

    def __init__(self, program: str, log: Path | None = None) -> None:
        with ExitStack() as files:
            self._nursery = Popen(
                [sys.executable, "-m", program],
                cwd=ROOT,
                stdin=PIPE,
                stdout=PIPE,
                stderr=files.enter_context(log.open("wb")) if log else None,
                text=True,
            )
        self.processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, job: Job) -> Process:
        """Start a process."""
        tell(self._nursery, json.dumps(vars(job)))
        process = Process(int(next_line(self._nursery)))
        self.processes.append(process)
        return process

    def ended_alone(self) -> list[int]:
        """Return the ids of processes that have ended and that nobody has killed."""
        alone = [one for one in self.processes if one.life.killed is None and one.has_ended()]
        return [one.pid for one in alone]

    def end_all(self) -> None:
        """End every process, and return once all are gone."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def empty(self) -> None:
        """End every process and know of none: what comes next has a nursery as if new."""
        self.end_all()
        for process in self.processes:
            process.forget()
        self.processes.clear()

    def close(self) -> None:
        """End it and its processes."""
        self.empty()
        self._nursery.communicate()
