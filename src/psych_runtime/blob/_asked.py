"""What every blob store refuses alike, before it does anything, and what a ref is made of."""

import hashlib

from psych_runtime.errors import BlobCorrupt, InvalidArgument, InvalidPayload, PayloadTooLarge
from psych_runtime.ports.blob import MAX_BLOB_BYTES, MAX_RUN_BYTES, MAX_TENANT_BYTES, BlobOwner
from psych_schema.common import BlobRef

__all__ = ["check_data", "check_limit", "check_range", "checked_owner", "intact", "ref_of"]


def checked_owner(tenant: str, run_id: str, *others: str) -> BlobOwner:
    """Return the owner. Raises InvalidPayload, also for `others`, and InvalidArgument."""
    for what, name, bound in (("tenant", tenant, MAX_TENANT_BYTES), ("run", run_id, MAX_RUN_BYTES)):
        size = len(_utf8(name))
        if size > bound:
            raise InvalidArgument(what=what, problem=f"{size} bytes of UTF-8, at most {bound}")
    for other in others:
        _utf8(other)
    return BlobOwner(tenant, run_id)


def _utf8(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        problem = f"it is not Unicode: {error.reason}"
        raise InvalidPayload(what="a name or text", problem=problem) from None


def check_data(data: bytes) -> None:
    """Raise PayloadTooLarge for a blob above the bound."""
    if len(data) > MAX_BLOB_BYTES:
        raise PayloadTooLarge(what="a blob", size_bytes=len(data), bound_bytes=MAX_BLOB_BYTES)


def check_range(start: int, stop: int | None) -> None:
    """Raise InvalidArgument for a place before the first byte."""
    if start < 0 or (stop is not None and stop < 0):
        raise InvalidArgument(what="start and stop", problem=f"{start}, {stop}: below 0")


def check_limit(limit: int) -> None:
    """Raise InvalidArgument for a page of nothing."""
    if limit < 1:
        raise InvalidArgument(what="limit", problem=f"{limit}: use 1 or more")


def ref_of(data: bytes, media_type: str) -> BlobRef:
    """Return the ref of these bytes."""
    digest = hashlib.sha256(data).hexdigest()
    return BlobRef(hash=digest, bytes=len(data), media_type=media_type)


def intact(data: bytes, owner: BlobOwner, hash: str) -> bytes:
    """Return a whole blob that was read. Raises BlobCorrupt unless it is what was put."""
    if hashlib.sha256(data).hexdigest() != hash:
        raise BlobCorrupt(run_id=owner.run_id, hash=hash)
    return data
