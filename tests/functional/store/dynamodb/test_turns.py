"""Who waits for a turn, in what order, and what of the wait is charged to the store (ST-2)."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from psych_runtime.errors import StoreClosed, StoreUnavailable
from psych_runtime.store.dynamodb._turns import Turns
from tests.unit.runtime.scripted import HandLoop


@dataclass
class Queue:
    """Callers of turns, of which one is under way at a time, on a loop that is turned by hand."""

    loop: HandLoop
    turns: Turns = field(default_factory=lambda: Turns(1))
    held: dict[str, float] = field(default_factory=dict)  # who has the turn; what it has left
    ends: dict[str, asyncio.Event] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def come(self, *names: str) -> None:
        """Let some come who each hold a turn until told otherwise."""
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = self.loop.create_task(self._hold(name))
        self.loop.turn()

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(2.0) as left:
            self.held[name] = left
            try:
                await self.ends[name].wait()
            finally:
                del self.held[name]

    def failure(self, name: str) -> BaseException | None:
        """Return how somebody has ended."""
        return self.tasks[name].exception()

    def end(self, name: str) -> None:
        """Let somebody give the turn back."""
        self.ends[name].set()
        self.loop.turn()

    def hear(self) -> None:
        """Let the service answer, to whomever."""
        self.loop.call_soon(self.turns.heard)
        self.loop.turn()

    def pass_time(self, seconds: float) -> None:
        """Let time go by while nothing is heard."""
        self.loop.pass_time(seconds)
        self.loop.turn()


@pytest.fixture
def queue() -> Iterator[Queue]:
    """One turn, and nobody there yet."""
    loop = HandLoop()
    yield Queue(loop)
    loop.close()


def test_st_2_turns_are_taken_in_the_order_of_coming(queue: Queue) -> None:
    """One at a time; whoever comes when one is given back stands behind those who wait."""
    queue.come("one", "two", "three")
    assert list(queue.held) == ["one"]
    queue.ends["one"].set()
    queue.come("four")
    assert list(queue.held) == ["two"]
    for name in ("two", "three", "four"):
        assert list(queue.held) == [name]
        queue.end(name)
    assert queue.held == {}


def test_st_2_a_wait_is_charged_only_since_something_was_heard(queue: Queue) -> None:
    """However long it is: a busy handle is not a store that is away."""
    queue.come("one", "two")
    for _ in range(10):
        queue.pass_time(1.5)
        queue.hear()
    queue.pass_time(0.5)
    queue.end("one")
    assert queue.held == {"two": 1.5}
    queue.end("two")


def test_st_2_what_was_heard_before_the_wait_gives_no_more_time(queue: Queue) -> None:
    """Patience begins with the call, not with an answer to somebody else before it."""
    queue.hear()
    queue.come("one")
    queue.pass_time(1.0)
    queue.come("two")
    queue.pass_time(1.5)
    assert not queue.tasks["two"].done()
    queue.pass_time(0.5)
    assert isinstance(queue.failure("two"), StoreUnavailable)
    queue.end("one")


def test_st_2_a_store_that_is_away_is_told_to_all_who_wait_at_once(queue: Queue) -> None:
    """None of them tries in its turn what the others have tried; the first trouble is named."""
    early = [str(number) for number in range(50)]
    queue.come("one", *early)
    queue.pass_time(1.0)
    queue.come("late")
    queue.turns.missed("DynamoDB, GetItem: EndpointConnectionError")
    queue.turns.missed("DynamoDB, GetItem: TimeoutError")
    queue.pass_time(1.0)
    failures = [queue.failure(name) for name in early]
    assert all(isinstance(failure, StoreUnavailable) for failure in failures)
    assert all("(DynamoDB, GetItem: EndpointConnectionError)" in str(each) for each in failures)
    assert not queue.tasks["late"].done()
    queue.end("one")
    assert queue.held == {"late": 1.0}
    queue.end("late")
    queue.come("next")
    assert queue.held == {"next": 2.0}
    queue.end("next")


def test_st_2_a_trouble_that_has_passed_is_not_told(queue: Queue) -> None:
    """Something was heard since."""
    queue.come("one", "two")
    queue.turns.missed("DynamoDB, GetItem: ThrottlingException")
    queue.hear()
    queue.pass_time(2.0)
    assert "DynamoDB: no answer in time" in str(queue.failure("two"))
    queue.end("one")


def test_st_2_who_is_cancelled_leaves_the_queue(queue: Queue) -> None:
    """While waiting, at the moment of being called, and with the turn in hand."""
    queue.come("one", "two", "three", "four")
    queue.tasks["two"].cancel()
    queue.loop.turn()
    queue.ends["one"].set()
    queue.loop.turn(2)  # "three" has been called, and has not heard it yet
    assert queue.held == {}
    queue.tasks["three"].cancel()
    queue.loop.turn()
    assert [name for name, task in queue.tasks.items() if task.cancelled()] == ["two", "three"]
    assert list(queue.held) == ["four"]
    queue.tasks["four"].cancel()
    queue.come("five")
    assert list(queue.held) == ["five"]
    queue.end("five")


def test_st_2_closing_sends_home_all_who_wait(queue: Queue) -> None:
    """Those under way end as they end; nobody follows them."""
    queue.come("one", "two", "three")
    queue.loop.call_soon(queue.turns.close)
    queue.loop.turn()
    assert list(queue.held) == ["one"]
    queue.end("one")
    queue.come("four")
    failures = [queue.failure(name) for name in ("one", "two", "three", "four")]
    assert [type(failure) for failure in failures] == [type(None), *[StoreClosed] * 3]
