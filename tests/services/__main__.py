"""`python -m tests.services start|stop|status|env [names...]`: the servers of the store tests."""

import argparse
import shlex
import sys
from collections.abc import Mapping

from tests.services import control
from tests.services.control import Server
from tests.services.errors import ServiceError
from tests.services.kinds import KINDS


def main(arguments: list[str]) -> int:
    """Do one command; return 0 when all the named servers are as they should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description=__doc__)
    parser.add_argument("command", choices=["start", "stop", "status", "env"])
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(KINDS)}; all when none")
    options = parser.parse_args(arguments)
    try:
        names = control.check(options.names) or list(KINDS)
        return _do(options.command, names)
    except* ServiceError as group:
        for error in group.exceptions:
            print(error, file=sys.stderr)
    return 1


def _do(command: str, names: list[str]) -> int:
    if command == "stop":
        control.stop(names)
        return 0
    found: Mapping[str, Server | None]
    found = control.start(names) if command == "start" else control.status()
    for name in names:
        print(_variable(name, found[name]) if command == "env" else _line(name, found[name]))
    return int(any(found[name] is None for name in names))


def _line(name: str, server: Server | None) -> str:
    return f"{name:13}{f'{server.version:38}{server.url}' if server else 'stopped'}"


def _variable(name: str, server: Server | None) -> str:
    if server is None:
        return f"# {name} is stopped"
    return f"export {KINDS[name].variable}={shlex.quote(server.url)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
