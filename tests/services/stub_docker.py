"""A `docker` for tests: notes what it is asked; its containers are servers that greet as MySQL.

As a program it is isolated from the tests' Python; what it knows is in its folder.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["VERSION", "Asked", "StubDocker", "greeter"]

VERSION = "9.0.0-stub"


class Asked(NamedTuple):
    """One command: its words behind `docker`, and the ports that its environment gave."""

    words: tuple[str, ...]
    ports: Mapping[str, str]


class StubDocker:
    """The program in `folder / "bin"`, to be put first on PATH; nothing answers at first."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        self._folder = folder
        program = self.programs / "docker"
        program.write_text(
            f'#!/bin/sh\nexec {" ".join(_python())} {folder} "$@"\n', encoding="utf-8"
        )
        program.chmod(0o755)
        self.fail("compose version")

    def fail(self, *commands: str) -> None:
        """Let these commands fail from now on, and no others."""
        (self._folder / "fails").write_text(json.dumps(commands), encoding="utf-8")

    def asked(self) -> list[Asked]:
        """Return what has been asked since the last time."""
        file = self._folder / "asked"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [Asked(tuple(words), ports) for words, ports in map(json.loads, lines)]


def greeter(port: int) -> tuple[str, ...]:
    """Return the command of a server that greets as MySQL does."""
    return (*_python(), "greet", str(port))


def _python() -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", __file__)


def _main(folder: Path, words: Sequence[str]) -> int:
    ports = {name: port for name, port in os.environ.items() if name.startswith("PORT_")}
    with (folder / "asked").open("a", encoding="utf-8") as file:
        file.write(json.dumps([words, ports]) + "\n")
    command = [*words[:1], *words[5:]] if words[1:2] == ["-f"] else list(words)
    fails: Collection[str] = json.loads((folder / "fails").read_text(encoding="utf-8"))
    if " ".join(command[:2]) in fails:
        print("Cannot connect to the Docker daemon", file=sys.stderr)
        return 1
    match command:
        case ["compose", "up", "--detach", *names]:
            for name in names:
                _up(folder / f"{name}.pid", ports[f"PORT_{name.upper()}"])
        case ["compose", "ps", "--quiet", "--status", "running", name]:
            if _pid(folder / f"{name}.pid") is not None:
                print("c0ffee" * 10)
        case ["compose", "stop" | "kill", name]:
            _end(folder / f"{name}.pid")
    return 0


def _up(kept: Path, port: str) -> None:
    quiet = subprocess.DEVNULL
    command = greeter(int(port))
    process = subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    kept.write_text(str(process.pid), encoding="utf-8")


def _pid(kept: Path) -> int | None:
    """Return the process of a container that runs."""
    pid = int(kept.read_text(encoding="utf-8")) if kept.exists() else 0
    try:
        told = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    return pid if b"\0greet\0" in told else None


def _end(kept: Path) -> None:
    pid = _pid(kept)
    if pid is None:
        return
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    gone = select.poll()
    gone.register(handle, select.POLLIN)
    gone.poll()


def _greet(port: int) -> None:
    payload = b"\x0a" + VERSION.encode() + b"\0"
    greeting = len(payload).to_bytes(3, "little") + b"\0" + payload
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)


if __name__ == "__main__":
    if sys.argv[1] == "greet":
        _greet(int(sys.argv[2]))
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
