"""The example's own programs as processes: each line of input is JSON with the fields of `Job`."""

import json
import os
import sys
from dataclasses import dataclass, field

from tests.processes.forks import fork_each

__all__ = ["Job"]


@dataclass(frozen=True)
class Job:
    """What a process becomes; what it says goes to the file `log`."""

    log: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)


async def become(job: Job) -> None:
    """Be that program instead, under the same id."""
    os.open(os.devnull, os.O_RDONLY)  # takes the place of the input, which is closed
    os.set_inheritable(0, True)
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execve(sys.executable, [sys.executable, *job.arguments], os.environ | job.environment)


if __name__ == "__main__":
    fork_each(lambda line: become(Job(**json.loads(line))))
