"""Stores in DynamoDB for tests: tables of their own, a clock that is moved by hand."""

import copy
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Final, Protocol

from psych_runtime.ports.store import Store
from psych_runtime.store.dynamodb._client import DynamoClient, DynamoOptions, Opener, opener
from psych_runtime.store.dynamodb.store import DynamoStore
from tests.functional.store.harness import ManualSystem

type Wrap = Callable[[DynamoClient], DynamoClient]

_SHARDS: Final = 4
_NUMBERS: Final[Iterator[int]] = count(1)


class MovedSystem(ManualSystem):
    """A System whose clocks both move only when told."""

    def __init__(self) -> None:
        super().__init__()
        self._moved = 1000.0

    def monotonic(self) -> float:
        return self._moved

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._moved += seconds


def wrapping(make: Opener, wrap: Wrap) -> Opener:
    """Return what makes clients that are wrapped."""

    @asynccontextmanager
    async def entered(
        inner: Awaitable[AbstractAsyncContextManager[DynamoClient]],
    ) -> AsyncIterator[DynamoClient]:
        async with await inner as client:
            yield wrap(client)

    async def made() -> AbstractAsyncContextManager[DynamoClient]:
        return entered(make())

    return made


class NewHarness(Protocol):
    """Makes harnesses, each with tables of its own, which are deleted in the end."""

    def __call__(self, wrap: Wrap | None = None, *, shards: int = _SHARDS) -> "DynamoHarness":
        """Return another one."""


class DynamoHarness:
    """Handles of tables of its own, made when the first one is opened; `drop` deletes them."""

    def __init__(
        self, endpoint_url: str, wrap: Wrap | None = None, *, shards: int = _SHARDS
    ) -> None:
        self.system = MovedSystem()
        self.options = DynamoOptions(
            region="us-east-1",
            endpoint_url=endpoint_url,
            prefix=f"t{os.getpid()}_{next(_NUMBERS)}_",
            patience_seconds=20.0,
            shards=shards,
        )
        self._use(wrap)
        self._is_migrated = False

    def _use(self, wrap: Wrap | None) -> None:
        make = opener(self.options)
        self.make_client = make if wrap is None else wrapping(make, wrap)

    def elsewhere(self, wrap: Wrap | None = None) -> "DynamoHarness":
        """Return handles of the same tables, as another process with clocks of its own has them."""
        other = copy.copy(self)
        other.system = MovedSystem()
        other._is_migrated = True
        other._use(wrap)
        return other

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Store]:
        async with DynamoStore(self.options, self.system, make_client=self.make_client) as store:
            if not self._is_migrated:
                self._is_migrated = True
                await store.migrate()
            yield store

    async def advance(self, seconds: float) -> None:
        self.system.advance(seconds)

    async def drop(self) -> None:
        """Delete the tables that were made."""
        async with await opener(self.options)() as client:
            for name in ("run", "log", "item"):
                await drop_table(client, f"{self.options.prefix}{name}")


async def drop_table(client: object, name: str) -> None:
    """Delete a table, if it is there."""
    delete: Callable[..., Awaitable[object]] = getattr(client, "delete_table")  # noqa: B009
    try:
        await delete(TableName=name)
    except Exception as error:
        if "ResourceNotFound" not in type(error).__name__:
            raise
