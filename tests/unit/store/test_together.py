"""What many callers ask goes together, and each gets its own answer (R-22)."""

import asyncio
from collections.abc import Sequence

import pytest

from psych_runtime.errors import InvalidPayload, PsychError, RunNotFound, StoreUnavailable
from psych_runtime.store.sql._together import Together


class Server:
    """Answers a number with its double, when it is let."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.refuses: PsychError | None = None

    async def send(self, numbers: Sequence[int]) -> list[int | PsychError]:
        self.asked.append(list(numbers))
        await self.answers.wait()
        if self.refuses is not None and 13 in numbers:
            raise self.refuses
        return [RunNotFound(run_id="x") if one == 7 else 2 * one for one in numbers]


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_r_22_what_is_asked_in_one_step_goes_together() -> None:
    """Also the first of them; one alone goes alone."""
    server = Server()
    group = Together(server.send)
    assert await asyncio.gather(*[group.ask(one) for one in range(5)]) == [0, 2, 4, 6, 8]
    assert await group.ask(9) == 18
    assert server.asked == [[0, 1, 2, 3, 4], [9]]


async def test_r_22_two_are_under_way_and_the_rest_shares_the_next() -> None:
    """At most 64 go together."""
    server = Server()
    server.answers.clear()
    group = Together(server.send)
    tasks = []
    for start in (0, 1, 2):
        tasks += [asyncio.create_task(group.ask(one)) for one in range(100 + start, 400, 3)]
        await _turn()
    assert [len(asked) for asked in server.asked] == [64, 36]
    server.answers.set()
    assert sorted(await asyncio.gather(*tasks)) == [2 * one for one in range(100, 400)]
    assert [len(asked) for asked in server.asked] == [64, 36, 64, 64, 64, 8]


async def test_r_22_an_error_is_its_callers_alone() -> None:
    """Whether it is an answer or is raised; an outage is everybody's."""
    server = Server()
    group = Together(server.send)
    found = await asyncio.gather(*map(group.ask, (1, 7, 2)), return_exceptions=True)
    assert [found[0], type(found[1]), found[2]] == [2, RunNotFound, 4]
    server.refuses = InvalidPayload(what="a number", problem="unlucky")
    found = await asyncio.gather(*map(group.ask, (1, 13, 2)), return_exceptions=True)
    assert [found[0], type(found[1]), found[2]] == [2, InvalidPayload, 4]
    server.refuses = StoreUnavailable(problem="away")
    found = await asyncio.gather(*map(group.ask, (1, 13, 2)), return_exceptions=True)
    assert {type(one) for one in found} == {StoreUnavailable}


async def test_r_22_who_has_given_up_is_not_asked_for() -> None:
    """The others are answered."""
    server = Server()
    server.answers.clear()
    group = Together(server.send)
    first = []
    for one in (1, 2):
        first.append(asyncio.create_task(group.ask(one)))
        await _turn()
    late = asyncio.create_task(group.ask(3))
    gone = asyncio.create_task(group.ask(4))
    await _turn()
    gone.cancel()
    server.answers.set()
    assert await asyncio.gather(*first, late) == [2, 4, 6]
    assert server.asked == [[1], [2], [3]]


async def test_r_22_stopping_leaves_nobody_waiting() -> None:
    """Neither what is under way nor what waits behind it."""
    server = Server()
    server.answers.clear()
    group = Together(server.send)
    tasks = [asyncio.create_task(group.ask(one)) for one in range(200)]
    await _turn()
    await group.stop()
    for task in tasks:
        with pytest.raises(StoreUnavailable, match="closed meanwhile"):
            await task
