"""The real servers of the store tests, on loopback: started once, found by whoever comes next.

`python -m tests.services start` starts all of them, `stop` stops them; a test that needs one asks
for it here and gets it started if it does not run. It takes Linux: where a Docker daemon answers,
containers; elsewhere processes, of what is installed or else fetched into the state folder (see
state.py), which Debian 12 and 13 have. A variable of kinds.py names a server that runs elsewhere.
"""

from dataclasses import dataclass

from tests.services import control
from tests.services.control import How, Server
from tests.services.errors import ServiceError
from tests.services.kinds import KINDS

__all__ = [
    "How",
    "Server",
    "Servers",
    "ServiceError",
    "restart_server",
    "servers",
    "start_server",
    "stop_server",
]


@dataclass(frozen=True)
class Servers:
    """All of them; `pgbouncer` pools transactions in front of `postgres`."""

    postgres: Server
    postgres_new: Server
    pgbouncer: Server
    mysql: Server
    mariadb: Server
    aws: Server


def servers() -> Servers:
    """Return all servers; those that do not run are started.

    ServiceError when one does not come up, a group of them when several do not.
    """
    return Servers(**control.start(KINDS))


def start_server(name: str) -> Server:
    """Return one server, started if it does not run; also what it needs. May be repeated."""
    return control.start([name])[name]


def stop_server(name: str, how: How = "fast") -> None:
    """Stop one that we started, and return once it is gone; nothing when it does not run.

    Others must not be using it. ServiceError for one that the environment names.
    """
    control.check_ours(name)
    control.stop([name], how)


def restart_server(name: str, how: How = "fast") -> Server:
    """Stop one as `stop_server` does and start it again, at the same port."""
    return control.restart(name, how)
