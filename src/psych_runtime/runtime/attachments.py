"""The bytes of images and files that a conversation names, as a model is sent them (MOD-9)."""

import contextlib
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from psych_runtime.core.codec import decode
from psych_runtime.core.preview import MAX_ATTACHED_BYTES
from psych_runtime.errors import BlobNotFound, UnsendableRequest
from psych_runtime.runtime.commit import ask_surely
from psych_schema.common import BlobRef
from psych_schema.record import RunAdmitted

if TYPE_CHECKING:
    from psych_runtime.runtime.attempt import Attempt

__all__ = ["Attachments"]


class _Read(NamedTuple):
    size_bytes: int
    text: str  # in base64


class Attachments:
    """Reads each blob of an attempt's conversation once."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    async def of(self, attempt: "Attempt") -> Mapping[str, str]:
        """Return the blobs that the conversation names now, in base64, by hash.

        Raises:
            UnsendableRequest: there is no blob store, or they are too large together.
            BlobError: as the blob store says; BlobNotFound when no Run of the thread has it.
        """
        blobs = attempt.conversation.blobs
        if not blobs:
            return {}
        _check_size(sum(one.bytes for one in blobs.values()))
        self._read = {hash: one for hash, one in self._read.items() if hash in blobs}
        for hash, ref in blobs.items():
            if hash not in self._read:
                data = await _bytes(attempt, ref)
                self._read[hash] = _Read(len(data), b64encode(data).decode())
                _check_size(sum(one.size_bytes for one in self._read.values()))
        return {hash: one.text for hash, one in self._read.items()}


def _check_size(size_bytes: int) -> None:
    """Raise UnsendableRequest above the bound; what a message says of a size need not be true."""
    if size_bytes > MAX_ATTACHED_BYTES:
        raise UnsendableRequest(
            f"the conversation's images and files have {size_bytes} bytes together, the bound is "
            f"{MAX_ATTACHED_BYTES}"
        )


async def _bytes(attempt: "Attempt", ref: BlobRef) -> bytes:
    """Read a blob of this Run, or of one before it in the thread, whose words were taken over."""
    store = attempt.host.runtime.blob
    if store is None:
        raise UnsendableRequest(
            f"a message has an image or file ({ref.media_type}), and this Runtime has no blob "
            "store: pass blob="
        )
    with contextlib.suppress(BlobNotFound):
        return await store.read(attempt.tenant, attempt.run_id, ref.hash)
    async for run_id in _before(attempt):
        with contextlib.suppress(BlobNotFound):
            return await store.read(attempt.tenant, run_id, ref.hash)
    return await store.read(attempt.tenant, attempt.run_id, ref.hash)


async def _before(attempt: "Attempt") -> AsyncGenerator[str]:
    """Yield the ids of the Runs before this one in its thread, the last one first."""
    previous = attempt.admitted.thread.previous
    while previous is not None:
        yield previous
        read = partial(attempt.host.store.read, attempt.tenant, previous, limit=1)
        rows = await ask_surely(read)
        first = decode(rows[0]).record if rows else None
        previous = first.thread.previous if isinstance(first, RunAdmitted) else None
