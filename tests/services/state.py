"""What is remembered between commands: the folder, whose turn it is, ports and processes.

The folder is `$PSYCH_SERVICES_DIR`, else one for each user under the system's temporary folder;
never in the repository. Deleting it while nothing runs forgets everything.
"""

import contextlib
import fcntl
import json
import os
import random
import socket
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.services.errors import ServiceError

__all__ = ["Record", "folder", "free_port", "is_free", "read", "turn", "write"]

_PORTS = range(20_000, 32_000)
"""Below the range from which systems give ports to clients, so that a stopped server's stays."""


@dataclass(frozen=True)
class Record:
    """How a server was started last; `pid` is None when it was stopped, or runs in Docker."""

    port: int
    pid: int | None = None
    command: tuple[str, ...] = ()
    docker: bool = False


def folder(*parts: str) -> Path:
    """Return the state folder, or one inside it; make what is missing, readable for all.

    A database server that runs as another user must reach its own folder in it.
    """
    given = os.environ.get("PSYCH_SERVICES_DIR")
    top = Path(given) if given else Path(tempfile.gettempdir()) / f"psych-services-{os.getuid()}"
    path = top = top.absolute()
    _make(top)
    if top.lstat().st_uid != os.getuid():
        raise ServiceError("services", f"{top} belongs to another user; set PSYCH_SERVICES_DIR")
    for part in parts:
        path /= part
        _make(path)
    return path


def _make(path: Path) -> None:
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755)


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Wait until nobody else starts or stops servers of this folder, then keep others out."""
    with (folder() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read(name: str) -> Record | None:
    """Return what is remembered about a server."""
    path = folder(name) / "record.json"
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Record(kept["port"], kept["pid"], tuple(kept["command"]), kept["docker"])


def write(name: str, record: Record) -> None:
    """Remember it."""
    path = folder(name) / "record.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(record), indent=1), encoding="utf-8")
    new.replace(path)


def free_port(taken: Collection[int]) -> int:
    """Return a port on which nobody listens, none of `taken`."""
    for port in random.sample(_PORTS, 200):
        if port not in taken and is_free(port):
            return port
    raise ServiceError("services", f"no free port between {_PORTS.start} and {_PORTS.stop}")


def is_free(port: int) -> bool:
    """Tell whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
