"""The final answer as data: asked for, checked, repaired once, and then an error (MOD-9)."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import JsonValue

from psych_runtime._reads import answer as read_answer
from psych_runtime.api import publish
from psych_runtime.errors import InvalidSpec
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import FinishReason, UserMessage
from psych_schema.record import AdvisoryAdded, ModelStarted, TurnStarted
from psych_schema.spec import AgentSpec, OutputRules
from tests.functional.engine.behaviour.talk import Told, talk, told
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    records_of,
    runtime,
    send,
    texts_of,
)
from tests.servers.openai_server import OpenAIServer, answer, finish_chunk, sse, text_chunk

_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
_RIGHT = '{"city": "Rome", "degrees": 31}'
_WRONG = '{"city": "Rome", "degrees": "hot"}'


def _spec(*tools: str, **limits: Any) -> AgentSpec:
    made = agent(*tools, **limits)
    return made.model_copy(update={"output": OutputRules(json_schema=_SCHEMA)})


def _said(text: str) -> bytes:
    return sse(text_chunk(text), finish_chunk(), "[DONE]")


def _purposes(found: Told) -> list[tuple[str, str]]:
    turns, calls = found.every(TurnStarted), found.every(ModelStarted)
    return [(turn.purpose, call.purpose) for turn, call in zip(turns, calls, strict=True)]


async def test_mod_9_an_answer_that_fits_is_data(store: Store, crew: Crew) -> None:
    """The provider is asked for the schema; `answer()` has the value, not its text."""
    async with (
        OpenAIServer(answer(_said(_RIGHT))) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        found = await talk(store, crew, client, spec=_spec())
        [seen] = server.seen
    assert found.end == ("completed", None)
    assert seen.json["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "helper", "schema": _SCHEMA, "strict": False},
    }
    view = await read_answer(store, found.run_id, scope=ACME)
    assert view.output == {"city": "Rome", "degrees": 31}
    assert view.text == _RIGHT
    assert _purposes(found) == [("answer", "answer")]


async def test_mod_9_a_wrong_answer_has_one_repair_turn(store: Store, crew: Crew) -> None:
    """The model is told what is wrong, as a message behind its own, and answers again."""
    async with (
        OpenAIServer(answer(_said(_WRONG)), answer(_said(_RIGHT))) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        found = await talk(store, crew, client, spec=_spec())
        first, second = (json.dumps(one.json["messages"])[:-1] for one in server.seen)
        messages = server.seen[1].json["messages"]
    assert found.end == ("completed", None)
    assert found.answer == {"city": "Rome", "degrees": 31}
    assert _purposes(found) == [("answer", "answer"), ("repair", "repair")]
    [advisory] = found.every(AdvisoryAdded)
    assert advisory.code == "output_invalid"
    told_model = advisory.message or ""
    assert "/degrees" in told_model
    assert '"required":["city","degrees"]' in told_model
    assert second.startswith(first)  # MOD-8: the prompt extends the one before it
    assert isinstance(messages, list)
    assert messages[-2:] == [
        {"role": "assistant", "content": _WRONG},
        {"role": "user", "content": told_model},
    ]


@pytest.mark.parametrize("text", [_WRONG, "It is hot in Rome.", "```json\n{}\n```", '{"a": NaN}'])
async def test_mod_9_a_second_wrong_answer_fails_the_run(
    store: Store, crew: Crew, text: str
) -> None:
    """There is one repair; a Run whose answer is no data has no output."""
    model = FakeModel().turn(text).turn(text).turn(_RIGHT)
    found = await talk(store, crew, model, spec=_spec())
    assert found.end == ("failed", "output_invalid")
    assert found.answer is None
    assert len(model.requests) == 2


async def test_mod_9_tool_calls_in_the_repair_give_no_second_one(store: Store, crew: Crew) -> None:
    """What the repair asks for is done; its answer is the last all the same."""

    def look() -> str:
        """Look."""
        return "31"

    model = FakeModel().turn(_WRONG).turn("", [("look", {})]).turn(_WRONG).turn(_RIGHT)
    found = await talk(store, crew, model, look, spec=_spec("look"))
    assert found.end == ("failed", "output_invalid")
    assert [one for one, _ in _purposes(found)] == ["answer", "repair", "repair"]


async def test_mod_9_a_new_message_has_a_repair_of_its_own(store: Store, crew: Crew) -> None:
    """What somebody else asks for is another answer."""
    model = FakeModel().turn(_WRONG).turn(_RIGHT, chunk_delay_seconds=0.1).turn(_WRONG).turn(_RIGHT)
    await crew.start(runtime(store, model))
    run = await admit(store, _spec())
    await eventually(lambda: len(model.requests) == 2)
    await send(store, run, "follow_up", "And in Oslo?")
    found = await told(store, run)
    assert found.end == ("completed", None)
    assert [one for one, _ in _purposes(found)] == ["answer", "repair", "answer", "repair"]


@pytest.mark.parametrize(
    ("finish", "code"), [("length", "output_truncated"), ("content_filter", "content_filter")]
)
async def test_mod_4_half_an_answer_is_not_repaired(
    store: Store, crew: Crew, finish: FinishReason, code: str
) -> None:
    """Why it is half is the better reason."""
    found = await talk(store, crew, FakeModel().turn('{"ci', finish=finish), spec=_spec())
    assert found.end == ("failed", code)
    assert found.every(AdvisoryAdded) == []


async def test_mod_9_the_repair_counts_as_a_turn(store: Store, crew: Crew) -> None:
    """A Run whose turns are over is not repaired."""
    found = await talk(store, crew, FakeModel().turn(_WRONG), spec=_spec(max_turns=1))
    assert found.end == ("failed", "turn_limit")


async def test_mod_9_a_repair_that_fails_is_tried_again_as_one(store: Store, crew: Crew) -> None:
    """A retry is the same turn; the model is told once."""
    model = FakeModel().turn(_WRONG).raises_transient(retry_after_seconds=0).turn(_RIGHT)
    found = await talk(store, crew, model, spec=_spec())
    assert found.end == ("completed", None)
    assert [one.purpose for one in found.every(ModelStarted)] == ["answer", "repair", "repair"]
    assert len(found.every(AdvisoryAdded)) == 1


async def test_mod_9_another_worker_goes_on_with_the_repair(store: Store, crew: Crew) -> None:
    """The advisory in the log is what counts: no second one, and the same messages."""
    stalled = FakeModel().turn(_WRONG).stalls()
    worker = await crew.start(runtime(store, stalled), grace_seconds=0.0)
    run = await admit(store, _spec())
    await eventually(lambda: len(stalled.requests) == 2)
    await crew.stop(worker)
    model = FakeModel().turn("never").turn(_RIGHT)
    await crew.start(runtime(store, model))
    found = await told(store, run)
    assert found.end == ("completed", None)
    assert len(found.every(AdvisoryAdded)) == 1
    assert found.every(ModelStarted)[-1].purpose == "repair"
    assert texts_of(model.requests[0].messages) == texts_of(stalled.requests[1].messages)
    assert isinstance(model.requests[0].messages[-1], UserMessage)
    assert await records_of(store, run) == found.records


async def test_mod_9_any_json_may_be_asked_for(store: Store, crew: Crew) -> None:
    """A list is an output, too, and null is one that is there."""
    rules = OutputRules(json_schema={"type": ["array", "null"]}, strict=True)
    spec = agent().model_copy(update={"output": rules})
    model = FakeModel().turn("null")
    found = await talk(store, crew, model, spec=spec)
    assert found.end == ("completed", None)
    assert found.answer is None
    [request] = model.requests
    assert request.output is not None
    assert request.output.strict


async def test_pub_1_a_schema_that_is_none_is_refused(store: Store) -> None:
    """Where it stands, and what is wrong; nothing is published."""
    rules = OutputRules(json_schema={"type": "objekt"})
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, agent().model_copy(update={"output": rules}), scope=ACME)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == ("/output/json_schema/type", "invalid_json_schema")
