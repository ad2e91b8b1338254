"""The loop of simulations: virtual time, seeded schedules, processes that die or stand still."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from random import Random

import pytest

from psych_runtime.testing.simulation.loop import PROCESS, Deadlock, SimulatedLoop, StepLimit

type Main = Callable[[SimulatedLoop], Coroutine[None, None, object]]


def _live(main: Main, seed: int = 1, max_steps: int = 10_000) -> object:
    loop = SimulatedLoop(Random(seed), max_steps=max_steps)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.discard()


def _as(process: str) -> Context:
    context = Context()
    context.run(PROCESS.set, process)
    return context


def test_time_moves_only_when_nothing_is_ready() -> None:
    """An hour passes in a moment, and exactly."""

    async def main(loop: SimulatedLoop) -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert _live(main) == 3600.0


def test_timeouts_groups_and_queues_work() -> None:
    """What programs use of asyncio behaves as on a real loop."""

    async def main(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def give() -> None:
            await asyncio.sleep(1)
            await queue.put("late")

        async with asyncio.TaskGroup() as group:
            group.create_task(give())
            try:
                async with asyncio.timeout(0.5):
                    await queue.get()
            except TimeoutError:
                said.append(f"nothing after {loop.time()}")
            said.append(await queue.get())
        return said

    assert _live(main) == ["nothing after 0.5", "late"]


def _order(seed: int) -> object:
    async def main(loop: SimulatedLoop) -> list[int]:
        order: list[int] = []

        async def step(number: int) -> None:
            await asyncio.sleep(0)
            order.append(number)

        await asyncio.gather(*(step(number) for number in range(20)))
        return order

    return _live(main, seed)


def test_a_seed_is_an_order() -> None:
    """The same seed gives the same schedule, another one another."""
    assert _order(1) == _order(1)
    assert _order(1) != _order(2)


def _victim(hit: Callable[[SimulatedLoop], None]) -> object:
    """Return what a process with a `finally` did after something hit it at 1 s."""

    async def main(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []

        async def work() -> None:
            try:
                await asyncio.sleep(2)
                said.append(f"worked until {loop.time()}")
            finally:
                said.append("finally")

        task = loop.create_task(work(), context=_as("victim"))
        await asyncio.sleep(1)
        hit(loop)
        await asyncio.sleep(10)
        del task
        return said.copy()

    return _live(main)


def test_a_killed_process_runs_nothing_more() -> None:
    """No `finally`, no handler: as after kill -9."""
    assert _victim(lambda loop: loop.kill("victim")) == []


def test_a_paused_process_goes_on_unaware() -> None:
    """It does what it would have done, later."""
    assert _victim(lambda loop: loop.pause("victim", 5)) == ["worked until 6.0", "finally"]


def test_another_process_is_not_hit() -> None:
    """Killing one leaves its neighbour alone."""
    assert _victim(lambda loop: loop.kill("neighbour")) == ["worked until 2.0", "finally"]


def test_an_eager_task_of_a_killed_process_is_not_unwound() -> None:
    """Also a task that nobody refers to."""

    async def main(loop: SimulatedLoop) -> list[str]:
        said: list[str] = []

        async def work() -> None:
            try:
                await loop.create_future()
            finally:
                said.append("finally")

        def begin() -> None:
            task = asyncio.Task(work(), loop=loop, eager_start=True)
            said.extend("done" for _ in range(task.done()))

        _as("victim").run(begin)
        loop.kill("victim")
        await asyncio.sleep(1)
        return said.copy()

    assert _live(main) == []


def test_nothing_left_to_run_is_a_deadlock() -> None:
    """It is told instead of waiting for ever."""

    async def main(loop: SimulatedLoop) -> None:
        await loop.create_future()

    with pytest.raises(Deadlock, match=r"nothing to run at 0\.0 s"):
        _live(main)


def test_spinning_is_bounded() -> None:
    """A loop that never waits ends the simulation."""

    async def main(loop: SimulatedLoop) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(StepLimit, match="10000 steps"):
        _live(main)


def test_threads_are_not_simulated() -> None:
    """What needs one is told so at once."""

    async def main(loop: SimulatedLoop) -> None:
        awaitable: Awaitable[object] = asyncio.to_thread(lambda: None)
        await awaitable

    with pytest.raises(RuntimeError, match="no threads in a simulation"):
        _live(main)
