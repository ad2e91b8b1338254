"""Brings servers up and takes them down; each whole command is one turn under the folder's lock."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Literal, NoReturn
from urllib.parse import urlsplit

from tests.services import compose, process, state
from tests.services.errors import ServiceError
from tests.services.kinds import KINDS, Kind
from tests.services.state import Record

__all__ = ["How", "Server", "check", "check_ours", "restart", "start", "status", "stop"]

type How = Literal["fast", "immediate"]
"""In order, or as a crash would."""

_READY_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """One that runs: `version` as it reports it, `url` for its superuser."""

    name: str
    version: str
    url: str


def start(names: Iterable[str]) -> dict[str, Server]:
    """Start those of `names`, and what they need, that do not run; return all, by name."""
    wanted = _with_needs(names)
    with state.turn():
        return _start(wanted)


def stop(names: Iterable[str], how: How = "fast") -> None:
    """Stop those of `names` that we started; what runs elsewhere is left alone."""
    first_pooler = sorted(check(names), key=lambda name: not KINDS[name].needs)
    with state.turn():
        for name in first_pooler:
            _stop(name, how)


def restart(name: str, how: How) -> Server:
    """Stop one that we started and start it again, with nobody in between."""
    check_ours(name)
    wanted = _with_needs([name])
    with state.turn():
        _stop(name, how)
        return _start(wanted)[name]


def check_ours(name: str) -> None:
    """ServiceError when the environment names the server, so that it is not ours to stop."""
    variable = KINDS[check([name])[0]].variable
    if variable in environ:
        raise ServiceError(name, f"{variable} names it, so it is not ours to stop; unset that")


def status() -> dict[str, Server | None]:
    """Return every server, by name; None for those that do not run. Starts nothing."""
    return {name: _seen(name, kind) for name, kind in KINDS.items()}


def check(names: Iterable[str]) -> list[str]:
    """Return `names`; ServiceError for one that we do not know."""
    known = list(names)
    for name in known:
        if name not in KINDS:
            raise ServiceError(name, f"is no server; there are {', '.join(KINDS)}")
    return known


def _with_needs(names: Iterable[str]) -> list[str]:
    """Return `names` and what they need, each once, the needed ones first."""
    found: list[str] = []
    for name in check(names):
        found += _with_needs(KINDS[name].needs)
        found.append(name)
    return list(dict.fromkeys(found))


def _start(names: Sequence[str]) -> dict[str, Server]:
    """Start the servers that need nothing side by side, then those that need them."""
    records = _ports(name for name in names if KINDS[name].variable not in environ)
    in_docker = _start_in_docker(records)
    servers: dict[str, Server] = {}
    for needing in (False, True):
        wave = [name for name in names if bool(KINDS[name].needs) is needing]
        urls = {name: server.url for name, server in servers.items()}
        with ThreadPoolExecutor(max(1, len(wave))) as pool:
            tasks = [
                pool.submit(_bring_up, name, records.get(name), in_docker, urls) for name in wave
            ]
        failed = [error for task in tasks if (error := task.exception()) is not None]
        if failed:
            _raise(failed)
        servers |= {server.name: server for server in (task.result() for task in tasks)}
    return servers


def _raise(errors: Sequence[BaseException]) -> NoReturn:
    if len(errors) == 1:
        raise errors[0]
    raise BaseExceptionGroup("servers did not come up", errors)


def _ports(names: Iterable[str]) -> dict[str, Record]:
    """Return what is remembered of each; a port of its own where there is none yet, or no more."""
    known = {name: state.read(name) for name in KINDS}
    taken = {record.port for record in known.values() if record is not None}
    found = {}
    for name in names:
        record = known[name]
        if record is None or not (_runs(name, record) or state.is_free(record.port)):
            record = Record(state.free_port(taken))
            taken.add(record.port)
        found[name] = record
    return found


def _start_in_docker(records: Mapping[str, Record]) -> frozenset[str]:
    """Start what does not run yet in Docker, if that is to be had; return what runs there."""
    candidates = compose.NAMES & records.keys()
    inside = {name for name in candidates if records[name].docker and _runs(name, records[name])}
    missing = {name for name in candidates - inside if not _runs(name, records[name])}
    if missing and compose.answers() and _pulled(missing):
        for name in missing:
            state.write(name, Record(records[name].port, docker=True))
        compose.up(sorted(missing))
        inside |= missing
    return frozenset(inside)


def _pulled(names: Iterable[str]) -> bool:
    """Fetch images; False where the daemon has no way to them, and the servers are run here."""
    try:
        compose.pull(sorted(names))
    except ServiceError:
        return False
    return True


def _bring_up(
    name: str, record: Record | None, in_docker: frozenset[str], urls: Mapping[str, str]
) -> Server:
    kind = KINDS[name]
    if record is None:
        return _given(name, kind)
    if name not in in_docker:
        _bring_up_here(name, kind, record, urls)
    return _ready(name, kind)


def _bring_up_here(name: str, kind: Kind, record: Record, urls: Mapping[str, str]) -> None:
    """See to it that the process of `name` runs, with the command that it must have now."""
    program = kind.prepare(name, state.folder(name), record.port, urls)
    if process.alive(record):
        if record.command == program.command:
            return
        process.end(name, record, kind.fast)
    pid = process.launch(program, _log(name))
    state.write(name, Record(record.port, pid, program.command))


def _given(name: str, kind: Kind) -> Server:
    """Return the server that the environment names, once it answers."""
    url = environ[kind.variable]
    try:
        return Server(name, kind.version(url), url)
    except OSError as error:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port}"
        problem = f"the server of {kind.variable}, at {place}, does not answer: {error}"
        raise ServiceError(name, problem) from error


def _ready(name: str, kind: Kind) -> Server:
    """Wait until the server that we started answers; ServiceError if it ends or takes too long."""
    record = state.read(name)
    assert record is not None
    url = kind.url.format(port=record.port)
    versions: list[str] = []

    def settled() -> bool:
        version = _version(kind, url)
        if version is not None:
            versions.append(version)
        return bool(versions) or not (record.docker or process.alive(record))

    process.until(settled, _READY_SECONDS)
    if versions:
        return Server(name, versions[0], url)
    ended = not record.docker and not process.alive(record)
    log = compose.log(name) if record.docker else _log(name)
    _end(name, kind, record, "immediate")
    problem = "it ended by itself" if ended else f"no answer within {_READY_SECONDS:.0f} seconds"
    raise ServiceError(name, problem, command=record.command, log=log)


def _seen(name: str, kind: Kind) -> Server | None:
    record = state.read(name)
    url = environ.get(kind.variable)
    if url is None:
        if record is None or not _runs(name, record):
            return None
        url = kind.url.format(port=record.port)
    version = _version(kind, url)
    return None if version is None else Server(name, version, url)


def _version(kind: Kind, url: str) -> str | None:
    try:
        return kind.version(url)
    except OSError:
        return None


def _runs(name: str, record: Record) -> bool:
    return compose.running(name) if record.docker else process.alive(record)


def _stop(name: str, how: How) -> None:
    record = state.read(name)
    if record is not None:
        _end(name, KINDS[name], record, how)


def _end(name: str, kind: Kind, record: Record, how: How) -> None:
    if record.docker:
        compose.end(name, immediate=how == "immediate")
        return
    process.end(name, record, kind.immediate if how == "immediate" else kind.fast)
    state.write(name, Record(record.port))


def _log(name: str) -> Path:
    return state.folder(name) / "server.log"
