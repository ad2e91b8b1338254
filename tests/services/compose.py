"""Runs the servers of compose.yaml in Docker, where a daemon answers and has compose."""

import hashlib
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.services import state
from tests.services.errors import ServiceError
from tests.services.kinds import KINDS
from tests.services.process import Program, run, which

__all__ = ["NAMES", "answers", "end", "log", "pull", "running", "up"]

NAMES = frozenset(KINDS) - {"aws"}

_FILE = Path(__file__).with_name("compose.yaml")
_ANSWER_SECONDS = 20
_ID = re.compile("[0-9a-f]{12,64}")


def answers() -> bool:
    """Tell whether a daemon answers and the command has compose."""
    docker = which("docker")
    if docker is None:
        return False
    for words in (("compose", "version"), ("info",)):
        try:
            done = subprocess.run(
                [docker, *words], capture_output=True, check=False, timeout=_ANSWER_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode != 0:
            return False
    return True


def pull(names: Iterable[str]) -> None:
    """Fetch the images that are not here; ServiceError where the daemon cannot."""
    _compose("docker", ("pull", "--quiet", "--policy", "missing", *names))


def up(names: Iterable[str]) -> None:
    """Start containers, new or stopped, at the remembered ports; it does not wait for servers."""
    _compose("docker", ("up", "--detach", *names))


def running(name: str) -> bool:
    """Tell whether a container runs; none does where no daemon answers any more."""
    try:
        log = _compose(name, ("ps", "--quiet", "--status", "running", name))
    except ServiceError:
        return False
    return any(_ID.fullmatch(line) for line in log.read_text(encoding="utf-8").splitlines())


def end(name: str, *, immediate: bool) -> None:
    """Stop a container, in order or as a crash would; it keeps its data."""
    if running(name):
        _compose(name, ("kill" if immediate else "stop", name))


def log(name: str) -> Path:
    """Fetch what a container has written; return the file."""
    return _compose(name, ("logs", "--no-color", "--tail", "50", name))


def _compose(name: str, words: tuple[str, ...]) -> Path:
    """Run one command of compose; return the file with its output.

    Compose replaces a container whose port changes, so it is told the remembered port of each.
    """
    records = {each: state.read(each) for each in NAMES}
    environment = {
        f"PORT_{each.upper()}": str(record.port if record else 0)
        for each, record in records.items()
    }
    project = f"psych-{hashlib.sha256(str(state.folder()).encode()).hexdigest()[:8]}"
    command = (which("docker") or "docker", "compose", "-f", str(_FILE), "-p", project, *words)
    file = state.folder(name) / f"compose-{words[0]}.log"
    run(name, Program(command, environment), file, whole_environment=True)
    return file
