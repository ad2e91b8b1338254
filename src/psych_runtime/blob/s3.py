"""Blobs as objects in a bucket of S3, or of a service that speaks its protocol.

An object is there whole or not at all, and durable when the service has answered (R-23).
"""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import batched
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from psych_runtime._system import System
from psych_runtime.blob._asked import (
    check_data,
    check_limit,
    check_range,
    checked_owner,
    intact,
    ref_of,
)
from psych_runtime.blob._keys import is_hash, owner_of, parts_of
from psych_runtime.blob._s3_client import Clients, S3Client, body_of, opener
from psych_runtime.blob._s3_errors import code_of, translate, translate_code
from psych_runtime.core.http_dates import read_http_date
from psych_runtime.errors import BlobNotFound, InvalidArgument
from psych_runtime.ports.blob import BlobOwner, Stored
from psych_schema.common import BlobRef

__all__ = ["S3BlobStore"]

_PREFIX: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_MAX_PREFIX_CHARACTERS: Final = 63  # so that the longest key has at most 1024
_BEHIND_EVERY_HASH: Final = "g"
_DELETED_AT_ONCE: Final = 1000  # the service's bound


class _Object(NamedTuple):
    key: str
    size_bytes: int
    age_seconds: float


class S3BlobStore:
    """Implements the blob port in a bucket, with the credentials of the usual AWS chain.

    The bucket is never created by this class. It needs s3:GetObject, s3:PutObject and
    s3:DeleteObject below the prefix, s3:ListBucket on the bucket. Where versions are kept, what
    is deleted goes on to exist as a version until a rule of the bucket removes it.

    Args:
        bucket: its name.
        prefix: goes before every key, so that a bucket can be shared; letters, digits and
            `_ - . /`, at most 63 characters.
        endpoint_url: of another service than AWS; scheme, host, port and path only.
        region: None takes it from the AWS configuration.
        system: gives the clock that ages are by where the service tells none.

    Raises:
        InvalidArgument: prefix or endpoint_url cannot be used.
    """

    def __init__(
        self,
        bucket: str,
        *,
        prefix: str = "",
        endpoint_url: str | None = None,
        region: str | None = None,
        system: System | None = None,
    ) -> None:
        self._bucket = bucket
        self._prefix = _checked_prefix(prefix)
        self._where = f"bucket {bucket!r}" + _checked_place(endpoint_url)
        self._clients = Clients(opener(endpoint_url=endpoint_url, region=region))
        self._system = system or System()

    async def _client(self) -> S3Client:
        try:
            return await self._clients.client()
        except Exception as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> Exception:
        return translate(error, self._where)

    def _folder(self, owner: BlobOwner) -> str:
        return self._prefix + "/".join(parts_of(owner)) + "/"

    async def put(self, tenant: str, run_id: str, data: bytes, *, media_type: str) -> BlobRef:
        """Store the bytes durably (R-23); the service checks their hash."""
        owner = checked_owner(tenant, run_id, media_type)
        check_data(data)
        client = await self._client()
        ref = await asyncio.to_thread(ref_of, data, media_type)
        try:
            await client.put_object(
                Bucket=self._bucket,
                Key=self._folder(owner) + ref.hash,
                Body=data,
                ChecksumSHA256=base64.b64encode(bytes.fromhex(ref.hash)).decode("ascii"),
            )
        except Exception as error:
            raise self._failure(error) from None
        return ref

    async def read(
        self, tenant: str, run_id: str, hash: str, *, start: int = 0, stop: int | None = None
    ) -> bytes:
        """Return a part of a blob, or all of it. Raises BlobNotFound, BlobCorrupt."""
        owner = checked_owner(tenant, run_id, hash)
        check_range(start, stop)
        client = await self._client()
        if not is_hash(hash):
            raise BlobNotFound(run_id=run_id, hash=hash)
        arguments: dict[str, object] = {"Bucket": self._bucket, "Key": self._folder(owner) + hash}
        whole = start == 0 and stop is None
        if not whole:
            arguments["Range"] = _range(start, stop)
        try:
            data = await body_of(await client.get_object(**arguments))
        except Exception as error:
            code = code_of(error)
            if code == "NoSuchKey":
                raise BlobNotFound(run_id=run_id, hash=hash) from None
            if code == "InvalidRange":
                return b""  # it is there, and ends before `start`
            raise self._failure(error) from None
        if whole:
            return await asyncio.to_thread(intact, data, owner, hash)
        return data if stop is None else data[: max(0, stop - start)]

    async def _objects(self, **arguments: object) -> AsyncGenerator[_Object]:
        """Yield what is below the prefix, by key, as many pages as are asked for."""
        client = await self._client()
        while True:
            try:
                page = await client.list_objects_v2(Bucket=self._bucket, **arguments)
            except Exception as error:
                raise self._failure(error) from None
            for found in _entries(page, self._now(page)):
                yield found
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def _now(self, page: Mapping[str, object]) -> datetime:
        """Return the service's clock, ours where it does not tell."""
        about = page.get("ResponseMetadata")
        headers = about.get("HTTPHeaders") if isinstance(about, Mapping) else None
        date = headers.get("date") if isinstance(headers, Mapping) else None
        told = read_http_date(date) if isinstance(date, str) else None
        return told or self._system.now()

    async def runs(self, *, after: BlobOwner | None = None, limit: int = 100) -> list[BlobOwner]:
        """Return a page of owners, sorted by their keys; costs a request per 1000 blobs."""
        check_limit(limit)
        arguments: dict[str, object] = {"Prefix": self._prefix}
        if after:
            folder = self._folder(checked_owner(*after))
            arguments["StartAfter"] = folder + _BEHIND_EVERY_HASH
        page: list[BlobOwner] = []
        async with aclosing(self._objects(**arguments)) as objects:
            async for found in objects:
                *parts, hash = found.key.removeprefix(self._prefix).split("/")
                owner = owner_of(tuple(parts)) if is_hash(hash) else None
                if owner is not None and owner not in page[-1:]:
                    page.append(owner)
                if len(page) == limit:
                    break
        return page

    async def listed(self, tenant: str, run_id: str) -> list[Stored]:
        """Return what is kept of a Run."""
        folder = self._folder(checked_owner(tenant, run_id))
        stored = []
        async for key, size, age in self._objects(Prefix=folder):
            hash = key.removeprefix(folder)
            if is_hash(hash):
                stored.append(Stored(hash, size, age))
        return stored

    async def delete(self, tenant: str, run_id: str, hashes: Sequence[str] | None = None) -> int:
        """Delete blobs of a Run; return how many were there."""
        folder = self._folder(checked_owner(tenant, run_id, *(hashes or ())))
        there = [blob.hash for blob in await self.listed(tenant, run_id)]
        wanted = there if hashes is None else sorted(set(hashes) & set(there))
        client = await self._client()
        for some in batched(wanted, _DELETED_AT_ONCE):
            keys = [{"Key": folder + hash} for hash in some]
            try:
                answer = await client.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True}
                )
            except Exception as error:
                raise self._failure(error) from None
            for code in _refusals(answer):
                raise translate_code(code, 0, self._where)
        return len(wanted)

    async def sweep(self) -> None:
        """Do nothing: an upload that was cut off leaves nothing."""
        await self._client()

    async def close(self) -> None:
        """Close the client of each loop that is still running."""
        await self._clients.close()

    async def __aenter__(self) -> Self:
        """Return the store itself; nothing is opened before the first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()


def _checked_prefix(prefix: str) -> str:
    text = prefix.strip("/")
    if not text:
        return ""
    if not _PREFIX.fullmatch(text) or len(text) > _MAX_PREFIX_CHARACTERS:
        problem = f"{prefix!r}: use letters, digits and _ - . /, at most 63 characters"
        raise InvalidArgument(what="prefix", problem=problem)
    return f"{text}/"


def _checked_place(endpoint_url: str | None) -> str:
    """Return where an error happened. Raises InvalidArgument; a password in it is not shown."""
    if endpoint_url is None:
        return ""
    parts = urlsplit(endpoint_url)
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        problem = "use http(s)://host:port; credentials come from the AWS chain alone"
        raise InvalidArgument(what="endpoint_url", problem=problem)
    return f" at {parts.scheme}://{parts.netloc}"


def _range(start: int, stop: int | None) -> str:
    """Return the header for [start, stop); one byte where none is asked for: is it there?"""
    return f"bytes={start}-" if stop is None else f"bytes={start}-{max(start, stop - 1)}"


def _entries(page: Mapping[str, object], now: datetime) -> Iterator[_Object]:
    contents = page.get("Contents")
    for entry in contents if isinstance(contents, Sequence) else ():
        modified = entry["LastModified"]
        yield _Object(entry["Key"], entry["Size"], max(0.0, (now - modified).total_seconds()))


def _refusals(answer: Mapping[str, object]) -> list[str]:
    """Return the codes of what was not deleted."""
    errors = answer.get("Errors")
    return [str(error["Code"]) for error in errors] if isinstance(errors, Sequence) else []
