"""What an emulator never does: indexes that lag, conflicts, throttling, half-done batches.

Stands between the store and the real client. What it strikes is counted; the same in each run,
as far as the order of the calls is.
"""

import asyncio
from bisect import insort
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from botocore.exceptions import ClientError, ReadTimeoutError

from psych_runtime.store.contract._faults import Chance
from psych_runtime.store.dynamodb._client import DynamoClient

__all__ = ["KINDS", "Kind", "Trouble", "UnrulyClient", "troubled"]

type Kind = Literal["conflict", "in_progress", "lag", "throttled", "unanswered", "unprocessed"]
type Answer = Mapping[str, object]
type Item = Mapping[str, Mapping[str, object]]

KINDS: Final[tuple[Kind, ...]] = (
    "conflict",
    "in_progress",
    "lag",
    "throttled",
    "unanswered",
    "unprocessed",
)
_LAG_SECONDS: Final = 2.0


class Version(NamedTuple):
    """A header as it was from a moment on; None: it was gone."""

    moment: float
    number: int
    item: Item | None


class Trouble:
    """What befalls the calls of all clients of one store; `chances` say how often.

    With `at_once`, each kind strikes the first call that it can, whatever its chance.
    """

    def __init__(
        self,
        chances: Mapping[Kind, float],
        *,
        seed: int = 1,
        lag_seconds: float = _LAG_SECONDS,
        at_once: bool = False,
    ) -> None:
        self.struck: Counter[Kind] = Counter()
        self.calls: Counter[str] = Counter()
        self._chance = Chance(seed)
        self._chances = chances
        self._lag_seconds = lag_seconds
        self._at_once = at_once
        self._versions: dict[str, list[Version]] = {}
        self._stands_still: float | None = None
        self._count = 0

    def strikes(self, kind: Kind) -> bool:
        first = self._at_once and kind in self._chances and not self.struck[kind]
        if not first and self._chance.random() >= self._chances.get(kind, 0.0):
            return False
        self.struck[kind] += 1
        return True

    def pick(self, count: int) -> int:
        return int(self._chance.random() * count)

    def remember(self, run: str, item: Item | None) -> None:
        """Keep how a header is now, since the index may be asked how it was."""
        self._count += 1
        moment = asyncio.get_running_loop().time()
        insort(self._versions.setdefault(run, []), Version(moment, self._count, item))

    def stand_still(self) -> None:
        """Let the indexes show what they show now, whatever is written."""
        self._stands_still = asyncio.get_running_loop().time()

    def go_on(self) -> None:
        """Let the indexes show everything again."""
        self._stands_still = None

    def as_it_was(self) -> list[Item]:
        """Return the headers as an index shows them that lags by up to two seconds."""
        lag = self._lag_seconds * self._chance.random()
        moment = asyncio.get_running_loop().time() - lag
        if self._stands_still is not None:
            moment = min(moment, self._stands_still)
        found: list[Item] = []
        for versions in map(list, list(self._versions.values())):  # another loop may add some
            seen = [version for version in versions if version.moment <= moment]
            if len(seen) < len(versions):
                self.struck["lag"] += 1
            if seen and seen[-1].item is not None:
                found.append(seen[-1].item)
        return found


class UnrulyClient:
    """The client of one loop, with trouble."""

    def __init__(self, inner: DynamoClient, trouble: Trouble, *, lags: bool = True) -> None:
        self._inner = inner
        self._trouble = trouble
        self._lags = lags

    async def _befall(self, name: str) -> None:
        self._trouble.calls[name] += 1
        await asyncio.sleep(0)  # others come in between
        if self._trouble.strikes("throttled"):
            raise _error("ProvisionedThroughputExceededException", name)

    async def _write(
        self, name: str, act: Callable[[], Awaitable[Answer]], runs: Sequence[object]
    ) -> Answer:
        await self._befall(name)
        if self._trouble.strikes("in_progress"):
            raise _error("TransactionInProgressException", name)
        answer = await act()
        for run in runs if self._lags else ():
            await self._remember(run)
        if self._trouble.strikes("unanswered"):
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        return answer

    async def _remember(self, where: object) -> None:
        assert isinstance(where, tuple)
        table, pk = where
        answer = await self._inner.get_item(
            TableName=table, Key={"pk": {"S": pk}}, ConsistentRead=True
        )
        item = answer.get("Item")
        assert item is None or isinstance(item, Mapping)
        self._trouble.remember(f"{table} {pk}", item)

    async def transact_write_items(self, **arguments: object) -> Answer:
        writes = arguments["TransactItems"]
        assert isinstance(writes, Sequence)
        runs = [run for write in writes for run in _runs(next(iter(write.values())))]
        if self._trouble.strikes("conflict"):
            self._trouble.calls["transact_write_items"] += 1
            reasons = [{"Code": "TransactionConflict"}, *[{"Code": "None"} for _ in writes[1:]]]
            raise _error("TransactionCanceledException", "TransactWriteItems", reasons)
        return await self._write(
            "transact_write_items", lambda: self._inner.transact_write_items(**arguments), runs
        )

    async def put_item(self, **arguments: object) -> Answer:
        return await self._write("put_item", lambda: self._inner.put_item(**arguments), ())

    async def update_item(self, **arguments: object) -> Answer:
        return await self._write("update_item", lambda: self._inner.update_item(**arguments), ())

    async def delete_item(self, **arguments: object) -> Answer:
        return await self._write("delete_item", lambda: self._inner.delete_item(**arguments), ())

    async def get_item(self, **arguments: object) -> Answer:
        await self._befall("get_item")
        return await self._inner.get_item(**arguments)

    async def batch_get_item(self, **arguments: object) -> Answer:
        await self._befall("batch_get_item")
        requests = arguments["RequestItems"]
        assert isinstance(requests, Mapping)
        kept: dict[str, object] = {}
        left: dict[str, object] = {}
        for table, request in requests.items():
            keys = request["Keys"]
            cut = len(keys)
            if cut > 1 and self._trouble.strikes("unprocessed"):
                cut = 1 + self._trouble.pick(cut - 1)
                left[table] = {**request, "Keys": keys[cut:]}
            kept[table] = {**request, "Keys": keys[:cut]}
        answer = await self._inner.batch_get_item(RequestItems=kept)
        return {**answer, "UnprocessedKeys": left}

    async def batch_write_item(self, **arguments: object) -> Answer:
        await self._befall("batch_write_item")
        requests = arguments["RequestItems"]
        assert isinstance(requests, Mapping)
        kept: dict[str, object] = {}
        left: dict[str, object] = {}
        for table, writes in requests.items():
            cut = len(writes)
            if cut > 1 and self._trouble.strikes("unprocessed"):
                cut = 1 + self._trouble.pick(cut - 1)
                left[table] = writes[cut:]
            kept[table] = writes[:cut]
        answer = await self._inner.batch_write_item(RequestItems=kept)
        return {**answer, "UnprocessedItems": left}

    async def query(self, **arguments: object) -> Answer:
        await self._befall("query")
        if self._lags and "IndexName" in arguments:
            return _query(self._trouble.as_it_was(), arguments)
        return await self._inner.query(**arguments)

    async def create_table(self, **arguments: object) -> Answer:
        return await self._inner.create_table(**arguments)

    async def describe_table(self, **arguments: object) -> Answer:
        return await self._inner.describe_table(**arguments)

    async def describe_time_to_live(self, **arguments: object) -> Answer:
        return await self._inner.describe_time_to_live(**arguments)

    async def update_table(self, **arguments: object) -> Answer:
        return await self._inner.update_table(**arguments)

    async def update_time_to_live(self, **arguments: object) -> Answer:
        return await self._inner.update_time_to_live(**arguments)


def troubled(trouble: Trouble) -> Callable[[DynamoClient], DynamoClient]:
    """Return what wraps clients, which share one trouble."""
    return lambda client: UnrulyClient(client, trouble)


def _runs(write: Mapping[str, object]) -> Sequence[tuple[object, object]]:
    """Return which header a write of a transaction is about."""
    table = write["TableName"]
    key = write.get("Key", write.get("Item"))
    assert isinstance(key, Mapping)
    return [(table, key["pk"]["S"])] if str(table).endswith("run") else []


def _error(code: str, operation: str, reasons: Sequence[Mapping[str, object]] = ()) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": code},
        "ResponseMetadata": {"HTTPStatusCode": 400},
        "CancellationReasons": list(reasons),
    }
    return ClientError(response, operation)


def _query(items: Sequence[Item], arguments: Mapping[str, object]) -> Answer:
    """Answer a query of an index as the service does, over the headers that it shows."""
    names, values = arguments["ExpressionAttributeNames"], arguments["ExpressionAttributeValues"]
    assert isinstance(names, Mapping)
    assert isinstance(values, Mapping)
    partition = names["#p"]
    sort = partition.replace("_pk", "_sk")
    low = values.get(":low", {"S": ""})["S"].encode()
    high = values[":high"]["S"].encode() if ":high" in values else b"\xff"
    forward = arguments.get("ScanIndexForward", True)

    def place(item: Item) -> tuple[bytes, str]:
        return str(item[sort]["S"]).encode(), str(item["pk"]["S"])

    found = [
        item
        for item in items
        if item.get(partition) == values[":p"] and low <= place(item)[0] <= high
    ]
    found.sort(key=place, reverse=not forward)
    start = arguments.get("ExclusiveStartKey")
    if isinstance(start, Mapping):
        at = place(start)
        found = [item for item in found if (place(item) > at) == forward and place(item) != at]
    limit = arguments.get("Limit")
    assert limit is None or isinstance(limit, int)
    answer: dict[str, object] = {"Items": found[:limit]}
    if limit is not None and len(found) >= limit:
        last = found[limit - 1]
        answer["LastEvaluatedKey"] = {name: last[name] for name in ("pk", partition, sort)}
    return answer
