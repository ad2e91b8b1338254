"""The part of the S3 client that blobs need, and one such client for each event loop."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Final, Protocol, cast

from psych_runtime.errors import BlobStoreClosed, MissingExtra

__all__ = ["Clients", "Opener", "S3Client", "body_of", "opener"]

_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 20
_CLOSE_SECONDS: Final = 5
_ATTEMPTS: Final = 3


class S3Client(Protocol):
    """Calls of the service; each takes and returns what its API reference says."""

    async def put_object(self, **arguments: object) -> Mapping[str, object]:
        """Store an object."""

    async def get_object(self, **arguments: object) -> Mapping[str, object]:
        """Begin to read an object."""

    async def list_objects_v2(self, **arguments: object) -> Mapping[str, object]:
        """Return a page of keys."""

    async def delete_objects(self, **arguments: object) -> Mapping[str, object]:
        """Delete at most 1000 objects."""


class _Body(AbstractAsyncContextManager[object], Protocol):
    async def read(self) -> bytes:
        """Return the rest of it."""


type Opener = Callable[[], Awaitable[AbstractAsyncContextManager[S3Client]]]
"""Makes a client, to be entered on the loop that it was made on."""


async def body_of(answer: Mapping[str, object]) -> bytes:
    """Return the object that `get_object` has begun to read."""
    body = cast("_Body", answer["Body"])
    async with body:
        return await body.read()


def opener(*, endpoint_url: str | None, region: str | None) -> Opener:
    """Return what makes clients with the credentials of the usual AWS chain."""

    async def make() -> AbstractAsyncContextManager[S3Client]:
        # the library and the service's description take a second to load
        begin = await asyncio.to_thread(_make, endpoint_url, region)
        return begin()  # here, not in the thread: what is made is entered, or nothing is made

    return make


def _make(
    endpoint_url: str | None, region: str | None
) -> Callable[[], AbstractAsyncContextManager[S3Client]]:
    """Return what makes a client to enter. Raises MissingExtra."""
    try:
        import aioboto3
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ModuleNotFoundError as error:
        raise MissingExtra(feature="S3BlobStore", extra="s3") from error
    botocore_session = get_session()
    botocore_session.register_component("data_loader", _descriptions())
    config = AioConfig(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        # the SHA-256 that put sends is checked; others than AWS may not know more than that
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if endpoint_url else "auto"},
    )
    session = aioboto3.Session(botocore_session=botocore_session, region_name=region)
    begin: Callable[[], AbstractAsyncContextManager[S3Client]] = functools.partial(
        session.client, "s3", endpoint_url=endpoint_url, config=config
    )
    return begin


class _Loader(Protocol):
    def load_service_model(self, service_name: str, type_name: str) -> object:
        """Return a description of a service, which is kept for the next call."""


@functools.cache
def _descriptions() -> _Loader:
    """Return what describes the service, loaded once in a process."""
    from botocore.loaders import create_loader

    loader: _Loader = create_loader()
    for part in ("service-2", "endpoint-rule-set-1"):
        loader.load_service_model("s3", part)
    return loader


class _Line:
    """The client of one loop; everything in here happens on that loop."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._lock = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._client: S3Client | None = None
        self._closed = False

    async def client(self) -> S3Client:
        async with self._lock:
            if self._closed:
                raise BlobStoreClosed
            if self._client is None:
                self._client = await self._stack.enter_async_context(await self._opener())
            return self._client

    async def close(self) -> None:
        async with self._lock:
            self._closed = True
            await self._stack.aclose()


class Clients:
    """One client for each loop that asks, since connections belong to a loop."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._lines: dict[asyncio.AbstractEventLoop, _Line] = {}
        self._closed = False

    async def client(self) -> S3Client:
        """Return the running loop's client, opened with the first call. BlobStoreClosed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise BlobStoreClosed
            line = self._lines.get(loop)
            if line is None:
                line = self._lines[loop] = _Line(self._opener)
        return await line.client()

    async def close(self) -> None:
        """Close every client on its loop; that of a loop that has ended is past closing."""
        here = asyncio.get_running_loop()
        with self._lock:
            self._closed = True
            lines, self._lines = self._lines, {}
        for loop, line in lines.items():
            if loop is here:
                await line.close()
            elif loop.is_running():
                await _close_there(line, loop)


async def _close_there(line: _Line, loop: asyncio.AbstractEventLoop) -> None:
    """Close a client on another thread's loop, which may be ending at this moment."""
    closing = line.close()
    try:
        ended = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(closing, loop))
    except RuntimeError:  # it has ended
        closing.close()
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await asyncio.gather(ended, return_exceptions=True)
