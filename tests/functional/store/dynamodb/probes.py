"""Clients that do one thing to the calls that go through them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from psych_runtime.store.dynamodb._client import DynamoClient

__all__ = ["Answer", "Counting", "Hook", "Hooked", "Hooks", "hooked"]

type Answer = Mapping[str, object]
type Call = Callable[..., Awaitable[Answer]]
type Hook = Callable[[Call, Mapping[str, object]], Awaitable[Answer]]
type Hooks = Mapping[str, Hook]


class Counting:
    """Counts calls by their name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def wrap(self, client: DynamoClient) -> DynamoClient:
        return Hooked(client, {}, self.calls)


class Hooked:
    """A client whose named calls go through hooks."""

    def __init__(self, inner: DynamoClient, hooks: Hooks, calls: Counter[str]) -> None:
        self._inner = inner
        self._hooks = hooks
        self._calls = calls

    async def _call(self, name: str, call: Call, arguments: Mapping[str, object]) -> Answer:
        self._calls[name] += 1
        await asyncio.sleep(0)
        hook = self._hooks.get(name)
        return await (call(**arguments) if hook is None else hook(call, arguments))

    async def batch_get_item(self, **arguments: object) -> Answer:
        return await self._call("batch_get_item", self._inner.batch_get_item, arguments)

    async def batch_write_item(self, **arguments: object) -> Answer:
        return await self._call("batch_write_item", self._inner.batch_write_item, arguments)

    async def create_table(self, **arguments: object) -> Answer:
        return await self._call("create_table", self._inner.create_table, arguments)

    async def delete_item(self, **arguments: object) -> Answer:
        return await self._call("delete_item", self._inner.delete_item, arguments)

    async def describe_table(self, **arguments: object) -> Answer:
        return await self._call("describe_table", self._inner.describe_table, arguments)

    async def describe_time_to_live(self, **arguments: object) -> Answer:
        call = self._inner.describe_time_to_live
        return await self._call("describe_time_to_live", call, arguments)

    async def get_item(self, **arguments: object) -> Answer:
        return await self._call("get_item", self._inner.get_item, arguments)

    async def put_item(self, **arguments: object) -> Answer:
        return await self._call("put_item", self._inner.put_item, arguments)

    async def query(self, **arguments: object) -> Answer:
        return await self._call("query", self._inner.query, arguments)

    async def transact_write_items(self, **arguments: object) -> Answer:
        call = self._inner.transact_write_items
        return await self._call("transact_write_items", call, arguments)

    async def update_item(self, **arguments: object) -> Answer:
        return await self._call("update_item", self._inner.update_item, arguments)

    async def update_table(self, **arguments: object) -> Answer:
        return await self._call("update_table", self._inner.update_table, arguments)

    async def update_time_to_live(self, **arguments: object) -> Answer:
        call = self._inner.update_time_to_live
        return await self._call("update_time_to_live", call, arguments)


def hooked(**hooks: Hook) -> Callable[[DynamoClient], DynamoClient]:
    """Return what wraps clients so that these calls go through their hooks."""
    return lambda client: Hooked(client, hooks, Counter())
