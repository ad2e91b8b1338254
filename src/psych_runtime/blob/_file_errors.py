"""What the system's errors mean for blobs in files, in one place."""

import errno
from pathlib import Path
from typing import Final

from psych_runtime.errors import (
    BlobError,
    BlobStoreFull,
    BlobStoreUnusable,
    BlobUnavailable,
)

__all__ = ["is_absent", "translate"]

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REMEDIES: Final = {
    errno.EACCES: "let this process read and write it",
    errno.EPERM: "let this process read and write it",
    errno.EROFS: "mount it writable",
    errno.ENOTDIR: "name a folder, or one that does not exist yet",
    errno.EISDIR: "move away what stands where a blob belongs",
    errno.ELOOP: "links inside the folder are not followed: move the blobs there",
    errno.ENAMETOOLONG: "name a folder with a shorter path",
    errno.EINVAL: "name a folder on a file system that can sync and rename",
}


def translate(error: OSError, root: Path) -> BlobError:
    """Return what the port says for `error`."""
    code = error.errno or 0
    problem = f"{root}: {error.strerror or type(error).__name__}"
    if code in _FULL:
        return BlobStoreFull(problem=problem)
    remedy = _REMEDIES.get(code)
    if remedy is not None:
        return BlobStoreUnusable(problem=problem, remedy=remedy)
    return BlobUnavailable(problem=problem)


def is_absent(error: OSError) -> bool:
    """Tell whether a path inside the root names nothing of ours: a link is none of ours."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
