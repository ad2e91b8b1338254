"""Fetches programs that the machine lacks into the state folder; the machine itself stays as it is.

Only through apt-get, pip and npm, as they are configured here; no root rights are needed. What was
fetched is kept until the lock file, or the folder, changes.
"""

import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.services import state
from tests.services.errors import ServiceError
from tests.services.process import Program, run, which

__all__ = ["debian", "libraries", "mysql_of_sid", "npm", "python"]

_HERE = Path(__file__).parent
_OF_THE_SYSTEM = ("libc6_", "libc-bin_", "locales_")
"""Our programs are of the machine's own release, so its C library serves them."""
_UNUSED = ("perl", "libperl", "libdb5", "libgdbm")
"""Needed by scripts that we do not run."""
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

_updating = threading.Lock()


def debian(name: str, packages: Sequence[str]) -> Path:
    """Unpack `packages`, and what of their needs is not installed, from this machine's release."""

    def fetch(root: Path) -> None:
        _need(name, "apt-get")
        shutil.copy("/var/lib/dpkg/status", root / "status")
        _apt(name, root, state.folder("packages", "lists"), (), packages, skip=_OF_THE_SYSTEM)

    return _kept(name, f"{name}-debian", fetch)


def mysql_of_sid(name: str) -> Path:
    """Unpack MySQL and all of its needs, C library included, from Debian's unstable suite."""

    def fetch(root: Path) -> None:
        sources = root / "sources.list"
        sources.write_text(f"deb {_mirror(name)} sid main\n", encoding="utf-8")
        (root / "status").touch()
        options = (
            f"-oDir::Etc::sourcelist={sources}",
            "-oDir::Etc::sourceparts=/dev/null",
            "-oDir::Etc::preferencesparts=/dev/null",
            "-oAcquire::Check-Valid-Until=false",  # a frozen mirror will do; its signature is old
        )
        _apt(name, root, root / "lists", options, ["mysql-server-core"], skip=_UNUSED)

    return _kept(name, f"{name}-sid", fetch)


def libraries(root: Path) -> str:
    """Return the folders of `root` with shared libraries, as LD_LIBRARY_PATH has them."""
    patterns = ("usr/lib/*-linux-gnu/*.so.*", "lib/*-linux-gnu/*.so.*", "usr/lib/mysql/private/*")
    found = {path.parent for pattern in patterns for path in root.glob(pattern)}
    return os.pathsep.join(sorted(map(str, found)))


def npm(name: str) -> Path:
    """Install what package-lock.json has; return node_modules."""

    def fetch(root: Path) -> None:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(_HERE / file, root)
        command = (_need(name, "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        run(name, Program(command), root / "npm.log", whole_environment=True)
        for links in root.glob("node_modules/@*/*/native/pg-symlinks.json"):
            _link(links)

    return _kept(name, f"{name}-npm-{_digest('package-lock.json')}", fetch) / "node_modules"


def python(name: str) -> Path:
    """Install what requirements.txt has into an environment of its own; return its Python."""

    def fetch(root: Path) -> None:
        log = root / "pip.log"
        environment = root / "venv"
        create = (sys.executable, "-m", "venv", "--without-pip", str(environment))
        run(name, Program(create), log)
        pip = (sys.executable, "-m", "pip", "--python", str(environment / "bin/python"))
        options = ("install", "--quiet", "--no-deps", "--require-hashes", "--requirement")
        install = (*pip, *options, str(_HERE / "requirements.txt"))
        run(name, Program(install), log, whole_environment=True)

    root = _kept(name, f"{name}-pip-{_digest('requirements.txt')}", fetch)
    return root / "venv/bin/python"


def _kept(name: str, folder: str, fetch: Callable[[Path], None]) -> Path:
    """Return the folder that `fetch` fills, once; what it left half done is done anew."""
    root = state.folder("packages") / folder
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        fetch(state.folder("packages", folder))
        (root / "complete").touch()
    return root


def _apt(
    name: str,
    root: Path,
    lists: Path,
    options: Sequence[str],
    packages: Sequence[str],
    *,
    skip: tuple[str, ...],
) -> None:
    """Download and unpack into `root` alone: no script of a package runs.

    What is installed, so that it need not be fetched, is in `root / "status"`.
    """
    archives = root / "cache/archives"
    for folder in (lists, archives):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    own = (
        f"-oDir::State::status={root / 'status'}",  # apt locks the folder that it is in
        f"-oDir::State::lists={lists}",
        f"-oDir::Cache={root / 'cache'}",
        "-oAcquire::Languages=none",
    )
    if os.geteuid() == 0:  # the user _apt cannot write into our folder
        options = (*options, "-oAPT::Sandbox::User=root")
    apt = (_need(name, "apt-get"), "-qq", *own, *options)
    log = root / "apt.log"
    with _updating:  # packages of one release share its lists
        _fetch(name, (*apt, "update"), log)
    install = ("install", "--yes", "--download-only", "--no-install-recommends", "--reinstall")
    _fetch(name, (*apt, *install, *packages), log)
    for archive in sorted(archives.glob("*.deb")):
        if not archive.name.startswith(skip):
            run(name, Program(("dpkg-deb", "--extract", str(archive), str(root))), log)
    shutil.rmtree(root / "cache")


def _fetch(name: str, command: tuple[str, ...], log: Path) -> None:
    run(name, Program(command), log, whole_environment=True)


def _need(name: str, program: str) -> str:
    path = which(program)
    if path is None:
        raise ServiceError(
            name,
            f"{program} is not here to fetch it with; install {program} or the server itself, "
            "start Docker, or name a running server by its environment variable",
        )
    return path


def _mirror(name: str) -> str:
    """Return the archive from which this machine takes Debian, as a source line has it."""
    apt = _need(name, "apt-get")
    if platform.freedesktop_os_release()["ID"] != "debian":
        raise ServiceError(name, "it is fetched on Debian only; start Docker, or name a server")
    targets = ("indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    told = subprocess.run([apt, *targets], capture_output=True, text=True, check=True)
    archives = [line for line in told.stdout.split() if "security" not in line]
    archives.sort(key=lambda line: "debian" not in line)
    return f"[signed-by={_KEYS}] {archives[0]}"


def _link(listed: Path) -> None:
    """Make the symbolic links that npm cannot pack; the package lists them."""
    package = listed.parents[1]
    for link in json.loads(listed.read_text(encoding="utf-8")):
        target = package / link["target"]
        if not target.is_symlink():
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))


@functools.cache
def _digest(file: str) -> str:
    return hashlib.sha256((_HERE / file).read_bytes()).hexdigest()[:12]
