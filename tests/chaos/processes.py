"""The worker processes as the control process has them: started, killed, stopped, and accounted."""

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Self

from tests.chaos.nursery import Job

__all__ = ["Life", "Nursery", "Process", "Stop"]

ROOT = Path(__file__).parents[2]

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


class Nursery:
    """The process that starts the others; what they say is in `log`."""

    def __init__(self, log: Path) -> None:
        command = [sys.executable, "-m", "tests.chaos.nursery"]
        with log.open("wb") as file:
            self._nursery = Popen(
                command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=file, text=True
            )
        self.processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, job: Job) -> Process:
        """Start a process."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(vars(job)) + "\n")
        self._nursery.stdin.flush()
        process = Process(int(self._nursery.stdout.readline()))
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

    def close(self) -> None:
        """End it and its processes."""
        self.end_all()
        for process in self.processes:
            process.forget()
        self._nursery.communicate()
