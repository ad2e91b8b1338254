"""What other processes do to blobs in files: `python -m tests.functional.blob.program`."""

import asyncio
import resource
import sys
from pathlib import Path

from psych_runtime.blob.contract._check import OURS, put
from psych_runtime.blob.filesystem import FileBlobStore
from psych_runtime.errors import BlobError

DATA = b"0123456789" * 1000


def say(text: str) -> None:
    """Tell whoever started this process, at once."""
    print(text, flush=True)


class StopsBeforeTheRename(FileBlobStore):
    """Waits to be told, where all is written and nothing has its name yet."""

    def _rename(self, leftover: str, hash: str, folder: int) -> None:
        say(leftover)
        sys.stdin.readline()
        super()._rename(leftover, hash, folder)


async def stops(root: Path) -> None:
    """Put a blob, and stop before it is there."""
    say(await put(StopsBeforeTheRename(root), OURS, DATA))


async def fills(root: Path) -> None:
    """Put a blob where files may have 5000 bytes, then a smaller one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    store = FileBlobStore(root)
    for data in (DATA, DATA[:5000]):
        try:
            say(await put(store, OURS, data))
        except BlobError as error:
            say(error.code)


async def repeats(root: Path) -> None:
    """Put the same blobs and delete them, again and again; say what failed."""
    store = FileBlobStore(root)
    failed: list[str] = []
    say("ready")
    sys.stdin.readline()
    for _ in range(60):
        try:
            await put(store, OURS, DATA)
            await put(store, OURS, b"another")
            await store.delete(*OURS)
            await store.sweep()
        except BlobError as error:
            failed.append(str(error))
    say(f"{failed}")


if __name__ == "__main__":
    TASKS = {"stops": stops, "fills": fills, "repeats": repeats}
    asyncio.run(TASKS[sys.argv[1]](Path(sys.argv[2])))
