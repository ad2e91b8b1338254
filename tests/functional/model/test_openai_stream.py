"""OpenAIClient against a real server: what is sent, and what is made of a good answer."""

import asyncio
from contextlib import aclosing

import pytest

from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_schema.common import Cost, Usage
from psych_schema.model import (
    CallDelta,
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextPart,
    UsageReport,
    UserMessage,
)
from tests.servers.openai_server import (
    OpenAIServer,
    Stop,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

_HI = answer(sse(text_chunk("Hi"), finish_chunk(), "[DONE]"))


def request(*, idle: float = 30.0, text: str = "Hello") -> ModelRequest:
    """Return a small request."""
    user = UserMessage(parts=(TextPart(text=text),))
    return ModelRequest(model="m", system="Be brief.", messages=(user,), stream_idle_seconds=idle)


async def _events(client: OpenAIClient, *, idle: float = 30.0) -> list[ModelEvent]:
    return [event async for event in client.stream(request(idle=idle))]


def _text(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


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
        events = await _events(client)
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


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_mod_5_bytes_split_anywhere_are_one_text(newline: str, framing: str) -> None:
    """One byte at a time, inside characters and between CR and LF."""
    body = sse(text_chunk("grüße 😀"), text_chunk(" ok"), finish_chunk(), newline=newline)
    pieces = [body[at : at + 1] for at in range(len(body))]
    server_answer = answer(*pieces) if framing == "chunked" else answer(*pieces, framing="close")
    async with OpenAIServer(server_answer) as server:
        client = OpenAIClient(server.base_url)
        events = await _events(client)
        await client.aclose()
    assert _text(events) == "grüße 😀 ok"
    assert events[-1] == Finish(reason="stop", served_by="served-model")


async def test_mod_5_an_event_is_told_before_the_next_comes() -> None:
    """The first word is there while the server is silent."""
    async with OpenAIServer(answer(sse(text_chunk("Hi")), Stop.STALL)) as server:
        client = OpenAIClient(server.base_url)
        async with aclosing(client.stream(request())) as stream:
            assert await anext(stream) == TextDelta(text="Hi")
        await server.until_left(1)
        await client.aclose()


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", None])
async def test_mod_5_a_server_that_does_not_stream_is_understood(
    content_type: str | None,
) -> None:
    """One completion object instead of chunks, whatever it is called."""
    body = (
        b'\n {"object": "chat.completion", "model": "m-1", "choices": [{"index": 0, "message": '
        b'{"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], '
        b'"usage": {"prompt_tokens": 2, "completion_tokens": 1}}'
    )
    pieces = (body[:1], body[1:20], body[20:])
    async with OpenAIServer(answer(*pieces, content_type=content_type)) as server:
        client = OpenAIClient(server.base_url)
        events = await _events(client)
        await client.aclose()
    assert events == [
        UsageReport(usage=Usage(input_tokens=2, output_tokens=1)),
        TextDelta(text="Hi"),
        Finish(reason="stop", served_by="m-1"),
    ]


async def test_mod_9_a_client_may_ask_for_whole_answers() -> None:
    """For servers that cannot stream tool calls."""
    body = b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    async with OpenAIServer(answer(body, content_type="application/json")) as server:
        client = OpenAIClient(server.base_url, streaming=False)
        assert _text(await _events(client)) == "Hi"
        await client.aclose()
    assert server.seen[0].json["stream"] is False
    assert server.seen[0].headers["accept"] == "application/json"


async def test_mod_9_the_bound_on_output_is_named_as_the_server_knows_it() -> None:
    """`max_tokens` unless told otherwise; OpenAI's own hosts get the newer name."""
    bounded = request().model_copy(update={"max_output_tokens": 9})
    async with OpenAIServer(_HI) as server:
        plain = OpenAIClient(server.base_url)
        told = OpenAIClient(server.base_url, max_tokens_field="max_completion_tokens")
        for client in (plain, told):
            _ = [event async for event in client.stream(bounded)]
            await client.aclose()
    assert server.seen[0].json["max_tokens"] == 9
    assert server.seen[1].json["max_completion_tokens"] == 9


async def test_run_12_many_calls_on_one_client_do_not_mix() -> None:
    """Nothing of a Run stays on the client."""
    replies = [
        answer(sse(call_chunk(0, id="a", name=f"tool{n}", arguments="{}"), finish_chunk("stop")))
        for n in range(20)
    ]
    async with OpenAIServer(*replies) as server:
        client = OpenAIClient(server.base_url)
        answers = await asyncio.gather(*(_events(client) for _ in range(20)))
        await client.aclose()
    names = [event.name for events in answers for event in events if isinstance(event, CallDelta)]
    assert sorted(name or "" for name in names) == sorted(f"tool{n}" for n in range(20))


async def test_c3_a_finished_stream_gives_its_connection_back() -> None:
    """The next call uses it again."""
    async with OpenAIServer(_HI) as server:
        client = OpenAIClient(server.base_url)
        for _ in range(5):
            assert _text(await _events(client)) == "Hi"
        await client.aclose()
    assert server.connections == 1


async def test_c3_200_closed_streams_do_not_starve_a_pool_of_5() -> None:
    """Closing ends the call at the server and frees the connection."""
    stalled = answer(sse(text_chunk("Hi")), Stop.STALL)
    async with OpenAIServer(stalled) as server:
        client = OpenAIClient(server.base_url, max_connections=5)

        async def interrupted() -> None:
            async with aclosing(client.stream(request())) as stream:
                assert await anext(stream) == TextDelta(text="Hi")

        await asyncio.gather(*(interrupted() for _ in range(200)))
        await server.until_left(200)
        server.replies = [_HI]
        assert _text(await _events(client)) == "Hi"
        await client.aclose()


async def test_c3_200_cancelled_calls_do_not_starve_a_pool_of_5() -> None:
    """Also when the waiting task is cancelled, before the headers or in the body."""
    stalled = answer(sse(text_chunk("Hi")), Stop.STALL)
    async with OpenAIServer(stalled) as server:
        client = OpenAIClient(server.base_url, max_connections=5)
        for goal in range(5, 205, 5):
            tasks = [asyncio.create_task(_events(client)) for _ in range(5)]
            await server.until_seen(goal)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
        server.replies = [_HI]
        assert _text(await _events(client)) == "Hi"
        await client.aclose()


async def test_run_12_a_client_outlives_the_loop_that_used_it_first() -> None:
    """A connection works on its own loop only; each loop gets its own."""
    async with OpenAIServer(_HI) as server:
        client = OpenAIClient(server.base_url)

        async def elsewhere() -> str:
            try:
                return _text(await _events(client))
            finally:
                await client.aclose()

        assert _text(await _events(client)) == "Hi"
        assert await asyncio.to_thread(asyncio.run, elsewhere()) == "Hi"
        assert _text(await _events(client)) == "Hi"
        await client.aclose()
    assert server.connections == 2


async def test_pub_1_a_client_tells_its_models_when_it_was_told() -> None:
    """It asks nobody."""
    client: ModelClient = OpenAIClient("http://127.0.0.1:9/v1")
    assert client.models() is None
    assert OpenAIClient("http://127.0.0.1:9/v1", models=["a", "b"]).models() == frozenset("ab")
