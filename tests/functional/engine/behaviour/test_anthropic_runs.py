"""Runs over the Messages format: the port is not shaped by one provider (MOD-1..9, TOK-1)."""

import json
from base64 import b64encode
from contextlib import aclosing

import pytest
from pydantic import JsonValue

from psych_runtime.api import publish
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.model.anthropic import AnthropicClient
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing import LogBuilder
from psych_runtime.tools.policy import AllowAll
from psych_schema.common import Usage
from psych_schema.model import BlobPart
from psych_schema.record import ModelCompleted, ModelFailed, ModelStarted, ToolResult
from psych_schema.spec import AgentSpec, FallbackModel, ModelRef, OutputRules
from tests.functional.engine.behaviour.talk import Told, Tool, talk, told
from tests.functional.engine.harness import ACME, Crew, admit, agent, registry
from tests.servers.anthropic_server import (
    AnthropicServer,
    block,
    delta,
    error,
    events,
    start,
    stop,
    text,
    whole,
)
from tests.servers.openai_server import (
    OpenAIServer,
    Reply,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
)

_DONE = whole(*text(0, "Done."))


async def count(n: int) -> str:
    """Count.

    Args:
        n: The number.
    """
    return f"number {n}"


def _call(index: int, provider_id: str, name: str, arguments: str) -> list[dict[str, JsonValue]]:
    return [
        block(index, "tool_use", id=provider_id, name=name, input={}),
        delta(index, "input_json_delta", partial_json=arguments),
        stop(index),
    ]


async def _run(
    store: Store,
    crew: Crew,
    server: AnthropicServer,
    *tools: Tool,
    spec: AgentSpec | None = None,
) -> Told:
    """Talk to the server; it holds every request against the format's rules."""
    client = AnthropicClient(server.base_url, api_key="sk-canary")
    found = await talk(store, crew, client, *tools, spec=spec)
    await client.aclose()
    return found


def _turn(server: AnthropicServer, request: int, place: int) -> list[dict[str, JsonValue]]:
    """Return the content of one message of one request."""
    messages = server.seen[request].json["messages"]
    assert isinstance(messages, list)
    message = messages[place]
    assert isinstance(message, dict)
    content = message["content"]
    assert isinstance(content, list)
    return [one for one in content if isinstance(one, dict)]


async def test_mod_9_what_was_thought_and_called_goes_back_in_its_place(
    store: Store, crew: Crew
) -> None:
    """Reasoning unchanged, calls under ids of ours, every answer in the order asked."""
    asks = whole(
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking=" hm"),
        delta(0, "signature_delta", signature="c2ln/+="),
        stop(0),
        block(1, "redacted_thinking", data="b3BhcXVl"),
        stop(1),
        *text(2, "Counting."),
        *_call(3, "same", "count", '{"n":1}'),
        *_call(4, "same", "count", '{"n":2}'),
        *_call(5, "other", "count", '{"n":'),
        *_call(6, "more", "no such tool", "{}"),
        reason="tool_use",
    )
    async with AnthropicServer(asks, _DONE) as server:
        found = await _run(store, crew, server, count)
    assert (found.end, found.answer) == (("completed", None), "Done.")

    said = _turn(server, 1, 1)
    assert said[:3] == [
        {"type": "thinking", "thinking": " hm", "signature": "c2ln/+="},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "Counting."},
    ]
    uses = said[3:]
    assert [(use["name"], use["input"]) for use in uses] == [
        ("count", {"n": 1}),
        ("count", {"n": 2}),
        ("count", {}),
        ("no_such_tool", {}),
    ]
    results = _turn(server, 1, 2)
    assert [result["tool_use_id"] for result in results] == [use["id"] for use in uses]
    assert len({str(use["id"]) for use in uses}) == 4
    assert [result.get("is_error", False) for result in results] == [False, False, True, True]
    assert [result["content"] for result in results[:2]] == [
        [{"type": "text", "text": "number 1"}],
        [{"type": "text", "text": "number 2"}],
    ]


async def test_mod_8_each_request_begins_as_the_one_before(store: Store, crew: Crew) -> None:
    """Byte for byte, up to the end of its messages."""
    asks = [
        whole(*_call(0, f"id{n}", "count", f'{{"n":{n}}}'), reason="tool_use") for n in range(3)
    ]
    async with AnthropicServer(*asks, _DONE) as server:
        found = await _run(store, crew, server, count)
    assert found.end == ("completed", None)
    assert len(server.seen) == 4
    for before, after in zip(server.seen, server.seen[1:], strict=False):
        assert after.body.startswith(before.body.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (whole(*text(0, "Cut"), reason="max_tokens"), "output_truncated"),
        (whole(*text(0, "No."), reason="refusal"), "content_filter"),
        (whole(), "empty_answer"),
    ],
)
async def test_mod_4_what_is_no_whole_answer_is_not_completed(
    store: Store, crew: Crew, reply: Reply, code: str
) -> None:
    """Truncated, refused or empty: the Run says so."""
    async with AnthropicServer(reply) as server:
        found = await _run(store, crew, server, count)
    assert found.end == ("failed", code)


async def test_mod_4_calls_of_a_cut_answer_are_not_executed(store: Store, crew: Crew) -> None:
    """Their arguments may be half of what was meant."""
    cut = whole(*_call(0, "a", "count", '{"n":1}'), reason="max_tokens")
    async with AnthropicServer(cut, _DONE) as server:
        found = await _run(store, crew, server, count)
    assert found.end == ("completed", None)
    assert found.calls == []
    assert _turn(server, 1, 2)[0]["is_error"] is True


async def test_mod_5_an_overloaded_service_is_asked_again(store: Store, crew: Crew) -> None:
    """In the stream and before it; what was counted is kept, what was said is not told."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    broken = answer(
        events(
            start(input_tokens=9, cache_read_input_tokens=2, output_tokens=1),
            block(0, "text", text=""),
            delta(0, "text_delta", text="Hel"),
            json.loads(json.dumps(overloaded)),
        )
    )
    refused = error(529, "overloaded_error", "Overloaded", headers={"retry-after": "0"})
    async with AnthropicServer(broken, refused, _DONE) as server:
        found = await _run(store, crew, server, count)
    assert (found.end, found.answer) == (("completed", None), "Done.")
    first, second = found.every(ModelFailed)
    assert first.usage == Usage(input_tokens=9, cache_read_tokens=2, output_tokens=1)
    assert (second.usage, second.failure.status) == (None, 529)
    [completed] = found.every(ModelCompleted)
    assert completed.usage == Usage(input_tokens=3, output_tokens=7)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (
            error(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            "context_overflow",
        ),
        (error(401, "authentication_error", "invalid x-api-key"), "model_permanent"),
    ],
)
async def test_mod_6_a_refusal_that_stays_is_told_apart(
    store: Store, crew: Crew, reply: Reply, code: str
) -> None:
    """It is asked once."""
    async with AnthropicServer(reply) as server:
        found = await _run(store, crew, server, count)
    assert found.end[0] == "failed"
    assert [failed.failure.code for failed in found.every(ModelFailed)] == [code]
    assert len(server.seen) == 1


async def test_mod_9_what_a_spec_asks_for_is_sent(store: Store, crew: Crew) -> None:
    """From the Spec to the wire."""
    model = ModelRef.model_validate(
        {
            "model": "fake",
            "temperature": 0.5,
            "max_output_tokens": 99,
            "stop_sequences": ["END"],
            "tool_choice": {"mode": "required"},
            "parallel_tool_calls": False,
            "cache": "conversation",
            "extras": {"thinking": {"type": "adaptive"}},
        }
    )
    asks = whole(*_call(0, "a", "count", '{"n":1}'), reason="tool_use")
    async with AnthropicServer(asks, _DONE) as server:
        spec = agent("count").model_copy(update={"model": model})
        found = await _run(store, crew, server, count, spec=spec)
    assert found.end == ("completed", None)
    first, second = (seen.json for seen in server.seen)
    fields = ("model", "temperature", "max_tokens", "stop_sequences", "thinking", "tool_choice")
    assert {name: first[name] for name in fields} == {
        "model": "fake",
        "temperature": 0.5,
        "max_tokens": 99,
        "stop_sequences": ["END"],
        "thinking": {"type": "adaptive"},
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }
    assert second["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert _turn(server, 0, 0)[-1]["cache_control"] == {"type": "ephemeral"}
    assert _turn(server, 1, 0)[-1]["cache_control"] == {"type": "ephemeral"}
    assert _turn(server, 1, 2)[-1]["cache_control"] == {"type": "ephemeral"}


_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"degrees": {"type": "integer"}},
    "required": ["degrees"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("strict", [True, False])
async def test_mod_9_an_answer_as_data_is_asked_for_and_repaired(
    store: Store, crew: Crew, strict: bool
) -> None:
    """The service is told the schema, or the model is; each request tells the same."""
    wrong, right = whole(*text(0, "It is hot.")), whole(*text(0, '{"degrees": 31}'))
    output = OutputRules(json_schema=_SCHEMA, strict=strict)
    async with AnthropicServer(wrong, right) as server:
        spec = agent().model_copy(update={"output": output})
        found = await _run(store, crew, server, spec=spec)
    assert (found.end, found.answer) == (("completed", None), {"degrees": 31})
    told_schema = [
        ("output_config" in seen.json, "degrees" in json.dumps(seen.json["system"]))
        for seen in server.seen
    ]
    assert told_schema == [(strict, not strict)] * 2
    assert "degrees" in str(_turn(server, 1, 2)[0]["text"])


async def test_mod_9_an_image_of_a_tool_is_sent_after_a_restart(store: Store, crew: Crew) -> None:
    """One worker got it and is gone; the next one's request has it, in the tool's answer."""
    blob = MemoryBlobStore()
    version = await publish(store, agent("count"), scope=ACME)
    log = LogBuilder()
    log.admit("Look.", version=version.hash)
    png = b"\x89PNG\r\n"
    ref = await blob.put(ACME.tenant, log.run_id, png, media_type="image/png")
    log.claim()
    [call] = log.turn(["count"])
    log.start(call)
    log.finish(call, result=ToolResult(parts=(BlobPart(blob=ref, name="cat.png"),)))
    log.end("drained")
    await log.commit_to(store)
    async with (
        AnthropicServer(_DONE) as server,
        aclosing(AnthropicClient(server.base_url)) as client,
    ):
        await crew.start(
            Runtime(
                store=store, model=client, blob=blob, registry=registry(count), policy=AllowAll()
            )
        )
        found = await told(store, log.run_id)
    assert found.end == ("completed", None)
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(png).decode()}
    [result] = _turn(server, 0, 2)
    assert result["content"] == [{"type": "image", "source": source}]


async def test_mod_9_reasoning_does_not_go_to_another_provider(store: Store, crew: Crew) -> None:
    """One model stands in for the other in the middle of a Run, each in its own format."""
    asks = whole(
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="secret thought"),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        *_call(1, "a", "count", '{"n":1}'),
        reason="tool_use",
    )
    busy = error(529, "overloaded_error", "Overloaded", headers={"retry-after": "0"})
    other = answer(
        sse(
            text_chunk("", reasoning_content="another thought"),
            call_chunk(0, id="b", name="count", arguments='{"n":2}'),
            finish_chunk("tool_calls"),
            "[DONE]",
        ),
    )
    done = answer(sse(text_chunk("Done."), finish_chunk(), "[DONE]"))
    async with (
        AnthropicServer(asks, busy) as first,
        OpenAIServer(other, done) as second,
        aclosing(AnthropicClient(first.base_url)) as one,
        aclosing(OpenAIClient(second.base_url, reasoning_field="reasoning_content")) as two,
    ):
        model = ModelRef(model="a/one", fallbacks=(FallbackModel(model="b/two"),))
        spec = agent("count", transient_retry_budget=0).model_copy(update={"model": model})
        clients: dict[str, ModelClient] = {"a": one, "b": two}
        made = Runtime(store=store, model=clients, registry=registry(count), policy=AllowAll())
        await crew.start(made)
        found = await told(store, await admit(store, spec))
    assert (found.end, found.answer) == (("completed", None), "Done.")
    models = [started.model for started in found.every(ModelStarted)]
    assert models == ["a/one", "a/one", "b/two", "b/two"]
    assert "secret thought" in first.seen[1].body.decode()
    assert "secret thought" not in second.seen[1].body.decode()
    assert "another thought" in second.seen[1].body.decode()
    assert "number 1" in second.seen[0].body.decode()
