"""The DynamoDB store for tests: tables of its own in the emulator."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import aioboto3  # noqa: F401  loaded here: urllib3, which it loads, binds a socket to learn of IPv6

from psych_runtime._system import System
from psych_runtime.ports.store import Store
from psych_runtime.store.dynamodb._url import options_of
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.services import start_server

__all__ = ["dynamo_place", "dynamo_store"]

_NUMBERS: Final[Iterator[int]] = count(1)


def dynamo_place() -> tuple[str, str]:
    """Return a URL, and a prefix that nobody else uses."""
    address = start_server("aws").url
    return f"dynamodb://us-east-1?endpoint_url={address}", f"e{os.getpid()}_{next(_NUMBERS)}_"


@asynccontextmanager
async def dynamo_store(clock: System) -> AsyncIterator[Store]:
    """Yield a store whose tables are new; the emulator forgets them with the server."""
    async with DynamoStore(options_of(*dynamo_place()), clock) as store:
        await store.migrate()
        yield store
