"""Several calls in one turn (MOD-7)."""

import asyncio
import threading

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.decorator import tool
from psych_schema.record import ModelCompleted, ToolCompleted, ToolRefused, ToolStarted
from tests.functional.engine.behaviour.talk import Tool, answers, asked_ids, talk
from tests.functional.engine.harness import (
    BOUND_SECONDS,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    run_to_end,
    runtime,
)


async def test_mod_7_async_calls_run_at_once(store: Store, crew: Crew) -> None:
    """Each waits until all three are there."""
    together = asyncio.Barrier(3)

    async def meet(n: int) -> str:
        """Meet the others.

        Args:
            n: Who.
        """
        await together.wait()
        return f"met {n}"

    model = FakeModel()
    model.turn(tool_calls=[("meet", {"n": n}) for n in range(3)]).turn(text="Done.")
    await talk(store, crew, model, meet)
    assert [text for _, text in answers(model.requests[1].messages)] == ["met 0", "met 1", "met 2"]


async def test_mod_7_sync_calls_run_at_once(store: Store, crew: Crew) -> None:
    """They have threads of their own."""
    together = threading.Barrier(3, timeout=BOUND_SECONDS)

    def meet(n: int) -> str:
        """Meet the others.

        Args:
            n: Who.
        """
        together.wait()
        return f"met {n}"

    model = FakeModel()
    model.turn(tool_calls=[("meet", {"n": n}) for n in range(3)]).turn(text="Done.")
    await talk(store, crew, model, meet)
    assert [text for _, text in answers(model.requests[1].messages)] == ["met 0", "met 1", "met 2"]


class Alone:
    """Counts how many of its calls run at a time."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.order: list[int] = []

    async def work(self, n: int) -> str:
        """Work.

        Args:
            n: Which.
        """
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(n)
        for _ in range(5):
            await asyncio.sleep(0)
        self.running -= 1
        return f"worked {n}"

    def tool(self, *, concurrent: bool) -> Tool:
        """Return it as a tool."""

        @tool(name="work", concurrent=concurrent)
        async def work(n: int) -> str:
            """Work.

            Args:
                n: Which.
            """
            return await self.work(n)

        return work


@pytest.mark.parametrize("concurrent", [False, True])
async def test_mod_7_a_tool_may_opt_out(store: Store, crew: Crew, concurrent: bool) -> None:
    """One that does runs by itself, in the order asked; one that does not has company."""
    alone = Alone()
    model = FakeModel()
    model.turn(tool_calls=[("work", {"n": n}) for n in range(4)]).turn(text="Done.")
    await talk(store, crew, model, alone.tool(concurrent=concurrent))
    assert (alone.most == 1) is not concurrent
    assert alone.order == [0, 1, 2, 3]


async def test_mod_7_an_opted_out_tool_has_company_of_others(store: Store, crew: Crew) -> None:
    """Opting out is about calls of such tools; a tool that did not opt out may run beside it."""
    together = asyncio.Barrier(2)

    @tool(concurrent=False)
    async def alone() -> str:
        """Wait for the other."""
        await together.wait()
        return "alone"

    @tool
    async def sociable() -> str:
        """Wait for the other."""
        await together.wait()
        return "sociable"

    model = FakeModel().turn(tool_calls=[("alone", {}), ("sociable", {})]).turn(text="Done.")
    told = await talk(store, crew, model, alone, sociable)
    assert sorted(words for _, _, words in told.calls) == ["alone", "sociable"]


async def test_mod_7_answered_in_the_order_asked_and_recorded_when_each_ends(
    store: Store, crew: Crew
) -> None:
    """The last one asked ends first: its record is there while the first still runs."""
    gates = [asyncio.Event() for _ in range(3)]

    async def wait(n: int) -> str:
        """Wait for a turn.

        Args:
            n: Which.
        """
        await gates[n].wait()
        return f"waited {n}"

    model = FakeModel()
    model.turn(tool_calls=[("wait", {"n": n}) for n in range(3)]).turn(text="Done.")
    await crew.start(runtime(store, model, wait))
    run = await admit(store, agent("wait"))
    for number, n in enumerate((2, 0, 1), 1):
        gates[n].set()

        async def recorded(number: int = number) -> bool:
            return len(await of_type(store, run, ToolCompleted)) == number

        await eventually(recorded)
    await run_to_end(store, run)

    [first, _] = await of_type(store, run, ModelCompleted)
    done = [one.call_id for one in await of_type(store, run, ToolCompleted)]
    assert done == [first.calls[2], first.calls[0], first.calls[1]]
    messages = model.requests[1].messages
    assert [text for _, text in answers(messages)] == ["waited 0", "waited 1", "waited 2"]
    assert [call for call, _ in answers(messages)] == list(first.calls) == asked_ids(messages)


async def test_mod_7_one_that_raises_leaves_its_siblings_alone(store: Store, crew: Crew) -> None:
    """They were in the middle of their work when it raised."""
    raised = asyncio.Event()

    async def fail() -> str:
        """Fail at once."""
        raised.set()
        raise LookupError("nothing there")

    async def wait() -> str:
        """End after the other has failed."""
        await raised.wait()
        await asyncio.sleep(0)
        return "fine"

    model = FakeModel()
    model.turn(tool_calls=[("wait", {}), ("fail", {}), ("wait", {})]).turn(text="Done.")
    told = await talk(store, crew, model, fail, wait)
    assert sorted(told.calls) == [
        ("error", "tool_error", "fail raised LookupError: nothing there"),
        ("ok", "", "fine"),
        ("ok", "", "fine"),
    ]
    texts = [text for _, text in answers(model.requests[1].messages)]
    assert texts == ["fine", "fail raised LookupError: nothing there", "fine"]
    assert told.end == ("completed", None)


async def test_mod_7_max_tool_calls_per_turn_is_enforced(store: Store, crew: Crew) -> None:
    """The first ones run, the rest are refused in their places."""
    alone = Alone()
    model = FakeModel()
    model.turn(tool_calls=[("work", {"n": n}) for n in range(5)]).turn(text="Done.")
    spec = agent("work", max_tool_calls_per_turn=2)
    told = await talk(store, crew, model, alone.tool(concurrent=True), spec=spec)
    assert alone.order == [0, 1]
    assert [one.code for one in told.every(ToolRefused)] == ["limit"] * 3
    texts = [text for _, text in answers(model.requests[1].messages)]
    assert texts[:2] == ["worked 0", "worked 1"]
    assert all("first 2 calls" in text for text in texts[2:])


async def test_mod_7_exactly_the_limit_runs(store: Store, crew: Crew) -> None:
    """Two of two."""
    alone = Alone()
    model = FakeModel()
    model.turn(tool_calls=[("work", {"n": n}) for n in range(2)]).turn(text="Done.")
    spec = agent("work", max_tool_calls_per_turn=2)
    told = await talk(store, crew, model, alone.tool(concurrent=True), spec=spec)
    assert alone.order == [0, 1]
    assert told.refusals == []


async def test_mod_7_three_hundred_calls_in_one_turn(store: Store, crew: Crew) -> None:
    """A model that asks for far too much gets 16 answers and 284 refusals."""
    alone = Alone()
    model = FakeModel()
    model.turn(tool_calls=[("work", {"n": n}) for n in range(300)]).turn(text="Done.")
    told = await talk(store, crew, model, alone.tool(concurrent=True))
    assert alone.order == list(range(16))
    assert len(told.every(ToolStarted)) == 16
    assert len(told.refusals) == 284
    assert len(answers(model.requests[1].messages)) == 300
    assert told.end == ("completed", None)
