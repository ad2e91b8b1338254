"""How MySQL and MariaDB are run."""

import os
import shutil
from pathlib import Path
from typing import Final

from tests.services import packages
from tests.services.process import Program, run, which

__all__ = ["LIKE_DEBIAN", "NO_X_PLUGIN", "SETTINGS", "mariadb", "mariadb_programs", "mysql"]

SETTINGS: Final = (
    "--max-connections=200",
    "--max-connect-errors=1000000",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=1",
    "--performance-schema=OFF",
    "--skip-log-bin",
)
"""What both have wherever they run: compose.yaml gives all that is public here, too."""

LIKE_DEBIAN: Final = (
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
)
"""What Debian configures for MariaDB; bare 10.11 would have latin1."""

NO_X_PLUGIN: Final = "--mysqlx=OFF"
"""MySQL would listen on a second port."""

_HERE: Final = (
    "--bind-address=127.0.0.1",
    *SETTINGS,
    "--socket=server.sock",  # in the data folder, since the path of a socket is short
    "--pid-file=server.pid",
)


def mysql(name: str, folder: Path, port: int) -> Program:
    """Prepare the MySQL of this machine, else that of Debian's unstable suite."""
    installed = which("mysqld")
    if installed and "maria" not in Path(installed).resolve().name:  # MariaDB takes that name too
        server = (installed, "--no-defaults", *_as_root())
    else:
        server = (*_own_root(packages.mysql_of_sid(name)), *_as_root())
    data = folder / "data"
    if not data.exists():
        new = _empty(folder / "data.new")
        initialize = (*server, f"--datadir={new}", "--initialize-insecure")
        run(name, Program(initialize), folder / "initialize.log")
        new.rename(data)
    own = (f"--datadir={data}", f"--port={port}", NO_X_PLUGIN, "--secure-file-priv=NULL")
    return Program((*server, *own, *_HERE), leftovers=_leftovers(data))


def _own_root(root: Path) -> tuple[str, ...]:
    """Return how a program of another release is run: by the loader and C library it came with."""
    folders = packages.libraries(root)
    loader = next(root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"))
    return (
        *(str(loader), "--library-path", folders, str(root / "usr/sbin/mysqld"), "--no-defaults"),
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    )


def mariadb(name: str, folder: Path, port: int) -> Program:
    """Prepare the MariaDB of this machine, else that of its Debian release."""
    server, install, base, environment = mariadb_programs(name)
    data = folder / "data"
    if not data.exists():
        new = _empty(folder / "data.new")
        options = ("--auth-root-authentication-method=normal", "--skip-test-db", *_as_root())
        command = (install, "--no-defaults", *base, f"--datadir={new}", *options)
        run(name, Program(command, environment), folder / "install.log")
        new.rename(data)
    own = ("--no-defaults", *base, *_as_root(), f"--datadir={data}", f"--port={port}")
    command = (server, *own, *_HERE, *LIKE_DEBIAN)
    return Program(command, environment, leftovers=_leftovers(data))


def mariadb_programs(name: str) -> tuple[str, str, tuple[str, ...], dict[str, str]]:
    """Return the server and what makes its first data, fetched if need be, and how both are run."""
    server, install = which("mariadbd"), which("mariadb-install-db")
    if server is not None and install is not None:
        return server, install, (), {}
    root = packages.debian(name, ["mariadb-server-core", "mariadb-client-core"])
    programs = str(root / "usr/sbin/mariadbd"), str(root / "usr/bin/mariadb-install-db")
    environment = {"LD_LIBRARY_PATH": packages.libraries(root)}
    return *programs, (f"--basedir={root / 'usr'}",), environment


def _as_root() -> tuple[str, ...]:
    return ("--user=root",) if os.geteuid() == 0 else ()


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _leftovers(data: Path) -> tuple[Path, ...]:
    """Name what a killed server leaves; another process with its pid would stop the next."""
    return tuple(data / left for left in ("server.sock", "server.sock.lock", "server.pid"))
