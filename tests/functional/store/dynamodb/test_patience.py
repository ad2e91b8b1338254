"""What of a call's time is its patience: silence of the service, not a queue, not a long log."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import cast

import pytest

from psych_runtime._system import System
from psych_runtime.errors import StoreUnavailable
from psych_runtime.store.dynamodb._asking import Ask, Range
from psych_runtime.store.dynamodb._client import DynamoClient
from psych_runtime.store.dynamodb._names import Tables
from psych_runtime.store.dynamodb._shared import Shared
from psych_runtime.store.dynamodb._turns import Turns
from psych_runtime.store.dynamodb._wire import Item
from tests.functional.store.dynamodb.probes import Answer
from tests.unit.runtime.scripted import HandLoop

PATIENCE_SECONDS = 2.0
LOG = Range("log", None, "run_1")
ITEM: Item = {"pk": {"S": "run_1"}}


class Slow:
    """A client whose answers each take as long as is said; pages follow while any is left."""

    def __init__(self, loop: HandLoop, *seconds: float) -> None:
        self._loop = loop
        self._left = list(seconds)

    async def query(self, **arguments: object) -> Answer:
        self._loop.pass_time(self._left.pop(0))
        for _ in range(2):  # what has become due by this comes first
            await asyncio.sleep(0)
        return {"Items": [ITEM], "LastEvaluatedKey": ITEM if self._left else None}


@pytest.fixture
def loop() -> Iterator[HandLoop]:
    """A loop whose clock goes on when a client says so."""
    made = HandLoop()
    yield made
    made.close()


def asking[T](
    loop: HandLoop, client: Slow, ask_for: Callable[[Ask], Awaitable[T]], turns: Turns
) -> asyncio.Task[T]:
    """Begin one call of the port."""

    async def call() -> T:
        fitting = cast("DynamoClient", client)
        ask = Ask(fitting, turns, Tables.under(""), Shared(System()), PATIENCE_SECONDS)
        return await ask_for(ask)

    return loop.create_task(call())


def test_st_2_pages_that_keep_coming_are_read_to_the_end(loop: HandLoop) -> None:
    """A log of any length: each page that others follow shows that the service is there."""
    client = Slow(loop, 1.5, 1.5, 1.5, 1.5)
    reading = asking(loop, client, lambda ask: ask.query_all(LOG), Turns(1))
    assert loop.run_until_complete(reading) == [ITEM] * 4


def test_st_2_a_page_that_does_not_come_in_time_ends_the_call(loop: HandLoop) -> None:
    """The patience begins anew with each page, and is no longer than it was."""
    client = Slow(loop, 1.5, 1.5, 2.5, 0.0)
    reading = asking(loop, client, lambda ask: ask.query_all(LOG), Turns(1))
    with pytest.raises(StoreUnavailable, match="Query: TimeoutError"):
        loop.run_until_complete(reading)


def test_st_2_single_answers_share_one_patience(loop: HandLoop) -> None:
    """However many a call asks for: half a lease is what it has."""

    async def twice(ask: Ask) -> None:
        await ask.query(LOG)
        await ask.query(LOG)

    class Single(Slow):
        async def query(self, **arguments: object) -> Answer:
            return {"Items": (await super().query(**arguments))["Items"]}

    with pytest.raises(StoreUnavailable):
        loop.run_until_complete(asking(loop, Single(loop, 1.5, 1.5), twice, Turns(1)))


def test_st_2_a_queue_that_moves_takes_nothing_of_the_patience(loop: HandLoop) -> None:
    """Five calls of one second each, one after another: none waits for the service too long."""
    turns = Turns(1)
    calls = [asking(loop, Slow(loop, 1.0), lambda ask: ask.query_all(LOG), turns) for _ in range(5)]
    found = loop.run_until_complete(asyncio.wait_for(asyncio.gather(*calls), None))
    assert found == [[ITEM]] * 5
