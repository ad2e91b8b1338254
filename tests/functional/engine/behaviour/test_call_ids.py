"""Every call has an id of ours, whatever the provider calls it (MOD-1)."""

import pytest
from pydantic import JsonValue

from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import ModelCompleted, ToolCompleted, ToolStarted
from tests.functional.engine.behaviour.talk import Told, answers, asked_ids, talk
from tests.functional.engine.harness import Crew
from tests.servers.openai_server import (
    OpenAIServer,
    Reply,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
)


class Counter:
    """A tool that remembers what it was called with."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def count(self, n: int) -> str:
        """Count.

        Args:
            n: The number.
        """
        self.seen.append(n)
        return f"number {n}"


def _paired(told: Told, expected: list[str]) -> None:
    started = [one.call_id for one in told.every(ToolStarted)]
    assert len(set(started)) == len(expected)
    assert [one.call_id for one in told.every(ToolCompleted)] == started
    assert told.end == ("completed", None)


@pytest.mark.parametrize(
    "ids", [(None, None), ("", ""), ("a", "a"), ("a", None), ("count", "count"), ("x" * 300, "a")]
)
async def test_mod_1_missing_and_doubled_ids(
    store: Store, crew: Crew, ids: tuple[str | None, str | None]
) -> None:
    """Both calls of a turn run once, and each gets its own answer."""
    counter = Counter()
    model = FakeModel()
    model.turn(tool_calls=[("count", {"n": 1}, ids[0]), ("count", {"n": 2}, ids[1])])
    model.turn(text="Done.")
    told = await talk(store, crew, model, counter.count)

    assert sorted(counter.seen) == [1, 2]
    _paired(told, ["number 1", "number 2"])
    messages = model.requests[1].messages
    assert [text for _, text in answers(messages)] == ["number 1", "number 2"]
    assert [call for call, _ in answers(messages)] == asked_ids(messages)
    said = told.every(ModelCompleted)[0].said
    assert said is not None
    assert [call.provider_id for call in said.calls] == [one or None for one in ids]


async def test_mod_1_an_id_used_again_in_another_turn(store: Store, crew: Crew) -> None:
    """The provider's id is data: the second turn's call is another one."""
    counter = Counter()
    model = FakeModel()
    model.turn(tool_calls=[("count", {"n": 1}, "same")])
    model.turn(tool_calls=[("count", {"n": 2}, "same")])
    model.turn(text="Done.")
    told = await talk(store, crew, model, counter.count)

    assert counter.seen == [1, 2]
    _paired(told, ["number 1", "number 2"])
    messages = model.requests[2].messages
    assert [text for _, text in answers(messages)] == ["number 1", "number 2"]
    assert [call for call, _ in answers(messages)] == asked_ids(messages)


def _asks(*calls: tuple[str | None, int]) -> Reply:
    pieces = [
        call_chunk(index, id=provider_id, name="count", arguments=f'{{"n":{n}}}')
        for index, (provider_id, n) in enumerate(calls)
    ]
    return answer(sse(*pieces, finish_chunk("tool_calls"), "[DONE]"))


def _list(value: JsonValue) -> list[dict[str, JsonValue]]:
    assert isinstance(value, list)
    return [one for one in value if isinstance(one, dict)]


@pytest.mark.parametrize("ids", [(None, None), ("", ""), ("a", "a")])
async def test_mod_1_what_a_server_reads_back_is_paired(
    store: Store, crew: Crew, ids: tuple[str | None, str | None]
) -> None:
    """On the wire each call and its answer carry one id that no other call has."""
    counter = Counter()
    done = answer(sse(text_chunk("Done."), finish_chunk(), "[DONE]"))
    replies = (_asks((ids[0], 1), (ids[1], 2)), _asks((ids[0], 3)), done)
    async with OpenAIServer(*replies) as server:
        client = OpenAIClient(server.base_url)
        told = await talk(store, crew, client, counter.count)
        await client.aclose()

    assert sorted(counter.seen) == [1, 2, 3]
    _paired(told, ["number 1", "number 2", "number 3"])
    messages = _list(server.seen[2].json["messages"])
    asked = [c["id"] for m in messages if "tool_calls" in m for c in _list(m["tool_calls"])]
    results = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
    assert len(set(map(str, asked))) == 3
    assert results == list(zip(asked, ["number 1", "number 2", "number 3"], strict=True))
