"""AnthropicClient against a real server: what its format alone has."""

import pytest

from psych_runtime.errors import InvalidArgument, ModelPermanent
from psych_runtime.model.anthropic import AnthropicClient
from psych_runtime.ports.model import DeclaringClient
from psych_schema.common import Usage
from psych_schema.model import CallDelta, Finish, ReasoningDelta, TextDelta, UsageReport
from tests.functional.model.asking import request, text_of, told_by
from tests.servers.anthropic_server import (
    AnthropicServer,
    block,
    delta,
    error,
    events,
    message_delta,
    start,
    stop,
    text,
    whole,
)
from tests.servers.openai_server import answer

_HI = whole(*text(0, "Hi"))


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
        told = await told_by(client)
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
        assert text_of(await told_by(client)) == "Hi"
        await client.aclose()
    seen = server.seen[0].headers
    assert (seen["authorization"], seen["anthropic-beta"]) == ("Bearer t", "b")
    assert seen["anthropic-version"] == "2030-01-01"
    assert "x-api-key" not in seen


async def test_sec_2_the_version_of_the_format_is_no_secret() -> None:
    """What a server says of it is told; what the operator gives is taken out of it."""
    refusal = error(400, "invalid_request_error", "2023-06-01 is too old for c4n4ry-beta")
    async with AnthropicServer(refusal) as server:
        client = AnthropicClient(server.base_url, headers={"anthropic-beta": "c4n4ry-beta"})
        with pytest.raises(ModelPermanent, match=r": 2023-06-01 is too old for \[secret ant"):
            await told_by(client)
        await client.aclose()
        given = AnthropicClient(server.base_url, headers={"anthropic-version": "2023-06-01"})
        with pytest.raises(ModelPermanent, match=r": \[secret anthropic-version\] is too old"):
            await told_by(given)
        await given.aclose()
    assert server.seen[1].headers["anthropic-version"] == "2023-06-01"


async def test_mod_9_the_bound_on_output_is_the_spec_s_or_the_operator_s() -> None:
    """The format demands one."""
    async with AnthropicServer(_HI) as server:
        client = AnthropicClient(server.base_url, max_tokens=77)
        for bound in (None, 9):
            await told_by(client, request(max_output_tokens=bound))
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
