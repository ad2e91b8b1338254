"""What a blob store raises on purpose."""

from psych_runtime.errors._base import PsychError, brief

__all__ = [
    "BlobCorrupt",
    "BlobError",
    "BlobNotFound",
    "BlobStoreClosed",
    "BlobStoreFull",
    "BlobStoreUnusable",
    "BlobUnavailable",
]


class BlobError(PsychError):
    """Base of what a blob store raises."""

    code = "blob"


class BlobUnavailable(BlobError):
    """The blob store did not answer: what was asked may or may not have happened. Repeat it."""

    code = "blob_unavailable"

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the blob store did not answer ({problem}); try again, every call may be repeated"
        )


class BlobStoreFull(BlobUnavailable):
    """The blob store has no room left; nothing of the blob is there."""

    code = "blob_store_full"

    def __init__(self, *, problem: str) -> None:
        super().__init__(problem=problem)
        self.args = (f"the blob store is full ({problem}); make room, nothing was half-written",)


class BlobStoreClosed(BlobError):
    """This blob store has been closed; nothing was asked of it."""

    code = "blob_store_closed"

    def __init__(self) -> None:
        super().__init__("this blob store has been closed; open another one")


class BlobStoreUnusable(BlobError):
    """A place for blobs that cannot be used as it is; repeating changes nothing.

    `problem` says what was met and where, `remedy` what to change.
    """

    code = "blob_store_unusable"

    def __init__(self, *, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")


class BlobNotFound(BlobError):
    """No such blob of this Run in this tenant; another Run's or tenant's blob looks the same."""

    code = "blob_not_found"

    def __init__(self, *, run_id: str, hash: str) -> None:
        self.run_id = run_id
        self.hash = hash
        super().__init__(
            f"run {brief(run_id)!r} has no blob {brief(hash)!r} in this tenant; "
            "check the reference and the scope, or it has been erased"
        )


class BlobCorrupt(BlobError):
    """The bytes that are kept are not those that were put; they are left as they are."""

    code = "blob_corrupt"

    def __init__(self, *, run_id: str, hash: str) -> None:
        self.run_id = run_id
        self.hash = hash
        super().__init__(
            f"blob {brief(hash)} of run {brief(run_id)!r} has other bytes than its hash says; "
            "restore it from a backup, or put the same bytes again"
        )
