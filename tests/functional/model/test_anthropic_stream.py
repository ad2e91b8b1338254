"""AnthropicClient against a real server: what is sent, and what is made of a good answer."""

import asyncio
import json
from contextlib import aclosing

import pytest

from psych_runtime.errors import InvalidArgument, UnsendableRequest
from psych_runtime.model.anthropic import AnthropicClient
from psych_runtime.ports.model import DeclaringClient
from psych_schema.common import Usage
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
from tests.servers.anthropic_server import (
    AnthropicServer,
    block,
    delta,
    events,
    message_delta,
    start,
    stop,
    text,
    whole,
)
from tests.servers.openai_server import Stop, answer

_HI = whole(*text(0, "Hi"))


def _request(*, idle: float = 30.0, **more: object) -> ModelRequest:
    user = UserMessage(parts=(TextPart(text="Hello"),))
    request = ModelRequest(
        model="m", system="Be brief.", messages=(user,), stream_idle_seconds=idle
    )
    return request.model_copy(update=more)


async def _events(client: AnthropicClient) -> list[ModelEvent]:
    return [event async for event in client.stream(_request())]


def _text(told: list[ModelEvent]) -> str:
    return "".join(event.text for event in told if isinstance(event, TextDelta))


async def test_mod_9_a_streamed_answer_with_reasoning_call_and_usage() -> None:
    """Everything the format has, in the order in which it is said; the finish is last."""
    body = events(
        start(
            input_tokens=40,
            cache_read_input_tokens=60,
            cache_creation_input_tokens=7,
            output_tokens=1,
        ),
        {"type": "ping"},
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        *text(1, "So"),
        block(2, "tool_use", id="toolu_1", name="add", input={}),
        delta(2, "input_json_delta", partial_json='{"a":1}'),
        stop(2),
        message_delta("tool_use", output_tokens=20),
        {"type": "message_stop"},
    )
    async with AnthropicServer(answer(body)) as server:
        client = AnthropicClient(server.base_url, api_key="sk-secret-key")
        told = await _events(client)
        await client.aclose()
    counted = {"input_tokens": 40, "cache_read_tokens": 60, "cache_write_tokens": 7}
    assert told == [
        UsageReport(usage=Usage(**counted, output_tokens=1)),
        ReasoningDelta(text="hm"),
        ReasoningDelta(text="", signature="c2ln"),
        TextDelta(text="So"),
        CallDelta(index=0, provider_id="toolu_1", name="add", arguments='{"a":1}'),
        UsageReport(usage=Usage(**counted, output_tokens=20)),
        Finish(reason="tool_calls", served_by="served-model"),
    ]
    seen = server.seen[0]
    assert (seen.method, seen.path) == ("POST", "/v1/messages")
    assert seen.headers["x-api-key"] == "sk-secret-key"
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert seen.headers["accept"] == "text/event-stream"
    assert "authorization" not in seen.headers
    assert seen.json == {
        "model": "m",
        "max_tokens": 16_384,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    }


async def test_mod_9_headers_of_the_operator_are_sent() -> None:
    """A beta, another version, another way to authenticate."""
    headers = {
        "Authorization": "Bearer t",
        "anthropic-beta": "b",
        "Anthropic-Version": "2030-01-01",
    }
    async with AnthropicServer(_HI) as server:
        client = AnthropicClient(server.base_url, headers=headers)
        assert _text(await _events(client)) == "Hi"
        await client.aclose()
    seen = server.seen[0].headers
    assert (seen["authorization"], seen["anthropic-beta"]) == ("Bearer t", "b")
    assert seen["anthropic-version"] == "2030-01-01"
    assert "x-api-key" not in seen


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("named", [True, False])
async def test_mod_5_bytes_split_anywhere_are_one_text(framing: str, named: bool) -> None:
    """One byte at a time, also where the type stands in the data only."""
    told_text = text(0, "grüße 😀", " ok")
    body = events(start(), *told_text, message_delta(), {"type": "message_stop"}, named=named)
    pieces = [body[at : at + 1] for at in range(len(body))]
    reply = answer(*pieces) if framing == "chunked" else answer(*pieces, framing="close")
    async with AnthropicServer(reply) as server:
        client = AnthropicClient(server.base_url)
        told = await _events(client)
        await client.aclose()
    assert _text(told) == "grüße 😀 ok"
    assert told[-1] == Finish(reason="stop", served_by="served-model")


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", None])
async def test_mod_5_a_server_that_does_not_stream_is_understood(content_type: str | None) -> None:
    """One message instead of events, whatever it is called."""
    message = {
        "type": "message",
        "model": "m-1",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 2, "output_tokens": 1},
    }
    body = b"\n " + json.dumps(message).encode()
    pieces = (body[:1], body[1:20], body[20:])
    async with AnthropicServer(answer(*pieces, content_type=content_type)) as server:
        client = AnthropicClient(server.base_url)
        told = await _events(client)
        await client.aclose()
    assert told == [
        UsageReport(usage=Usage(input_tokens=2, output_tokens=1)),
        TextDelta(text="Hi"),
        Finish(reason="stop", served_by="m-1"),
    ]


@pytest.mark.parametrize("named", [True, False])
async def test_c3_a_finished_stream_gives_its_connection_back(named: bool) -> None:
    """The next call uses it again, whether the last event has a name or not."""
    said = text(0, "Hi")
    body = events(start(), *said, message_delta(), {"type": "message_stop"}, named=named)
    async with AnthropicServer(answer(body)) as server:
        client = AnthropicClient(server.base_url)
        for _ in range(5):
            assert _text(await _events(client)) == "Hi"
        await client.aclose()
    assert server.connections == 1


async def test_c3_closed_streams_do_not_starve_a_pool() -> None:
    """Closing ends the call at the server and frees the connection."""
    stalled = answer(
        events(start(), block(0, "text"), delta(0, "text_delta", text="Hi")), Stop.STALL
    )
    async with AnthropicServer(stalled) as server:
        client = AnthropicClient(server.base_url, max_connections=5)

        async def interrupted() -> None:
            async with aclosing(client.stream(_request())) as told:
                assert await anext(told) == TextDelta(text="Hi")

        await asyncio.gather(*(interrupted() for _ in range(50)))
        await server.until_left(50)
        server.replies = [_HI]
        assert _text(await _events(client)) == "Hi"
        await client.aclose()


async def test_mod_9_nothing_is_sent_of_what_cannot_be_written() -> None:
    """The error comes before the server is asked."""
    async with AnthropicServer(_HI) as server:
        client = AnthropicClient(server.base_url, without=["output"])
        with pytest.raises(UnsendableRequest, match="AnthropicClient does not take seed"):
            await anext(client.stream(_request(seed=1)))
        await client.aclose()
    assert server.connections == 0


async def test_mod_9_the_bound_on_output_is_the_spec_s_or_the_operator_s() -> None:
    """The format demands one."""
    async with AnthropicServer(_HI) as server:
        client = AnthropicClient(server.base_url, max_tokens=77)
        for bound in (None, 9):
            _ = [event async for event in client.stream(_request(max_output_tokens=bound))]
        await client.aclose()
    assert [seen.json["max_tokens"] for seen in server.seen] == [77, 9]


def test_pub_1_a_client_tells_what_it_takes_and_which_models() -> None:
    """It asks nobody."""
    client: DeclaringClient = AnthropicClient("http://127.0.0.1:9/v1", models=["a", "b"])
    assert client.models() == frozenset("ab")
    assert "seed" not in client.takes().fields
    assert {"cache", "extras", "output", "tool_choice"} < client.takes().fields
    assert "thinking" not in client.takes().own
    assert {"max_tokens", "messages", "stream", "system"} < client.takes().own
    less = AnthropicClient("http://127.0.0.1:9/v1", without=["output"])
    assert client.takes().fields - less.takes().fields == {"output"}
    assert less.models() is None


def test_pub_1_a_client_that_cannot_be_is_refused() -> None:
    """With what is wrong."""
    with pytest.raises(InvalidArgument, match="no field that this client has: seed"):
        AnthropicClient(without=["seed"])
    with pytest.raises(InvalidArgument, match="max_tokens"):
        AnthropicClient(max_tokens=0)
