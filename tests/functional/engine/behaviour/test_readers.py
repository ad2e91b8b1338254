"""Readers of a Run that lives: each record once, in order, and nobody is delayed (STR-1, STR-2)."""

import asyncio
from contextlib import aclosing

import pytest

from psych_runtime._reads import stream, stream_text
from psych_runtime.api import interrupt
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.model import TextPart
from psych_schema.record import ModelCompleted, ModelDelta, ModelStarted, Record, RunSettled
from tests.functional.engine.behaviour.talk import Tool, talk, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    BOUND_SECONDS,
    Crew,
    admit,
    agent,
    eventually,
    records_of,
    run_to_end,
    runtime,
)
from tests.stores.kinds import EVERY_STORE


@pytest.fixture(params=EVERY_STORE)
def kind(request: pytest.FixtureRequest) -> str:
    """Every store keeps and gives the same."""
    name: str = request.param
    return name


async def _cut_everywhere(store: Store, run: str) -> list[Record]:
    """Read a Run to its end, a new reader for each record."""
    seen: list[Record] = []
    while not (seen and isinstance(seen[-1], RunSettled)):
        after = seen[-1].seq if seen else 0
        async with aclosing(stream(store, run, scope=ACME, after=after)) as records:
            async for record in records:
                seen.append(record)
                break
    return seen


async def _whole(store: Store, run: str, after: int = 0) -> list[Record]:
    return [record async for record in stream(store, run, scope=ACME, after=after)]


class Holding:
    """A tool that holds its first worker up."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.release = asyncio.Event()

    def tool(self) -> Tool:
        """Return it."""

        @tool(safe_to_retry=True)
        async def slow(context: ToolContext) -> str:
            """Take long."""
            if context.epoch == 1:
                self.began.set()
                await self.release.wait()
            return "slow is done"

        return slow


async def test_str_1_readers_cut_at_every_record_across_a_crash(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """Both the one that is cut at each record and the one that is not see the same log, once."""
    holding = Holding()
    model = FakeModel()
    model.turn(text="I will look.", tool_calls=[("slow", {})])
    model.turn(tool_calls=[("slow", {})])
    model.turn(text="It is done.")
    first = await crew.start(runtime(flaky, model, holding.tool()))
    run = await admit(store, agent("slow"), deltas=True)
    readers = [
        asyncio.create_task(_cut_everywhere(store, run)),
        asyncio.create_task(_whole(store, run)),
    ]
    await holding.began.wait()
    await die(flaky, store, first)
    await crew.start(runtime(store, model, holding.tool()))
    async with asyncio.timeout(BOUND_SECONDS):
        cut, whole = await asyncio.gather(*readers)
    holding.release.set()

    log = await records_of(store, run)
    assert {record.epoch for record in log} == {0, 1, 2}
    assert cut == log
    assert whole == log
    for after in range(len(log) + 1):
        assert await _whole(store, run, after) == log[after:]


async def test_str_1_across_an_interrupt(store: Store, crew: Crew) -> None:
    """Records of others come in their places."""
    model = FakeModel().stalls(text="It is half a")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    reader = asyncio.create_task(_cut_everywhere(store, run))
    await eventually(lambda: model.requests)
    await interrupt(store, run, scope=ACME)
    await run_to_end(store, run)
    async with asyncio.timeout(BOUND_SECONDS):
        assert await reader == await records_of(store, run)
    assert model.closed == 1


async def test_str_2_a_reader_that_never_reads_delays_nothing(store: Store, crew: Crew) -> None:
    """Ten readers take one record each and stop; the Run ends; then they find all the rest."""
    holding = Holding()
    model = FakeModel().turn(text="I look.", tool_calls=[("slow", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, holding.tool()))
    run = await admit(store, agent("slow"), deltas=True)
    readers = [stream(store, run, scope=ACME) for _ in range(10)]
    firsts = [await anext(reader) for reader in readers]
    await holding.began.wait()
    holding.release.set()
    found = await told(store, run)
    assert found.end == ("completed", None)
    for first, reader in zip(firsts, readers, strict=True):
        rest = [record async for record in reader]
        assert [first, *rest] == found.records


async def test_str_2_a_disconnect_cancels_nothing(store: Store, crew: Crew) -> None:
    """Readers are closed, and cancelled, in the middle of a call: it goes on."""
    holding = Holding()
    model = FakeModel().turn(tool_calls=[("slow", {})]).turn(text="Done.")
    await crew.start(runtime(store, model, holding.tool()))
    run = await admit(store, agent("slow"))
    closed = stream(store, run, scope=ACME)
    await anext(closed)
    cancelled = asyncio.create_task(_whole(store, run))
    await holding.began.wait()
    await closed.aclose()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    holding.release.set()
    found = await told(store, run)
    assert found.end == ("completed", None)
    assert [outcome for outcome, _, _ in found.calls] == ["ok"]
    assert model.closed == 0


async def act(text: str) -> str:
    """Act.

    Args:
        text: What to do.
    """
    return text


def _talkative() -> FakeModel:
    model = FakeModel()
    words = " ".join(f"word{n}" for n in range(40))
    model.turn(
        text=words,
        reasoning="Let me think of it for a while.",
        tool_calls=[("act", {"text": "one"}), ("act", {"text": "two"})],
        chunk_delay_seconds=0.01,
    )
    return model.turn(text="é 😀 done.", chunk_delay_seconds=0.01)


async def test_str_3_deltas_are_what_the_model_said(store: Store, crew: Crew) -> None:
    """In each call and channel they come in order, and are a beginning of the whole."""
    found = await talk(store, crew, _talkative(), act, deltas=True)
    assert found.end == ("completed", None)
    completed = {one.call: one for one in found.every(ModelCompleted)}
    assert found.every(ModelDelta)
    for call, done in completed.items():
        pieces = [one for one in found.every(ModelDelta) if one.call == call]
        assert pieces[0].seq < done.seq
        assert all(one.seq < done.seq for one in pieces)
        text = "".join(one.text or "" for one in pieces if one.channel == "text")
        assert done.said is not None
        whole = "".join(part.text for part in done.said.parts if isinstance(part, TextPart))
        assert whole.startswith(text)
        for index, asked in enumerate(done.said.calls):
            arguments = "".join(
                one.text or ""
                for one in pieces
                if one.channel == "arguments" and one.index == index
            )
            assert asked.arguments.startswith(arguments)


async def test_str_3_text_chunks_joined_are_the_whole_text(store: Store, crew: Crew) -> None:
    """What the deltas did not bring, the end of the call does."""
    await crew.start(runtime(store, _talkative(), act))
    run = await admit(store, agent("act"), deltas=True)
    shown: dict[str, str] = {}
    async for chunk in stream_text(store, run, scope=ACME):
        assert chunk.replaces is None
        shown[chunk.call] = shown.get(chunk.call, "") + chunk.text
    found = await told(store, run)
    whole = {
        one.call: "".join(part.text for part in one.said.parts if isinstance(part, TextPart))
        for one in found.every(ModelCompleted)
        if one.said is not None
    }
    assert shown == whole


async def test_str_3_the_first_delta_comes_while_the_model_speaks(store: Store, crew: Crew) -> None:
    """A reader has text before the call ends."""
    model = FakeModel().stalls(text="At once. ")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    async with aclosing(stream_text(store, run, scope=ACME)) as texts:
        async with asyncio.timeout(BOUND_SECONDS):
            chunk = await anext(texts)
    assert "At once. ".startswith(chunk.text)
    assert (await store.header(ACME.tenant, run)).state == "running"
    await interrupt(store, run, scope=ACME)
    await run_to_end(store, run)


async def test_str_3_without_deltas_there_are_none(store: Store, crew: Crew) -> None:
    """Nobody asked for them."""
    found = await talk(store, crew, _talkative(), act)
    assert found.every(ModelDelta) == []
    assert len(found.every(ModelStarted)) == 2


async def test_r_10_many_pieces_are_few_records(store: Store, crew: Crew) -> None:
    """The first piece comes at once, the next ones together: 64 chunks are far fewer records."""
    model = FakeModel().turn(text=" ".join(f"word{n}" for n in range(64)))
    found = await talk(store, crew, model, deltas=True)
    assert 1 <= len(found.every(ModelDelta)) < 32
