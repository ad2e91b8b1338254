"""Starts and ends processes; ends none but those that are still the program it started."""

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.services import state
from tests.services.errors import ServiceError

__all__ = ["Account", "Program", "alive", "end", "launch", "run", "unprivileged", "until", "which"]

_POLL_SECONDS = 0.02
_END_SECONDS = 30.0

_BACKGROUND = '"$@" >&2 & echo $!'
"""The server becomes a child of init: it outlives us, and leaves no zombie with us."""


@dataclass(frozen=True)
class Account:
    """Whom a program runs as."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Give `path` to it."""
        os.chown(path, self.uid, self.gid)


@dataclass(frozen=True)
class Program:
    """A command with its environment; `account` is None for whoever runs us.

    `leftovers` are files of a run that was killed: removed before the next.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    account: Account | None = None
    leftovers: tuple[Path, ...] = ()


def unprivileged() -> Account | None:
    """Return whom to run what refuses to run as root; None when we are not root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return Account(entry.pw_uid, entry.pw_gid)


def which(name: str) -> str | None:
    """Return the path of a program, also where the PATH of an ordinary user does not lead."""
    places = [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    return shutil.which(name, path=os.pathsep.join(places))


def run(name: str, program: Program, log: Path, *, whole_environment: bool = False) -> None:
    """Run `program` to its end, its output in `log`; ServiceError when it fails.

    Args:
        whole_environment: downloads need what configures apt, pip and npm on this machine.
    """
    with log.open("wb") as file:
        done = _popen(program, program.command, file.fileno(), log.parent, whole_environment).wait()
    if done != 0:
        problem = f"preparing it failed with status {done}"
        raise ServiceError(name, problem, command=program.command, log=log)


def launch(program: Program, log: Path) -> int:
    """Start `program` in the background, its output in `log`; return its pid.

    The log of the run before is kept beside it.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    for path in program.leftovers:
        path.unlink(missing_ok=True)
    shell = ("/bin/sh", "-c", _BACKGROUND, "sh", *program.command)
    with log.open("wb") as file:
        started = _popen(program, shell, file.fileno(), log.parent, False, subprocess.PIPE)
        said, _ = started.communicate()
    pid = int(said)
    # a fork of the shell at first, and for a moment of the change a process without arguments
    until(lambda: _command_of(pid) in (None, list(program.command)), _END_SECONDS)
    return pid


def _popen(
    program: Program,
    command: Sequence[str],
    log: int,
    cwd: Path,
    whole_environment: bool,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    account = program.account
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=_environment(whole_environment) | dict(program.environment),
        stdin=subprocess.DEVNULL,
        stdout=log if stdout is None else stdout,
        stderr=log,
        start_new_session=True,
        umask=0o022,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def _environment(whole: bool) -> dict[str, str]:
    """Return our environment without what makes a started Python a part of a test."""
    if not whole:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
    ours = ("PYTHON", "PYTEST", "PSYCH_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def alive(record: state.Record | None) -> bool:
    """Tell whether the remembered process runs and is still that program."""
    if record is None or record.pid is None:
        return False
    return _command_of(record.pid) == list(record.command)


def _command_of(pid: int) -> list[str] | None:
    """Return the arguments of a process; None, or an empty list, once it ends."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return None


def end(name: str, record: state.Record, how: signal.Signals) -> None:
    """Signal the remembered process, if it is still that program, and wait until it is gone.

    One that does not obey is killed. The handle keeps to the process that was judged, should its
    pid be given to another; and it tells the end only when the last thread has closed its files,
    so that the port is free.
    """
    try:
        handle = os.pidfd_open(record.pid or 0)
    except OSError:  # there is none
        return
    try:
        if not alive(record):
            return
        gone = select.poll()
        gone.register(handle, select.POLLIN)
        for number in (how, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if gone.poll(_END_SECONDS * 1000):
                return
    finally:
        os.close(handle)
    raise ServiceError(name, f"process {record.pid} does not end", command=record.command)


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return True as soon as `condition` holds, False when it does not in `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
