"""OpenAIClient against a real server: what its format alone has."""

from psych_runtime.model.openai import OpenAIClient
from psych_schema.common import Cost, Usage
from psych_schema.model import CallDelta, Finish, ReasoningDelta, TextDelta, UsageReport
from tests.functional.model.asking import request, text_of, told_by
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)


async def test_mod_9_a_streamed_answer_with_reasoning_call_and_usage() -> None:
    """Everything the format has, in the order in which it is said; the finish is last."""
    usage = usage_chunk(
        100,
        20,
        prompt_tokens_details={"cached_tokens": 60},
        completion_tokens_details={"reasoning_tokens": 5},
        cost=0.00025,
    )
    body = sse(
        text_chunk("", role="assistant"),
        text_chunk("", reasoning_content="hm"),
        text_chunk("So"),
        call_chunk(0, id="call_x", name="add"),
        call_chunk(0, arguments='{"a":'),
        call_chunk(0, arguments="1}"),
        finish_chunk("tool_calls"),
        usage,
        "[DONE]",
    )
    async with OpenAIServer(answer(body)) as server:
        client = OpenAIClient(server.base_url, api_key="sk-secret-key")
        events = await told_by(client)
        await client.aclose()
    assert events == [
        ReasoningDelta(text="hm"),
        TextDelta(text="So"),
        CallDelta(index=0, provider_id="call_x", name="add", arguments='{"a":'),
        CallDelta(index=0, arguments="1}"),
        UsageReport(
            usage=Usage(
                input_tokens=40, cache_read_tokens=60, output_tokens=20, reasoning_tokens=5
            ),
            cost=Cost(amount="0.00025", currency="USD", source="provider"),
        ),
        Finish(reason="tool_calls", served_by="served-model"),
    ]
    seen = server.seen[0]
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == "Bearer sk-secret-key"
    assert seen.headers["accept"] == "text/event-stream"
    assert seen.json == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_mod_9_a_client_may_ask_for_whole_answers() -> None:
    """For servers that cannot stream tool calls."""
    body = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    async with OpenAIServer(answer(body, content_type="application/json")) as server:
        client = OpenAIClient(server.base_url, streaming=False)
        assert text_of(await told_by(client)) == "Hi"
        await client.aclose()
    assert server.seen[0].json["stream"] is False
    assert server.seen[0].headers["accept"] == "application/json"


async def test_mod_9_the_bound_on_output_is_named_as_the_server_knows_it() -> None:
    """`max_tokens` unless told otherwise; OpenAI's own hosts get the newer name."""
    hi = answer(sse(text_chunk("Hi"), finish_chunk(), "[DONE]"))
    async with OpenAIServer(hi) as server:
        plain = OpenAIClient(server.base_url)
        told = OpenAIClient(server.base_url, max_tokens_field="max_completion_tokens")
        for client in (plain, told):
            await told_by(client, request(max_output_tokens=9))
            await client.aclose()
    assert server.seen[0].json["max_tokens"] == 9
    assert server.seen[1].json["max_completion_tokens"] == 9
