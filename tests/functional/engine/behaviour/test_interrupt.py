"""An interrupt, wherever it finds the Run (RUN-4, R-19, C1, C3, C9)."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from psych_runtime.api import interrupt
from psych_runtime.errors import RunSettled, RunStopping
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.common import Usage
from psych_schema.model import TextPart
from psych_schema.record import ModelDelta, ModelFailed, ToolCompleted, ToolRefused
from tests.functional.engine.behaviour.talk import Told, knows, said, told
from tests.functional.engine.harness import (
    ACME,
    BOUND_SECONDS,
    Crew,
    admit,
    agent,
    eventually,
    kinds_of,
    of_type,
    run_to_end,
    runtime,
)
from tests.servers.openai_server import OpenAIServer, Stop, answer, sse, text_chunk


async def _deltas(store: Store, run: str) -> bool:
    return bool(await of_type(store, run, ModelDelta))


def _words(failed: ModelFailed) -> str:
    assert failed.said is not None
    return "".join(part.text for part in failed.said.parts if isinstance(part, TextPart))


async def test_run_4_in_a_model_stream(store: Store, crew: Crew) -> None:
    """The stream is closed, its partial text is kept, nothing is asked again."""
    model = FakeModel().stalls(text="It is half pa")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    await eventually(lambda: _deltas(store, run))
    await interrupt(store, run, scope=ACME, reason="enough", by="ann")
    found = await told(store, run)

    assert found.end == ("aborted", "aborted")
    [failed] = found.every(ModelFailed)
    assert (failed.failure.code, failed.failure.transient, failed.next) == (
        "interrupted",
        False,
        "give_up",
    )
    assert _words(failed) == "It is half pa"
    assert failed.usage is None
    assert (model.closed, len(model.requests)) == (1, 1)


async def test_run_4_usage_before_the_interrupt_is_kept(store: Store, crew: Crew) -> None:
    """What the provider had counted by then is in the log."""
    pieces = sse(
        text_chunk("Half"), {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    )
    async with OpenAIServer(answer(pieces, Stop.STALL)) as server:
        client = OpenAIClient(server.base_url)
        await crew.start(runtime(store, client))
        run = await admit(store, agent(), deltas=True)
        await eventually(lambda: _deltas(store, run))
        await interrupt(store, run, scope=ACME)
        found = await told(store, run)
        await asyncio.wait_for(server.until_left(1), BOUND_SECONDS)
        await client.aclose()
    assert found.end == ("aborted", "aborted")
    [failed] = found.every(ModelFailed)
    assert _words(failed) == "Half"
    assert failed.usage == Usage(input_tokens=7, output_tokens=1)


async def test_run_4_before_the_first_token(store: Store, crew: Crew) -> None:
    """A model that has said nothing yet is closed as well."""
    model = FakeModel().stalls()
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    await eventually(lambda: model.requests)
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    assert _words(found.every(ModelFailed)[0]) == ""
    assert model.closed == 1


async def test_run_4_before_anybody_claimed_the_run(store: Store, crew: Crew) -> None:
    """It is settled without a model call."""
    model = FakeModel().turn(text="Never.")
    run = await admit(store, agent())
    await interrupt(store, run, scope=ACME)
    await crew.start(runtime(store, model))
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    assert model.requests == []


async def test_run_4_in_an_interruptible_tool(store: Store, crew: Crew) -> None:
    """It is cancelled, sees so itself, and its outcome is aborted."""
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "never"

    model = FakeModel().turn(tool_calls=[("wait", {})]).turn(text="Never.")
    await crew.start(runtime(store, model, wait))
    run = await admit(store, agent("wait"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert cancelled.is_set()
    assert found.calls == [("aborted", "", "The call was cancelled before it ended.")]
    assert found.end == ("aborted", "aborted")
    assert len(model.requests) == 1


async def test_run_4_a_finished_sibling_keeps_its_outcome(store: Store, crew: Crew) -> None:
    """Only what was open is aborted; what had not begun is refused."""
    began = asyncio.Event()

    @tool(concurrent=False)
    async def wait() -> str:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    async def quick() -> str:
        """Be quick."""
        return "quick"

    model = FakeModel().turn(tool_calls=[("quick", {}), ("wait", {}), ("wait", {})])
    await crew.start(runtime(store, model, wait, quick))
    run = await admit(store, agent("quick", "wait"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert [outcome for outcome, _, _ in found.calls] == ["ok", "aborted"]
    [refused] = found.every(ToolRefused)
    assert refused.code == "aborted"
    assert found.end == ("aborted", "aborted")


async def test_run_4_in_a_tool_that_must_not_be_interrupted(store: Store, crew: Crew) -> None:
    """It is awaited and its outcome is kept; then the Run is aborted."""
    began, release = asyncio.Event(), asyncio.Event()

    @tool(interruptible=False)
    async def charge() -> str:
        """Charge the card."""
        began.set()
        await release.wait()
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Never.")
    worker = await crew.start(runtime(store, model, charge))
    run = await admit(store, agent("charge"))
    await began.wait()
    receipt = await interrupt(store, run, scope=ACME)
    await knows(worker, run, receipt.seq)
    assert (await store.header(ACME.tenant, run)).state == "running"
    release.set()
    found = await told(store, run)
    assert found.calls == [("ok", "", "charged")]
    assert found.end == ("aborted", "aborted")
    assert len(model.requests) == 1


async def test_run_4_a_tool_that_must_not_be_interrupted_has_its_timeout(
    store: Store, crew: Crew
) -> None:
    """Awaited no longer than it may run anyway."""
    began = asyncio.Event()

    @tool(interruptible=False, timeout_seconds=0.5)
    async def charge() -> str:
        """Charge the card."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    model = FakeModel().turn(tool_calls=[("charge", {})])
    await crew.start(runtime(store, model, charge))
    run = await admit(store, agent("charge"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert [outcome for outcome, _, _ in found.calls] == ["timed_out"]
    assert found.end == ("aborted", "aborted")


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_run_4_force_gives_up_what_must_not_be_interrupted(store: Store, crew: Crew) -> None:
    """The first interrupt waits; the second one with force does not."""
    began = asyncio.Event()

    @tool(interruptible=False)
    async def charge() -> str:
        """Charge the card."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    model = FakeModel().turn(tool_calls=[("charge", {})])
    await crew.start(runtime(store, model, charge))
    run = await admit(store, agent("charge"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    with pytest.raises(RunStopping):
        await interrupt(store, run, scope=ACME)
    await interrupt(store, run, scope=ACME, force=True)
    found = await told(store, run)
    assert [outcome for outcome, _, _ in found.calls] == ["aborted"]
    assert found.end == ("aborted", "aborted")
    with pytest.raises(RunSettled):
        await interrupt(store, run, scope=ACME, force=True)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a thread waits for; let go at the end in any case."""
    made = threading.Event()
    yield made
    made.set()


@pytest.mark.parametrize("interruptible", [True, False])
async def test_run_4_in_a_sync_tool_that_blocks(
    store: Store, crew: Crew, gate: threading.Event, interruptible: bool
) -> None:
    """Nobody can stop a thread: its outcome is unknown, what it brings later is dropped (C9)."""
    began, ended = threading.Event(), threading.Event()

    @tool(interruptible=interruptible)
    def charge() -> str:
        """Charge the card."""
        began.set()
        gate.wait()
        ended.set()
        return "charged after all"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Never.")
    await crew.start(runtime(store, model, charge))
    run = await admit(store, agent("charge"))
    await eventually(began.is_set)
    await interrupt(store, run, scope=ACME, force=not interruptible)
    found = await told(store, run)
    assert not ended.is_set()
    [(outcome, _, words)] = found.calls
    assert outcome == "unknown"
    assert "Nobody knows" in words
    assert found.end == ("aborted", "aborted")

    kinds = await kinds_of(store, run)
    gate.set()
    await eventually(ended.is_set)
    model_2 = await admit(store, agent(name="other"))
    await run_to_end(store, model_2)
    assert await kinds_of(store, run) == kinds


async def test_run_4_a_sync_tool_that_ends_in_time_keeps_its_outcome(
    store: Store, crew: Crew, gate: threading.Event
) -> None:
    """It has 2 s after the interrupt."""
    began = threading.Event()

    def charge() -> str:
        """Charge the card."""
        began.set()
        gate.wait()
        return "charged"

    model = FakeModel().turn(tool_calls=[("charge", {})]).turn(text="Never.")
    await crew.start(runtime(store, model, charge))
    run = await admit(store, agent("charge"))
    await eventually(began.is_set)
    await interrupt(store, run, scope=ACME)
    gate.set()
    found = await told(store, run)
    assert found.calls == [("ok", "", "charged")]
    assert found.end == ("aborted", "aborted")


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_run_4_a_tool_that_swallows_its_cancellation_is_given_up(
    store: Store, crew: Crew
) -> None:
    """It goes on by itself; nobody knows what comes of it, and nobody waits."""
    began, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        """Never give up."""
        began.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    model = FakeModel().turn(tool_calls=[("stubborn", {})])
    await crew.start(runtime(store, model, stubborn))
    run = await admit(store, agent("stubborn"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    release.set()
    assert [outcome for outcome, _, _ in found.calls] == ["unknown"]
    assert found.end == ("aborted", "aborted")


async def test_run_4_between_turns_no_new_model_call_begins(store: Store, crew: Crew) -> None:
    """A tool that interrupts its own Run is cut as any other; the model is not asked again."""
    workers: list[Worker] = []

    async def suicide(context: ToolContext) -> str:
        """End this Run."""
        receipt = await interrupt(store, context.run_id, scope=ACME)
        await knows(workers[0], context.run_id, receipt.seq)
        return "asked for it"

    model = FakeModel().turn(tool_calls=[("suicide", {})]).turn(text="Never.")
    workers.append(await crew.start(runtime(store, model, suicide)))
    found = await told(store, await admit(store, agent("suicide")))
    assert [outcome for outcome, _, _ in found.calls] == ["aborted"]
    assert found.end == ("aborted", "aborted")
    assert len(model.requests) == 1


async def test_c3_15_interrupts_in_mid_stream_leave_a_pool_of_5_usable(
    store: Store, crew: Crew
) -> None:
    """Each closed stream gives its connection back; the Run after them completes."""
    stalling = [answer(sse(text_chunk("Half")), Stop.STALL)] * 15
    done = answer(
        sse(
            text_chunk("Whole."),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            "[DONE]",
        )
    )
    async with OpenAIServer(*stalling, done) as server:
        client = OpenAIClient(server.base_url, max_connections=5)
        await crew.start(runtime(store, client))
        for _ in range(3):
            runs = [await admit(store, agent(), deltas=True) for _ in range(5)]
            for run in runs:
                await eventually(partial(_deltas, store, run))
                await interrupt(store, run, scope=ACME)
            for run in runs:
                header = await run_to_end(store, run)
                assert header.state == "settled"
        last = await told(store, await admit(store, agent()))
        await asyncio.wait_for(server.until_left(15), BOUND_SECONDS)
        await client.aclose()
    assert last.end == ("completed", None)
    assert last.answer == "Whole."


async def test_run_4_the_result_of_an_aborted_call_is_in_words(store: Store, crew: Crew) -> None:
    """Whoever reads the log knows that it did not end by itself."""
    began = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    await crew.start(runtime(store, FakeModel().turn(tool_calls=[("wait", {})]), wait))
    run = await admit(store, agent("wait"))
    await began.wait()
    await interrupt(store, run, scope=ACME)
    found: Told = await told(store, run)
    [done] = found.every(ToolCompleted)
    assert "cancelled" in said(done)


@pytest.mark.parametrize("seconds", [4.0, 3600.0])
async def test_run_4_while_it_waits_to_try_the_model_again(
    store: Store, crew: Crew, seconds: float
) -> None:
    """In a slot or parked: it is aborted without another call, and nobody waits out the time."""
    model = FakeModel().raises_transient(429, retry_after_seconds=seconds).turn(text="Never.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(deadline_seconds=10_000.0))

    async def failed() -> bool:
        parked = (await store.header(ACME.tenant, run)).state == "suspended"
        return bool(await of_type(store, run, ModelFailed)) and parked is (seconds > 5)

    await eventually(failed)
    await interrupt(store, run, scope=ACME)
    found = await told(store, run)
    assert found.end == ("aborted", "aborted")
    assert len(model.requests) == 1
