"""Asking DynamoDB: again with jitter where that helps, inside a bound of time, page by page."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from psych_runtime.errors import StoreError, StoreUnavailable
from psych_runtime.store.dynamodb._client import DynamoClient
from psych_runtime.store.dynamodb._failures import Again, Refused, translate
from psych_runtime.store.dynamodb._items import header_of, revision_of, where_run
from psych_runtime.store.dynamodb._names import Key, Tables, fits
from psych_runtime.store.dynamodb._shared import Shared
from psych_runtime.store.dynamodb._turns import Turns
from psych_runtime.store.dynamodb._wire import Attribute, Item, item_of, items_of, text
from psych_schema.store import RunRow

__all__ = ["Ask", "Headers", "Page", "Range"]

_FIRST_SECONDS: Final = 0.02
_LONGEST_SECONDS: Final = 0.4
_KEYS: Final = 100  # of one BatchGetItem
_WRITES: Final = 25  # of one BatchWriteItem

type _Act = Callable[[DynamoClient], Awaitable[Mapping[str, object]]]


class Range(NamedTuple):
    """A part of a partition; `low` and `high` are both inside it.

    `of` is the secondary index that it is in, None for the table's own keys.
    """

    table: str
    of: str | None
    partition: str
    low: str | None = None
    high: str | None = None

    def arguments(self) -> dict[str, object]:
        """Return what a query says about it."""
        stem = "" if self.of is None else f"{self.of}_"
        names = {"#p": f"{stem}pk"}
        values: dict[str, Attribute] = {":p": text(self.partition)}
        condition = "#p = :p"
        if self.low is not None:
            names["#s"] = f"{stem}sk"
            values[":low"] = text(self.low)
            above = "#s >= :low" if self.high is None else "#s BETWEEN :low AND :high"
            condition += f" AND {above}"
        if self.high is not None:
            values[":high"] = text(self.high)
        arguments: dict[str, object] = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        if self.of is None:
            arguments["ConsistentRead"] = True
        else:
            arguments["IndexName"] = self.of
        return arguments


class Page(NamedTuple):
    """Items of a range in order; `last` is where to go on, None at the end."""

    items: Sequence[Item]
    last: Item | None


class Ask:
    """One call of the port: everything that it asks for, in turns, within its patience."""

    def __init__(
        self,
        client: DynamoClient,
        turns: Turns,
        tables: Tables,
        shared: Shared,
        patience_seconds: float,
    ) -> None:
        self.tables = tables
        self.shared = shared
        self.system = shared.system
        self._client = client
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._patience_seconds = patience_seconds
        self._half = self._loop.time() + patience_seconds / 2
        self._deadline = self._loop.time() + patience_seconds

    @property
    def moment(self) -> float:
        """The loop's clock."""
        return self._loop.time()

    def is_half_over(self) -> bool:
        """Tell whether half of the time is up: what can be left for another call should be."""
        return self._loop.time() >= self._half

    @property
    def shards(self) -> int:
        """Into how many parts the indexes are divided."""
        assert self.shared.shards is not None  # the tables were looked at first
        return self.shared.shards

    async def call(self, operation: str, act: _Act) -> Mapping[str, object]:
        """Return the answer to a request that may be sent again unchanged.

        Raises Refused where a condition does not hold, StoreUnavailable when time is up, and
        what else `translate` says.
        """
        doubtful = False
        problem = ""
        pause = _FIRST_SECONDS
        while True:
            failure = await self._try(operation, act)
            if not isinstance(failure, Exception):
                return failure
            if isinstance(failure, Refused):
                failure.doubtful = doubtful
            if not isinstance(failure, Again):
                raise failure
            doubtful = doubtful or failure.done
            if not problem or self._loop.time() < self._deadline:
                problem = failure.problem  # one that was cut short hides what the trouble is
            await self.pause(pause, problem)
            pause = min(2 * pause, _LONGEST_SECONDS)

    async def _try(self, operation: str, act: _Act) -> Mapping[str, object] | Exception:
        try:
            async with self._turns.turn(self._deadline - self._loop.time()) as left:
                return await self._try_now(operation, act, left)
        except StoreError as error:
            return error

    async def _try_now(
        self, operation: str, act: _Act, left_seconds: float
    ) -> Mapping[str, object] | Exception:
        waited = max(0.0, self._loop.time() + left_seconds - self._deadline)
        self._half += waited
        self._deadline += waited
        end: Mapping[str, object] | Exception
        try:
            async with asyncio.timeout_at(self._deadline):
                end = await act(self._client)
        except Exception as error:  # whatever it is, one place says what it means
            end = translate(error, operation)
        if isinstance(end, Again):
            self._turns.missed(end.problem)
        else:
            self._turns.heard()
        return end

    async def pause(self, seconds: float, problem: str) -> None:
        """Let some time pass before the next try. StoreUnavailable: there is none left."""
        wanted = seconds * (0.5 + self.system.random())
        if self._loop.time() + wanted >= self._deadline:
            raise StoreUnavailable(problem=problem)
        await asyncio.sleep(wanted)

    async def rest(self, seconds: float) -> None:
        """Let time pass that nobody is asked in: patience does not count it."""
        self._half += seconds
        self._deadline += seconds
        await asyncio.sleep(seconds)

    async def get(self, table: str, where: Key) -> Item | None:
        """Return an item, consistently."""
        answer = await self.call(
            "GetItem",
            lambda client: client.get_item(TableName=table, Key=where, ConsistentRead=True),
        )
        return item_of(answer.get("Item"))

    async def put(self, table: str, item: Item) -> None:
        """Write an item, whatever stands there."""
        await self.call("PutItem", lambda client: client.put_item(TableName=table, Item=item))

    async def put_new(self, table: str, item: Item, *, own: str | None = None) -> bool:
        """Write an item where none stands; False when one does, which may be this very one.

        `own` is the attribute that tells them apart, where that matters.
        """
        try:
            await self.call(
                "PutItem",
                lambda client: client.put_item(
                    TableName=table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ),
            )
        except Refused as refused:
            there = refused.reasons[0].item
            if own is None or there is None or not refused.doubtful:
                return False
            return there.get(own) == item.get(own)
        return True

    async def update(self, table: str, where: Key, **arguments: object) -> Item | None:
        """Change an item; return it as it is then where `ReturnValues` asks for that."""
        answer = await self.call(
            "UpdateItem",
            lambda client: client.update_item(
                TableName=table,
                Key=where,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **arguments,
            ),
        )
        return item_of(answer.get("Attributes"))

    async def delete(self, table: str, where: Key, **arguments: object) -> bool:
        """Delete an item; False when its condition does not hold."""
        try:
            await self.call(
                "DeleteItem",
                lambda client: client.delete_item(TableName=table, Key=where, **arguments),
            )
        except Refused:
            return False
        return True

    async def transact(self, requests: Sequence[object], token: str) -> None:
        """Write all or none. Raises Refused, with a reason for each."""
        await self.call(
            "TransactWriteItems",
            lambda client: client.transact_write_items(
                TransactItems=requests, ClientRequestToken=token
            ),
        )

    async def delete_many(self, keys: Iterable[tuple[str, Key]]) -> None:
        """Delete items, whether they are there or not."""
        left = [(table, {"DeleteRequest": {"Key": key}}) for table, key in keys]
        for start in range(0, len(left), _WRITES):
            requests: dict[str, list[object]] = {}
            for table, request in left[start : start + _WRITES]:
                requests.setdefault(table, []).append(request)
            await self._write_all(requests)

    async def _write_all(self, requests: Mapping[str, object]) -> None:
        pause = _FIRST_SECONDS
        while requests:
            answer = await self.call("BatchWriteItem", partial(_write_batch, requests))
            left = answer.get("UnprocessedItems")
            requests = left if isinstance(left, Mapping) else {}
            if requests:
                await self.pause(pause, "DynamoDB, BatchWriteItem: UnprocessedItems")
                pause = min(2 * pause, _LONGEST_SECONDS)

    async def get_many(
        self,
        keys: Iterable[tuple[str, Key]],
        *,
        consistent: bool = True,
        columns: Sequence[str] = (),
    ) -> dict[str, list[Item]]:
        """Return the items that are there, by table; each key once, in any order."""
        wanted = list(keys)
        found: dict[str, list[Item]] = {}
        parts = [wanted[start : start + _KEYS] for start in range(0, len(wanted), _KEYS)]
        for answers in await asyncio.gather(
            *[self._get_part(part, consistent=consistent, columns=columns) for part in parts]
        ):
            for table, items in answers:
                found.setdefault(table, []).extend(items)
        return found

    async def _get_part(
        self, keys: Sequence[tuple[str, Key]], *, consistent: bool, columns: Sequence[str]
    ) -> list[tuple[str, Sequence[Item]]]:
        requests: Mapping[str, object] = _requests(keys, consistent=consistent, columns=columns)
        found: list[tuple[str, Sequence[Item]]] = []
        pause = _FIRST_SECONDS
        while requests:
            answer = await self.call("BatchGetItem", partial(_get_batch, requests))
            responses, left = answer.get("Responses"), answer.get("UnprocessedKeys")
            if isinstance(responses, Mapping):
                found += [(str(table), items_of(items)) for table, items in responses.items()]
            requests = left if isinstance(left, Mapping) else {}
            if requests:
                await self.pause(pause, "DynamoDB, BatchGetItem: UnprocessedKeys")
                pause = min(2 * pause, _LONGEST_SECONDS)
        return found

    async def query(
        self,
        within: Range,
        *,
        limit: int | None = None,
        start: Item | None = None,
        forward: bool = True,
        columns: Sequence[str] = (),
    ) -> Page:
        """Return a page of a range, consistently where it is in no index.

        Where more pages follow, the patience begins anew: however many there are, as long as
        they come, the service is not away.
        """
        arguments = within.arguments()
        if limit is not None:
            arguments["Limit"] = limit
        if start is not None:
            arguments["ExclusiveStartKey"] = start
        if not forward:
            arguments["ScanIndexForward"] = False
        if columns:
            names = arguments["ExpressionAttributeNames"]
            assert isinstance(names, dict)
            arguments["ProjectionExpression"] = ", ".join(_aliases(columns, names))
        answer = await self.call("Query", lambda client: client.query(**arguments))
        last = item_of(answer.get("LastEvaluatedKey"))
        if last is not None:
            self._deadline = max(self._deadline, self._loop.time() + self._patience_seconds)
        return Page(items_of(answer.get("Items")), last)

    async def query_all(self, within: Range, *, columns: Sequence[str] = ()) -> list[Item]:
        """Return all items of a range."""
        found: list[Item] = []
        last: Item | None = None
        while True:
            page = await self.query(within, start=last, columns=columns)
            found += page.items
            last = page.last
            if last is None:
                return found

    async def headers(self, run_ids: Iterable[str], *more: tuple[str, Key]) -> "Headers":
        """Return headers by Run as they are now, and other items of the table `item` beside them.

        What cannot be read as a header is given as the error, for whoever needs it.
        """
        wanted = dict.fromkeys(run_id for run_id in run_ids if fits(run_id))
        keys = [(self.tables.run, where_run(run_id)) for run_id in wanted]
        items = await self.get_many([*keys, *more])
        rows: dict[str, RunRow] = {}
        for item in items.get(self.tables.run, ()):
            row = header_of(item)
            rows[row.run_id] = row
            self.shared.learn(row, revision_of(item))
        return Headers(rows, items.get(self.tables.item, []))


class Headers(NamedTuple):
    """Headers by Run, and what was read beside them."""

    rows: Mapping[str, RunRow]
    beside: Sequence[Item]


def _get_batch(
    requests: Mapping[str, object], client: DynamoClient
) -> Awaitable[Mapping[str, object]]:
    return client.batch_get_item(RequestItems=requests)


def _write_batch(
    requests: Mapping[str, object], client: DynamoClient
) -> Awaitable[Mapping[str, object]]:
    return client.batch_write_item(RequestItems=requests)


def _requests(
    keys: Sequence[tuple[str, Key]], *, consistent: bool, columns: Sequence[str]
) -> dict[str, dict[str, object]]:
    requests: dict[str, dict[str, object]] = {}
    for table in dict.fromkeys(table for table, _ in keys):
        request: dict[str, object] = {
            "Keys": [key for named, key in keys if named == table],
            "ConsistentRead": consistent,
        }
        if columns:
            names: dict[str, str] = {}
            request["ProjectionExpression"] = ", ".join(_aliases(columns, names))
            request["ExpressionAttributeNames"] = names
        requests[table] = request
    return requests


def _aliases(columns: Sequence[str], names: dict[str, str]) -> list[str]:
    """Name columns by aliases, since many words are reserved."""
    for place, column in enumerate(columns):
        names[f"#c{place}"] = column
    return [f"#c{place}" for place in range(len(columns))]
