"""Each prompt extends the one before it, and every call in it is answered (MOD-8, R-25)."""

import asyncio
import json
from itertools import pairwise

from pydantic import JsonValue

from psych_runtime.api import interrupt, publish
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.worker import Worker
from psych_runtime.testing._pairing import unpaired
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.decorator import tool
from psych_schema.model import ModelRequest
from psych_schema.record import ModelStarted, ToolCompleted, ToolsOffered
from tests.functional.engine.behaviour.talk import Tool, answers, knows, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    of_type,
    run_to_end,
    runtime,
    send,
    texts_of,
)
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    error,
    finish_chunk,
    sse,
    text_chunk,
)


def _extends(requests: list[ModelRequest]) -> None:
    for before, after in pairwise(requests):
        assert (after.system, after.tools) == (before.system, before.tools)
        assert after.messages[: len(before.messages)] == before.messages
        assert (
            after.model_dump_json()[: _common(before)]
            == before.model_dump_json()[: _common(before)]
        )
    for request in requests:
        assert unpaired(request.messages) is None


def _common(request: ModelRequest) -> int:
    """Return how long the prompt is: up to the end of its last message."""
    return request.model_dump_json().index('],"tools":')


async def zulu() -> str:
    """Say z."""
    return "z"


async def alpha(text: str = "a") -> str:
    """Say a.

    Args:
        text: What to say.
    """
    return text


async def mike() -> str:
    """Fail."""
    raise ValueError("no")


def _script() -> FakeModel:
    model = FakeModel()
    model.turn(text="One.", tool_calls=[("zulu", {}), ("mike", {}), ("nobody", {})])
    model.raw_call("alpha", "{bad")
    model.turn(reasoning="Hm.", tool_calls=[("alpha", {"text": "é\x00😀"})])
    model.turn(tool_calls=[("alpha", {}), ("zulu", {})], finish="length")
    return model.turn(text="Done.")


async def test_mod_8_prompts_extend_across_turns(store: Store, crew: Crew) -> None:
    """Whatever became of the calls; tools come sorted by name, however they were registered."""
    model = _script()
    await crew.start(runtime(store, model, zulu, mike, alpha))
    found = await told(store, await admit(store, agent("mike", "zulu", "alpha")))
    assert found.end == ("completed", None)
    assert len(model.requests) == 5
    assert [one.name for one in model.requests[0].tools] == ["alpha", "mike", "zulu"]
    _extends(model.requests)
    assert len(found.every(ToolsOffered)) == 1


async def test_mod_8_two_workers_send_the_same_prefix(store: Store, crew: Crew) -> None:
    """Registered in another order, in another process's worker: the same bytes."""
    first, second = _script(), _script()
    worker = await crew.start(runtime(store, first, zulu, mike, alpha))
    version = await publish(store, agent("zulu", "alpha", "mike"), scope=ACME)
    await run_to_end(store, await admit(store, version))
    await crew.stop(worker)
    await crew.start(runtime(store, second, alpha, mike, zulu))
    await run_to_end(store, await admit(store, version))
    one, two = first.requests[0], second.requests[0]
    assert one.model_dump_json() == two.model_dump_json()


class Holding:
    """A tool that holds its first worker up."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.release = asyncio.Event()

    def tool(self, *, safe: bool) -> Tool:
        """Return it."""

        @tool(name="slow", safe_to_retry=safe)
        async def slow(context: ToolContext) -> str:
            """Take long."""
            if context.epoch == 1:
                self.began.set()
                await self.release.wait()
            return "slow is done"

        return slow


async def _crash(
    store: Store,
    flaky: Flaky,
    crew: Crew,
    models: tuple[FakeModel, FakeModel],
    *,
    safe: bool,
    done: int,
) -> str:
    """Let the first worker die in a call; each has a model of its own, with the same script.

    The store's clock is moved, not the worker's: it may call its model once more before it learns
    that it is dead.
    """
    holding = Holding()
    slow = holding.tool(safe=safe)
    first: Worker = await crew.start(runtime(flaky, models[0], zulu, slow))
    run = await admit(store, agent("slow", "zulu"))
    await holding.began.wait()

    async def recorded() -> bool:
        return len(await of_type(store, run, ToolCompleted)) == done

    await eventually(recorded)
    await die(flaky, store, first)
    await crew.start(runtime(store, models[1], slow, zulu))
    await run_to_end(store, run)
    holding.release.set()
    return run


async def test_mod_8_prompts_extend_across_a_crash(store: Store, flaky: Flaky, crew: Crew) -> None:
    """The second worker goes on where the first one was."""
    models = FakeModel(), FakeModel()
    for model in models:
        model.turn(tool_calls=[("zulu", {})])
        model.turn(tool_calls=[("zulu", {}), ("slow", {}), ("zulu", {})])
        model.turn(tool_calls=[("zulu", {})])
        model.turn(text="Done.")
    run = await _crash(store, flaky, crew, models, safe=True, done=3)
    assert [one.epoch for one in await of_type(store, run, ModelStarted)] == [1, 1, 2, 2]
    assert len(models[1].requests) == 2
    _extends([*models[0].requests[:2], *models[1].requests])


async def test_d5_history_is_paired_with_an_unknown_outcome(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """A call that nobody knows the end of is answered in words, in its place."""
    models = FakeModel(), FakeModel()
    for model in models:
        model.turn(tool_calls=[("zulu", {}), ("slow", {}), ("zulu", {})])
        model.turn(text="Done.")
    await _crash(store, flaky, crew, models, safe=False, done=2)
    [request] = models[1].requests
    first, second, third = [text for _, text in answers(request.messages)]
    assert (first, third) == ("z", "z")
    assert "Nobody knows" in second
    _extends([models[0].requests[0], request])


async def test_mod_8_a_failed_call_is_made_again_with_the_same_prompt(
    store: Store, crew: Crew
) -> None:
    """What it had said is not in the prompt; a steer that came meanwhile goes behind it."""
    model = FakeModel().aborts_mid_token("half an ans")
    model.raises_transient(503, retry_after_seconds=0).turn(text="Whole.")
    spec = agent()
    await crew.start(runtime(store, model))
    run = await admit(store, spec)
    await run_to_end(store, run)
    first, second, third = model.requests
    assert first == second == third


async def test_mod_8_a_steer_extends_the_prompt(store: Store, crew: Crew) -> None:
    """A message that came during a call stands behind the call's answer."""
    holding = Holding()
    model = FakeModel().turn(tool_calls=[("slow", {})]).turn(text="Done.")
    worker = await crew.start(runtime(store, model, holding.tool(safe=False)))
    run = await admit(store, agent("slow"))
    await holding.began.wait()
    receipt = await send(store, run, "steer", "Hurry.")
    await knows(worker, run, receipt.seq)
    holding.release.set()
    await run_to_end(store, run)
    _extends(model.requests)
    assert texts_of(model.requests[1].messages)[-2:] == ["slow is done", "Hurry."]


async def test_mod_8_a_thread_extends_the_prompt(store: Store, crew: Crew) -> None:
    """A Run that goes on sends what its predecessor sent, its answer, and the new message."""
    model = FakeModel()
    model.turn(tool_calls=[("zulu", {})]).turn(text="One.").turn(text="Two.")
    await crew.start(runtime(store, model, zulu))
    version = await publish(store, agent("zulu"), scope=ACME)
    first = await admit(store, version)
    await run_to_end(store, first)
    second = await admit(store, version, "And now?", continues=first)
    await run_to_end(store, second)
    _extends(model.requests)
    assert texts_of(model.requests[2].messages) == ["Go.", "", "z", "One.", "And now?"]


async def test_mod_8_the_bytes_on_the_wire_extend(store: Store, crew: Crew) -> None:
    """The server sees each body's messages begin with the body before, byte by byte."""
    replies = [
        answer(
            sse(
                text_chunk("Let me look. é😀"),
                call_chunk(0, id="a", name="alpha", arguments='{"text": "b\\u0000"}'),
                call_chunk(1, id="a", name="mike", arguments=""),
                finish_chunk("tool_calls"),
                "[DONE]",
            )
        ),
        error(503, "Busy.", headers={"Retry-After": "0"}),
        answer(sse(call_chunk(0, name="nobody", arguments="{"), finish_chunk("stop"), "[DONE]")),
        answer(sse(text_chunk("Done."), finish_chunk(), "[DONE]")),
    ]
    async with OpenAIServer(*replies) as server:
        client = OpenAIClient(server.base_url)
        await crew.start(runtime(store, client, mike, alpha))
        found = await told(store, await admit(store, agent("mike", "alpha")))
        await client.aclose()
    assert found.end == ("completed", None)
    bodies = [seen.body for seen in server.seen]
    assert len(bodies) == 4
    assert bodies[1] == bodies[2]
    for before, after in pairwise(bodies):
        assert after.startswith(_prefix(before))
        assert _without_messages(after) == _without_messages(before)


def _prefix(body: bytes) -> bytes:
    """Return the body up to the end of its last message."""
    messages = json.loads(body)["messages"]
    last = json.dumps(messages[-1]["content"], ensure_ascii=False)[1:-1].encode()
    end = body.rindex(last) + len(last)
    assert end > 0
    return body[:end]


def _without_messages(body: bytes) -> dict[str, JsonValue]:
    value = json.loads(body)
    assert isinstance(value, dict)
    del value["messages"]
    return value


async def test_d5_a_thread_behind_an_interrupted_run_is_paired(store: Store, crew: Crew) -> None:
    """What was cut off is answered, so that the next Run's provider accepts the history."""
    holding = Holding()
    model = FakeModel().turn(tool_calls=[("slow", {}), ("zulu", {})]).turn(text="Again.")
    await crew.start(runtime(store, model, holding.tool(safe=False), zulu))
    version = await publish(store, agent("slow", "zulu"), scope=ACME)
    first = await admit(store, version)
    await holding.began.wait()
    await interrupt(store, first, scope=ACME)
    await run_to_end(store, first)
    second = await admit(store, version, "Go on.", continues=first)
    await run_to_end(store, second)
    assert unpaired(model.requests[-1].messages) is None
    cut, sibling = [text for _, text in answers(model.requests[-1].messages)]
    assert "cancelled" in cut
    assert sibling == "z"


async def test_mod_8_nothing_of_the_clock_is_in_the_prompt(store: Store, crew: Crew) -> None:
    """Two Runs of one Version, one input: the same first request."""
    model = FakeModel().turn(text="Hello.")
    await crew.start(runtime(store, model, zulu))
    version = await publish(store, agent("zulu"), scope=ACME)
    for _ in range(2):
        await run_to_end(store, await admit(store, version))
    await eventually(lambda: len(model.requests) == 2)
    assert model.requests[0].model_dump_json() == model.requests[1].model_dump_json()
