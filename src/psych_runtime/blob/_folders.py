"""Folders and files of a blob store in files, each reached from the folder above it.

A path is opened part by part, without following links: whatever stands inside the root, no call
leaves it. The open folders are also what must be synced before a file in them is durable.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from psych_runtime.blob._file_errors import is_absent
from psych_runtime.blob._keys import ends_name, is_hash

__all__ = [
    "LEFTOVER_SUFFIX",
    "Found",
    "blobs_in",
    "leftovers_in",
    "open_file",
    "opened",
    "owners",
    "remove",
    "remove_empty",
    "sweep_below",
    "sync",
    "write_new",
]

LEFTOVER_SUFFIX: Final = ".part"

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_CLOEXEC", 0)
_MARKS: Final = ("n-", "m-", "e-")
_DEEPEST: Final = 8  # parts of the longest names


class Found(NamedTuple):
    """A file in a folder."""

    name: str
    size_bytes: int
    changed_at: float  # seconds of the Unix clock


@contextmanager
def opened(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[list[int] | None]:
    """Open the root and the folders below it; None: they are not there.

    With `make` they are made where they are missing, for this user alone.
    """
    with ExitStack() as stack:
        try:
            folders = [_keep(stack, _open_root(root, make=make))]
        except FileNotFoundError:
            if make:
                raise
            yield None
            return
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folders[-1])
                folders.append(_keep(stack, _open_folder(part, folders[-1])))
        except OSError as error:
            if make or not is_absent(error):
                raise
            yield None
            return
        yield folders


def _keep(stack: ExitStack, folder: int) -> int:
    stack.callback(os.close, folder)
    return folder


def _open_root(root: Path, *, make: bool) -> int:
    if make:
        _make_root(root)
    return os.open(root, _FOLDER)


def _make_root(root: Path) -> None:
    """Make the folder, durably, and those above it where they are missing."""
    try:
        root.mkdir(mode=0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if root.parent == root:
            raise
        _make_root(root.parent)
        root.mkdir(mode=0o700, exist_ok=True)
    above = os.open(root.parent, _FOLDER)
    try:
        os.fsync(above)
    finally:
        os.close(above)


def _open_folder(name: str, above: int) -> int:
    return os.open(name, _FOLDER | _NO_LINK, dir_fd=above)


def write_new(name: str, data: bytes, folder: int) -> None:
    """Write a file that did not exist, and have its bytes on the disk."""
    with open(os.open(name, _NEW, 0o600, dir_fd=folder), "wb", buffering=0) as file:  # noqa: PTH123
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def open_file(name: str, folder: int) -> int | None:
    """Open a file to read; None: there is none, or something else has its name."""
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if is_absent(error):
            return None
        raise
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def sync(folders: Sequence[int]) -> None:
    """Have what these folders name on the disk, the innermost first."""
    for folder in reversed(folders):
        os.fsync(folder)


def remove(name: str, folder: int) -> bool:
    """Delete a file; tell whether it was there."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def remove_empty(name: str, above: int) -> None:
    """Delete a folder that is empty; any other is left."""
    with suppress(OSError):
        os.rmdir(name, dir_fd=above)


def blobs_in(folder: int) -> list[Found]:
    """Return the blobs of an owner's folder, sorted by hash."""
    return sorted(found for found in _files(folder) if is_hash(found.name))


def leftovers_in(folder: int) -> list[Found]:
    """Return what puts have begun here and not ended."""
    return [found for found in _files(folder) if found.name.endswith(LEFTOVER_SUFFIX)]


def _files(folder: int) -> Iterator[Found]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # deleted meanwhile
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    yield Found(entry.name, found.st_size, found.st_mtime)


def owners(
    folder: int, after: tuple[str, ...], path: tuple[str, ...] = (), names: int = 0
) -> Iterator[tuple[str, ...]]:
    """Yield the paths behind `after`, sorted, of folders where two names end and a blob is."""
    for part in _subfolders(folder) if len(path) < _DEEPEST else ():
        here = (*path, part)
        ended = names + ends_name(part)
        if here < after[: len(here)]:
            continue
        with _below(part, folder) as below:
            if below is None:
                continue
            if ended < 2:
                yield from owners(below, after, here, ended)
            elif here > after and blobs_in(below):
                yield here


def sweep_below(folder: int, oldest: float, depth: int = 0) -> None:
    """Delete leftovers that are older than `oldest`, then folders that are empty."""
    for leftover in leftovers_in(folder):
        if leftover.changed_at < oldest:
            remove(leftover.name, folder)
    for part in _subfolders(folder) if depth < _DEEPEST else ():
        with _below(part, folder) as below:
            if below is not None:
                sweep_below(below, oldest, depth + 1)
        remove_empty(part, folder)


@contextmanager
def _below(name: str, above: int) -> Iterator[int | None]:
    """Open a folder that was seen; None: it has been deleted meanwhile."""
    try:
        folder = _open_folder(name, above)
    except OSError as error:
        if not is_absent(error):
            raise
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)


def _subfolders(folder: int) -> list[str]:
    """Return the folders in here that may be a name's, sorted."""
    with os.scandir(folder) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.name.startswith(_MARKS) and entry.is_dir(follow_symlinks=False)
        ]
    return sorted(names)
