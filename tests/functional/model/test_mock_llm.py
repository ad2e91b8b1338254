"""OpenAIClient against an independent server: npm `@dwmkerr/mock-llm`."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from psych_runtime.errors import ModelPermanent, ModelTransient
from psych_runtime.model.openai import OpenAIClient
from psych_schema.common import Usage
from psych_schema.model import (
    AskedCall,
    AssistantMessage,
    CallDelta,
    Finish,
    Message,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextPart,
    ToolDefinition,
    ToolMessage,
    UsageReport,
    UserMessage,
)
from tests.servers.mock_llm import mock_llm, rule

_ID = "call_" + "1" * 26
_USER = UserMessage(parts=(TextPart(text="What is 1 + 2?"),))
_ADD = ToolDefinition(name="add", description="Add.", parameters={"type": "object"})


def _whole(message: JsonValue, reason: str, **more: JsonValue) -> JsonValue:
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion", "model": "mock", "choices": [choice], **more}


def _request(*messages: Message, model: str = "m") -> ModelRequest:
    return ModelRequest(model=model, system="Add.", messages=messages, tools=(_ADD,))


async def test_mod_9_text_is_streamed_by_an_independent_server(tmp_path: Path) -> None:
    """It cuts characters outside the basic plane in two: they arrive whole."""
    text = "grüße 😀😀😀 there"
    hello = rule(_whole({"role": "assistant", "content": text}, "stop"))
    async with mock_llm(tmp_path, [hello], chunk_characters=3) as base_url:
        client = OpenAIClient(base_url)
        events: list[ModelEvent] = [event async for event in client.stream(_request(_USER))]
        await client.aclose()
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 3
    assert "".join(texts) == text
    assert events[-1] == Finish(reason="stop", served_by="mock")


async def test_mod_9_a_tool_call_and_its_answer_on_an_independent_server(tmp_path: Path) -> None:
    """It knows the second request by its tool message; it streams no calls, so whole answers."""
    function: JsonValue = {"name": "add", "arguments": '{"a":1,"b":2}'}
    call: JsonValue = {"id": "theirs", "type": "function", "function": function}
    usage: JsonValue = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    asks = _whole(
        {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls", usage=usage
    )
    done = _whole(
        {"role": "assistant", "content": "It is {{jmes request body.messages[-1].content}}"}, "stop"
    )
    rules = [rule(asks), rule(done, match=f"body.messages[-1].tool_call_id == '{_ID}'")]
    asked = AssistantMessage(
        parts=(),
        calls=(
            AskedCall(call_id=_ID, provider_id="theirs", name="add", arguments='{"a":1,"b":2}'),
        ),
    )
    result = ToolMessage(call_id=_ID, parts=(TextPart(text="3"),))
    async with mock_llm(tmp_path, rules) as base_url:
        client = OpenAIClient(base_url, streaming=False)
        first = [event async for event in client.stream(_request(_USER))]
        second = [event async for event in client.stream(_request(_USER, asked, result))]
        await client.aclose()
    assert first == [
        UsageReport(usage=Usage(input_tokens=7, output_tokens=2)),
        CallDelta(index=0, provider_id="theirs", name="add", arguments='{"a":1,"b":2}'),
        Finish(reason="tool_calls", served_by="mock"),
    ]
    assert second == [TextDelta(text="It is 3"), Finish(reason="stop", served_by="mock")]


async def test_mod_5_errors_of_an_independent_server(tmp_path: Path) -> None:
    """Inside a stream they come with status 200, else with their own."""
    words: JsonValue = {"message": "Incorrect API key provided.", "code": "invalid_api_key"}
    refused = rule({"error": words}, status=401, match="body.model == 'refused'")
    busy = rule({"error": {"message": "Busy."}}, status=503, match="body.model == 'busy'")
    async with mock_llm(tmp_path, [refused, busy]) as base_url:
        for streaming in (True, False):
            client = OpenAIClient(base_url, streaming=streaming)
            with pytest.raises(ModelPermanent, match="Incorrect API key") as permanent:
                await anext(client.stream(_request(_USER, model="refused")))
            with pytest.raises(ModelTransient, match="Busy") as transient:
                await anext(client.stream(_request(_USER, model="busy")))
            statuses = (permanent.value.status, transient.value.status)
            assert statuses == ((None, None) if streaming else (401, 503))
            with pytest.raises(ModelPermanent) as missing:
                await anext(client.stream(_request(_USER, model="none")))
            assert missing.value.status == 404
            await client.aclose()
