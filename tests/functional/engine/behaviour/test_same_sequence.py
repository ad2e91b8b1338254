"""One script, three models: the log tells the same story (MOD-1, MOD-7, MOD-9)."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue

from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Usage
from psych_schema.model import FinishReason
from psych_schema.record import ModelCompleted
from tests.functional.engine.behaviour.talk import outcomes, talk
from tests.functional.engine.harness import Crew
from tests.servers.mock_llm import mock_llm, rule
from tests.servers.openai_server import (
    OpenAIServer,
    Reply,
    answer,
    call_chunk,
    error,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

type Call = tuple[str, str, str]
"""The provider's id, name and arguments as text."""

_TURNS: Final[list[tuple[str, list[Call], FinishReason]]] = [
    ("I look.", [("a", "add", '{"a":1,"b":2}'), ("a", "fail", "{}")], "tool_calls"),
    ("", [("b", "add", '{"a":1')], "tool_calls"),
    ("", [("c", "nobody", "{}")], "tool_calls"),
    ("", [("d", "add", '{"a":2,"b":2}')], "length"),
    ("", [("e", "add", '{"a":3,"b":3}')], "stop"),
    ("It is 6.", [], "stop"),
]
_BUSY_AT: Final = 3  # the request for this turn is refused once

_EXPECTED: Final = [
    ("run.admitted", ""),
    ("attempt.started", ""),
    ("turn.started", ""),
    ("tools.offered", ""),
    ("model.started", ""),
    ("model.completed", "tool_calls"),
    ("tool.started", ""),
    ("tool.started", ""),
    ("tool.completed", "ok"),
    ("tool.completed", "error"),
    ("turn.started", ""),
    ("model.started", ""),
    ("model.completed", "tool_calls"),
    ("tool.refused", "malformed"),
    ("turn.started", ""),
    ("model.started", ""),
    ("model.completed", "tool_calls"),
    ("tool.refused", "unknown"),
    ("turn.started", ""),
    ("model.started", ""),
    ("model.failed", "model_transient"),
    ("model.started", ""),
    ("model.completed", "length"),
    ("tool.refused", "limit"),
    ("turn.started", ""),
    ("model.started", ""),
    ("model.completed", "stop"),
    ("tool.started", ""),
    ("tool.completed", "ok"),
    ("turn.started", ""),
    ("model.started", ""),
    ("model.completed", "stop"),
    ("run.settled", "completed"),
]


async def add(a: int, b: int) -> int:
    """Add.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def fail() -> str:
    """Fail."""
    raise ValueError("no")


@asynccontextmanager
async def _fake(_: Path) -> AsyncIterator[ModelClient]:
    model = FakeModel()
    for place, (text, calls, finish) in enumerate(_TURNS):
        if place == _BUSY_AT:
            model.raises_transient(503)
        usage = Usage(input_tokens=10 + place, output_tokens=1)
        if any(not arguments.endswith("}") for _, _, arguments in calls):
            [(provider_id, name, arguments)] = calls
            model.raw_call(name, arguments, provider_id=provider_id, usage=usage)
        else:
            asked = [(name, json.loads(arguments), one) for one, name, arguments in calls]
            model.turn(text, asked, finish=finish, usage=usage)
    yield model


def _reply(place: int, text: str, calls: list[Call], finish: str) -> Reply:
    pieces: list[object] = [text_chunk(text)] if text else []
    for index, (provider_id, name, arguments) in enumerate(calls):
        pieces.append(call_chunk(index, id=provider_id, name=name, arguments=arguments[:3]))
        pieces.append(call_chunk(index, arguments=arguments[3:]))
    return answer(sse(*pieces, finish_chunk(finish), usage_chunk(10 + place, 1), "[DONE]"))


@asynccontextmanager
async def _own_server(_: Path) -> AsyncIterator[ModelClient]:
    replies = [_reply(place, *turn) for place, turn in enumerate(_TURNS)]
    replies.insert(_BUSY_AT, error(503, "Busy."))
    async with OpenAIServer(*replies) as server:
        client = OpenAIClient(server.base_url)
        yield client
        await client.aclose()


def _message(place: int, text: str, calls: list[Call], finish: str) -> JsonValue:
    tool_calls: list[JsonValue] = [
        {"id": provider_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for provider_id, name, arguments in calls
    ]
    message: dict[str, JsonValue] = {"role": "assistant", "content": text or None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    usage: JsonValue = {"prompt_tokens": 10 + place, "completion_tokens": 1}
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}


@asynccontextmanager
async def _independent_server(folder: Path) -> AsyncIterator[ModelClient]:
    bodies = [(200, _message(place, *turn)) for place, turn in enumerate(_TURNS)]
    bodies.insert(_BUSY_AT, (503, {"error": {"message": "Busy."}}))
    rules = [rule(body, status=status, sequence=n) for n, (status, body) in enumerate(bodies)]
    async with mock_llm(folder, rules) as base_url:
        client = OpenAIClient(base_url, streaming=False)  # it streams no tool calls
        yield client
        await client.aclose()


@pytest.mark.parametrize("served", [_fake, _own_server, _independent_server])
async def test_mod_9_one_script_is_one_sequence_whoever_plays_it(
    served: Callable[[Path], AbstractAsyncContextManager[ModelClient]],
    store: Store,
    crew: Crew,
    tmp_path: Path,
) -> None:
    """Types, outcomes, words, arguments and usage agree for the three models."""
    async with served(tmp_path) as client:
        found = await talk(store, crew, client, add, fail)
        await crew.close()
    assert outcomes(found.records) == _EXPECTED
    assert found.calls == [
        ("ok", "", "3"),
        ("error", "tool_error", "fail raised ValueError: no"),
        ("ok", "", "6"),
    ]
    completed = found.every(ModelCompleted)
    assert [one.usage.input_tokens for one in completed] == [10, 11, 12, 13, 14, 15]
    for one, (text, calls, finish) in zip(completed, _TURNS, strict=True):
        assert one.said is not None
        assert "".join(getattr(part, "text", "") for part in one.said.parts) == text
        asked = [(call.provider_id, call.name, call.arguments) for call in one.said.calls]
        assert asked == calls
        assert one.finish == finish
    assert found.answer == "It is 6."
