"""Readers of one Run, as many and as bad as they like (STR-1, STR-2)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from psych_runtime._erase import erase
from psych_runtime._reads import TextChunk, stream, stream_text
from psych_runtime.api import interrupt
from psych_runtime.errors import RunFailed, RunNotFound, StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import ModelFailed, Record
from tests.functional.engine.behaviour.talk import talk, told
from tests.functional.engine.behaviour.test_readers import Holding
from tests.functional.engine.flaky import Flaky, Gate
from tests.functional.engine.harness import (
    ACME,
    BOUND_SECONDS,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    records_of,
    run_to_end,
    runtime,
)
from tests.stores.kinds import EVERY_STORE

READERS = 1000


@pytest.fixture(params=EVERY_STORE)
def kind(request: pytest.FixtureRequest) -> str:
    """Every store keeps and gives the same."""
    name: str = request.param
    return name


async def whole(store: Store, run: str) -> list[Record]:
    """Read a Run to its end."""
    return [record async for record in stream(store, run, scope=ACME)]


async def finished[T](*readers: asyncio.Task[T]) -> list[T]:
    """Return what readers have read, once all are at the end."""
    async with asyncio.timeout(BOUND_SECONDS):
        return list(await asyncio.gather(*readers))


async def test_str_2_a_thousand_readers_ask_less_than_once_each(store: Store, crew: Crew) -> None:
    """All see all, live; whom one commit wakes, they read what it brought once for all."""
    holding = Holding()
    model = FakeModel().turn(text="I look.", tool_calls=[("slow", {})])
    model.turn(text=" ".join(f"word{n}" for n in range(30)), chunk_delay_seconds=0.01)
    await crew.start(runtime(store, model, holding.tool()))
    run = await admit(store, agent("slow"), deltas=True)
    await holding.began.wait()
    watched = Flaky(store)
    readers = [asyncio.create_task(whole(watched, run)) for _ in range(READERS)]
    await eventually(lambda: watched.faults.calls["wait"] >= READERS)
    holding.release.set()
    await run_to_end(store, run)
    seen = await finished(*readers)
    log = await records_of(store, run)
    assert all(one == log for one in seen)
    assert watched.faults.calls["read"] + watched.faults.calls["header"] < READERS


async def test_str_2_a_reader_that_is_cancelled_takes_nobody_along(
    flaky: Flaky, store: Store, crew: Crew
) -> None:
    """Three ask together; the first of them goes away before there is an answer."""
    found = await talk(store, crew, FakeModel().turn(text="Done."))
    gate = Gate()
    flaky.faults.once("before", "read", gate.pass_through)
    first, *others = [asyncio.create_task(whole(flaky, found.run_id)) for _ in range(3)]
    await eventually(lambda: gate.waiting)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.open()
    assert await finished(*others) == [found.records, found.records]
    assert flaky.faults.calls == {"read": 2, "header": 1}  # the log, and whether it was erased


async def test_str_1_a_store_that_does_not_answer_is_asked_again_for_all(
    flaky: Flaky, store: Store, crew: Crew
) -> None:
    """Who asked together is refused together, and loses nothing."""
    found = await talk(store, crew, FakeModel().turn(text="Done."))

    async def nobody_there(_: object) -> None:
        raise StoreUnavailable(problem="planted")

    flaky.faults.once("before", "read", nobody_there)
    readers = [asyncio.create_task(whole(flaky, found.run_id)) for _ in range(3)]
    assert await finished(*readers) == [found.records] * 3
    assert flaky.faults.calls["read"] >= 2


async def test_r_11_a_reader_after_an_erasure_is_told_nothing_that_was_read_before_it(
    flaky: Flaky, store: Store, crew: Crew
) -> None:
    """Another one's answer is still on its way: it is not for who asks later."""
    found = await talk(store, crew, FakeModel().turn(text="Done."))
    gate = Gate()
    flaky.faults.once("after", "read", gate.pass_through)
    early = asyncio.create_task(whole(flaky, found.run_id))
    await eventually(lambda: gate.waiting)
    await erase(store, found.run_id, scope=ACME, by="ann")
    late = asyncio.create_task(whole(flaky, found.run_id))
    bare = await records_of(store, found.run_id)
    assert bare[:-1] != found.records
    [seen] = await finished(late)
    gate.open()
    assert seen == bare
    await finished(early)


async def test_str_2_readers_of_another_tenant_learn_nothing(store: Store, crew: Crew) -> None:
    """Who asks for the same Run in the same moment, but may not see it, is refused alone."""
    found = await talk(store, crew, FakeModel().turn(text="Done."))
    other = ACME.model_copy(update={"tenant": "globex"})

    async def spy() -> list[Record]:
        return [record async for record in stream(store, found.run_id, scope=other)]

    ours, theirs = await asyncio.gather(whole(store, found.run_id), spy(), return_exceptions=True)
    assert ours == found.records
    assert isinstance(theirs, RunNotFound)


async def test_str_3_a_text_reader_cut_at_every_chunk_has_the_text_of_the_retry(
    store: Store, crew: Crew
) -> None:
    """A call that broke off is made again: its text is taken back once, wherever one reads on."""
    model = FakeModel().aborts_mid_token("It is half a").turn(text="It is whole.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    shown: dict[str, str] = {}
    after, replaced = 0, []
    while True:
        async with aclosing(stream_text(store, run, scope=ACME, after=after)) as texts:
            chunk = await anext(texts, None)
        if chunk is None:
            break
        if chunk.replaces is not None:
            replaced.append(shown.pop(chunk.replaces))
        shown[chunk.call] = shown.get(chunk.call, "") + chunk.text
        after = chunk.seq
    assert list(shown.values()) == ["It is whole."]
    assert len(replaced) == 1
    assert replaced[0]
    assert "It is half a".startswith(replaced[0])


async def test_str_3_a_text_reader_of_a_run_that_is_stopped_hears_so(
    store: Store, crew: Crew
) -> None:
    """What was said before stands; then the reason comes, and again for who asks later."""
    model = FakeModel().stalls(text="It is half a")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    texts = stream_text(store, run, scope=ACME)
    first = await anext(texts)
    await interrupt(store, run, scope=ACME)
    said, error = await to_the_end(texts)
    assert (error.state, error.reason) == ("aborted", "aborted")
    assert {chunk.replaces for chunk in (first, *said)} == {None}
    assert "It is half a".startswith("".join(chunk.text for chunk in (first, *said)))
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    _, error = await to_the_end(stream_text(store, run, scope=ACME, after=found.records[-1].seq))
    assert (error.state, error.reason) == ("aborted", "aborted")


async def test_str_3_a_text_reader_of_a_run_that_fails_hears_so(store: Store, crew: Crew) -> None:
    """After the text of the last try, which nothing replaces."""
    model = FakeModel().aborts_mid_token("It is half a")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(transient_retry_budget=0), deltas=True)
    said, error = await to_the_end(stream_text(store, run, scope=ACME))
    assert (error.state, error.reason) == ("failed", "retries_exhausted")
    assert {chunk.replaces for chunk in said} == {None}
    assert len(await of_type(store, run, ModelFailed)) == 1


async def to_the_end(texts: AsyncGenerator[TextChunk]) -> tuple[list[TextChunk], RunFailed]:
    """Return what still comes, and the failure that it ends with."""
    said: list[TextChunk] = []

    async def read() -> None:
        async for chunk in texts:
            said.append(chunk)  # noqa: PERF401  what came before the failure counts

    with pytest.raises(RunFailed) as caught:
        await read()
    return said, caught.value
