"""The part of the DynamoDB client that the store needs, and how one is opened."""

import asyncio
import functools
import io
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from psych_runtime.errors import MissingExtra

__all__ = ["DynamoClient", "DynamoOptions", "Opener", "opener"]

_CONNECTIONS: Final = 32  # as many as `_lines` has turns
_CONNECT_SECONDS: Final = 1.0
_LARGE_BYTES: Final = 256 * 1024


class DynamoOptions(NamedTuple):
    """Where the tables are and how long to ask for them.

    Attributes:
        region: the AWS region; None is what the usual AWS chain says.
        endpoint_url: another address than the region's, such as an emulator's.
        prefix: goes before the name of each table.
        patience_seconds: how long one call asks again before StoreUnavailable; less than half a
            lease. Waiting for a turn is not counted while others of the handle get answers.
        shards: into how many parts `migrate` divides the indexes of a store that is new: 1, or
            a multiple of 4 up to 64. Each takes about 250 Runs a second, and costs every idle
            worker some six small queries a second.
    """

    region: str | None = None
    endpoint_url: str | None = None
    prefix: str = ""
    patience_seconds: float = 2.5
    shards: int = 4


class DynamoClient(Protocol):
    """Calls of the service; each takes and returns what its API reference says."""

    async def batch_get_item(self, **arguments: object) -> Mapping[str, object]:
        """Read up to 100 items."""

    async def batch_write_item(self, **arguments: object) -> Mapping[str, object]:
        """Write or delete up to 25 items."""

    async def create_table(self, **arguments: object) -> Mapping[str, object]:
        """Begin to make a table."""

    async def delete_item(self, **arguments: object) -> Mapping[str, object]:
        """Delete an item."""

    async def describe_table(self, **arguments: object) -> Mapping[str, object]:
        """Tell what a table is like."""

    async def describe_time_to_live(self, **arguments: object) -> Mapping[str, object]:
        """Tell which attribute says when an item goes."""

    async def get_item(self, **arguments: object) -> Mapping[str, object]:
        """Read an item."""

    async def put_item(self, **arguments: object) -> Mapping[str, object]:
        """Write an item."""

    async def query(self, **arguments: object) -> Mapping[str, object]:
        """Read a page of a partition."""

    async def transact_write_items(self, **arguments: object) -> Mapping[str, object]:
        """Write up to 100 items, all or none."""

    async def update_item(self, **arguments: object) -> Mapping[str, object]:
        """Change attributes of an item."""

    async def update_table(self, **arguments: object) -> Mapping[str, object]:
        """Begin to change a table."""

    async def update_time_to_live(self, **arguments: object) -> Mapping[str, object]:
        """Say which attribute says when an item goes."""


type Opener = Callable[[], Awaitable[AbstractAsyncContextManager[DynamoClient]]]
"""Makes a client, to be entered on the loop that it was made on."""


def opener(options: DynamoOptions) -> Opener:
    """Return what makes clients with the credentials of the usual AWS chain."""

    async def make() -> AbstractAsyncContextManager[DynamoClient]:
        # the library and the service's description take a second to load
        begin = await asyncio.to_thread(_load, options)
        return begin()  # here, not in the thread: what is made is entered, or nothing is made

    return make


def _load(options: DynamoOptions) -> Callable[[], AbstractAsyncContextManager[DynamoClient]]:
    """Return what makes a client to enter. Raises MissingExtra."""
    try:
        import aioboto3
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session
    except ModuleNotFoundError as error:
        raise MissingExtra(feature="the DynamoDB store", extra="dynamodb") from error
    botocore_session = get_session()
    botocore_session.register_component("data_loader", _descriptions())
    botocore_session.register("before-send.dynamodb", _stream)
    config = AioConfig(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=max(0.1, options.patience_seconds / 2),
        max_pool_connections=_CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": 1},  # the store asks again itself
    )
    session = aioboto3.Session(botocore_session=botocore_session, region_name=options.region)
    begin: Callable[[], AbstractAsyncContextManager[DynamoClient]] = functools.partial(
        session.client, "dynamodb", endpoint_url=options.endpoint_url, config=config
    )
    return begin


class _Request(Protocol):
    body: object


def _stream(request: _Request, **_: object) -> None:
    """Let a large request be sent piece by piece, so that it does not hold up the loop."""
    if isinstance(request.body, bytes) and len(request.body) > _LARGE_BYTES:
        request.body = io.BytesIO(request.body)


class _Loader(Protocol):
    def load_service_model(self, service_name: str, type_name: str) -> object:
        """Return a description of a service, which is kept for the next call."""


@functools.cache
def _descriptions() -> _Loader:
    """Return what describes the service, loaded once in a process."""
    from botocore.loaders import create_loader

    loader: _Loader = create_loader()
    for part in ("service-2", "endpoint-rule-set-1"):
        loader.load_service_model("dynamodb", part)
    return loader
