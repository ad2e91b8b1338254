"""Secrets in files, one file each, as an orchestrator mounts them into a folder (SEC-2)."""

import asyncio
import os
import re
import stat
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Final

from psych_runtime.errors import (
    InvalidArgument,
    SecretNotFound,
    SecretUnavailable,
    SecretUnusable,
)
from psych_runtime.ports.secrets import MAX_SECRET_BYTES
from psych_schema.common import Scope

__all__ = ["FileSecrets"]

_PART: Final = re.compile(r"[a-zA-Z0-9_-][a-zA-Z0-9_.-]*")  # no hidden file, and no way up
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer
    | getattr(os, "O_BINARY", 0)
)
_ATTEMPTS: Final = 5  # each lost to a change of all files at once


class FileSecrets:
    """Implements the port over folders with a file for each secret, read at each use.

    The file has the secret's name; a `/` in it is a folder. One line break at the file's end
    is not part of the value. Links are followed while they stay inside the folder, which is how
    an orchestrator changes all files of a folder at once.

    Args:
        folder: with what every tenant may use; None, where tenants share nothing.
        tenants: a tenant's name to the folder of its own, which comes before `folder`.

    Raises InvalidArgument for a tenant's folder that is, or is in, a folder that others read.
    """

    def __init__(
        self, folder: Path | None = None, *, tenants: Mapping[str, Path] | None = None
    ) -> None:
        self._shared = None if folder is None else Path(folder).absolute()
        self._tenants = {tenant: Path(own).absolute() for tenant, own in (tenants or {}).items()}
        _check([*({self._shared} if self._shared else ()), *self._tenants.values()])

    def __repr__(self) -> str:
        """Name the folder for all."""
        return f"FileSecrets({str(self._shared) if self._shared else None!r})"

    async def resolve(self, scope: Scope, name: str) -> str:
        """Return what the file holds. SecretNotFound says which file to write.

        SecretUnavailable: the file cannot be opened. SecretUnusable: it is no UTF-8, too large,
        no file, or a link that leads out of the folder.
        """
        folders = [one for one in (self._tenants.get(scope.tenant), self._shared) if one]
        parts = name.split("/")
        if not all(map(_PART.fullmatch, parts)):
            remedy = "a file's name has no empty part, and no part that begins with a dot"
            raise SecretNotFound(name=name, remedy=remedy)
        return await asyncio.to_thread(_read_first, folders, parts, name)


def _check(folders: list[Path]) -> None:
    real = [Path(os.path.realpath(folder)) for folder in folders]
    for one, other in combinations(real, 2):
        if one.is_relative_to(other) or other.is_relative_to(one):
            problem = f"{one} and {other}: neither may be in the other, or be the same"
            raise InvalidArgument(what="folder", problem=problem)


def _read_first(folders: list[Path], parts: list[str], name: str) -> str:
    for folder in folders:
        data = _read(folder, folder.joinpath(*parts), name)
        if data is not None:
            return _text(data, name)
    remedy = f"write {folders[0].joinpath(*parts)}" if folders else "this tenant has no folder"
    raise SecretNotFound(name=name, remedy=remedy)


def _read(folder: Path, path: Path, name: str) -> bytes | None:
    """Return the file's bytes; None: there is none."""
    problem = f"{path} is a link to a file that is not there"
    for _ in range(_ATTEMPTS):
        try:
            target = Path(os.path.realpath(path, strict=True))
            if target.is_relative_to(os.path.realpath(folder)):
                return _bytes(os.open(target, _FLAGS), path, name)
            raise SecretUnusable(name=name, problem=f"{path} leads out of its folder")
        except (FileNotFoundError, NotADirectoryError):
            if not os.path.lexists(path):
                return None
        except OSError as error:
            problem = f"{path}: {error.strerror or type(error).__name__}"
            break
    raise SecretUnavailable(name=name, problem=problem)


def _bytes(file: int, path: Path, name: str) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise SecretUnusable(name=name, problem=f"{path} is no file")
    with open(file, "rb") as opened:
        return opened.read(MAX_SECRET_BYTES + 3)  # with a line break, and one byte too many


def _text(data: bytes, name: str) -> str:
    line = data.removesuffix(b"\n")
    if len(line) < len(data):
        line = line.removesuffix(b"\r")
    if len(line) > MAX_SECRET_BYTES:
        raise SecretUnusable(name=name, problem=f"its file has more than {MAX_SECRET_BYTES} bytes")
    try:
        return line.decode()
    except UnicodeDecodeError:
        pass  # the error holds all bytes: it must not be the context of ours
    raise SecretUnusable(name=name, problem="its file is no UTF-8")
