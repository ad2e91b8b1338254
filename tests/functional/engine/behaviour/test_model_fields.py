"""Each field of a ModelRef is sent, or refused before anything is sent (MOD-9)."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import JsonValue

from psych_runtime.api import publish
from psych_runtime.errors import InvalidSpec
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelField, Takes
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing.fake_model import EVERYTHING, FakeModel
from psych_runtime.tools.policy import AllowAll
from psych_schema.record import ModelFailed, ModelStarted
from psych_schema.spec import AgentSpec, FallbackModel, ModelRef, OutputRules, ToolChoice
from tests.functional.engine.behaviour.talk import talk
from tests.functional.engine.harness import ACME, Crew, agent, runtime
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    finish_chunk,
    sse,
    text_chunk,
)

_WHOLE = sse(text_chunk("Whole."), finish_chunk(), "[DONE]")
_CALLS = sse(call_chunk(0, id="x", name="look"), finish_chunk("tool_calls"), "[DONE]")

_SET: dict[ModelField, Any] = {
    "cache": "conversation",
    "extras": {"effort": "high"},
    "max_output_tokens": 7,
    "parallel_tool_calls": False,
    "seed": 3,
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "tool_choice": ToolChoice(mode="none"),
    "top_p": 0.25,
}
"""Every field of a ModelRef that a client may not take, set."""


def look() -> str:
    """Look."""
    return "seen"


def _spec(*tools: str, **fields: Any) -> AgentSpec:
    return agent(*tools).model_copy(update={"model": ModelRef(model="fake", **fields)})


async def test_mod_9_every_field_reaches_the_server(store: Store, crew: Crew) -> None:
    """What the Spec says stands in the body under the names of the format."""
    fields: dict[str, Any] = {name: value for name, value in _SET.items() if name != "cache"}
    async with (
        OpenAIServer(answer(_WHOLE)) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        found = await talk(store, crew, client, look, spec=_spec("look", **fields))
        [seen] = server.seen
    assert found.end == ("completed", None)
    sent = {name: value for name, value in seen.json.items() if name not in ("messages", "tools")}
    assert sent == {
        "model": "fake",
        "effort": "high",
        "max_tokens": 7,
        "parallel_tool_calls": False,
        "seed": 3,
        "stop": ["END"],
        "temperature": 0.5,
        "tool_choice": "none",
        "top_p": 0.25,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(mode="required"), "required"),
        (ToolChoice(mode="tool", tool="look"), {"type": "function", "function": {"name": "look"}}),
    ],
)
async def test_mod_9_a_call_is_required_in_the_first_turn_only(
    store: Store, crew: Crew, choice: ToolChoice, sent: JsonValue
) -> None:
    """Else the model could never answer; the prompt is extended all the same (MOD-8)."""
    async with (
        OpenAIServer(answer(_CALLS), answer(_WHOLE)) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        found = await talk(store, crew, client, look, spec=_spec("look", tool_choice=choice))
        first, second = server.seen
    assert found.end == ("completed", None)
    assert first.json["tool_choice"] == sent
    assert "tool_choice" not in second.json
    assert json.dumps(second.json["messages"]).startswith(json.dumps(first.json["messages"])[:-1])
    assert first.json["tools"] == second.json["tools"]
    mode = "required" if choice.tool is None else "tool:look"
    assert [one.params for one in found.every(ModelStarted)] == [{"tool_choice": mode}, {}]


@pytest.mark.parametrize("field", sorted(_SET))
async def test_mod_9_what_a_client_does_not_take_is_refused(
    store: Store, field: ModelField
) -> None:
    """The error names the field and the client; what it takes is published."""
    spec = _spec("look", **{field: _SET[field]})
    takes = Takes(EVERYTHING.fields - {field})
    poor, rich = (runtime(store, FakeModel(takes=one), look) for one in (takes, EVERYTHING))
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME, check=poor)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == (f"/model/{field}", "untaken_field")
    assert "FakeModel" in issue.message
    assert field in issue.message
    await publish(store, spec, scope=ACME, check=rich)


async def test_mod_9_an_output_that_no_client_takes_is_refused(store: Store) -> None:
    """It is not the ModelRef's, and the client's all the same."""
    spec = agent().model_copy(update={"output": OutputRules(json_schema={"type": "object"})})
    client = OpenAIClient("http://127.0.0.1:9/v1", without=["output"])
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME, check=runtime(store, client))
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == ("/output", "untaken_field")
    assert "OpenAIClient" in issue.message


async def test_mod_9_a_stand_ins_client_is_asked_too(store: Store) -> None:
    """What holds whichever model answers must be taken by all of them."""
    model = ModelRef(
        model="a/one",
        stop_sequences=["END"],
        fallbacks=[FallbackModel(model="b/two", seed=3), FallbackModel(model="z/gone")],
    )
    clients = {"a": FakeModel(), "b": FakeModel(takes=Takes(frozenset()))}
    made = Runtime(store=store, model=clients, policy=AllowAll())
    spec = agent().model_copy(update={"model": model})
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME, check=made)
    assert [(one.pointer, one.code) for one in caught.value.issues] == [
        ("/model/fallbacks/0/seed", "untaken_field"),
        ("/model/stop_sequences", "untaken_field"),
        ("/model/fallbacks/1/model", "unknown_model"),
    ]


async def test_mod_9_a_client_that_says_nothing_takes_what_every_client_does(
    store: Store,
) -> None:
    """The port grew: a client that was written before is not asked for more."""

    class Plain:
        """A client without `takes`."""

        def __init__(self) -> None:
            self.stream = FakeModel().stream
            self.models = FakeModel().models

    spec = _spec(temperature=0.5, max_output_tokens=7)
    await publish(store, spec, scope=ACME, check=runtime(store, Plain()))
    with pytest.raises(InvalidSpec, match="Plain"):
        await publish(store, _spec(seed=3), scope=ACME, check=runtime(store, Plain()))


async def test_pub_2_nobody_could_say_whether_a_field_is_taken(store: Store) -> None:
    """Without a Runtime it is listed, not refused."""
    version = await publish(store, _spec(seed=3, top_p=0.5), scope=ACME)
    assert version.unchecked[-1] == (
        "whether the models' clients take seed, top_p (no Runtime was given)"
    )
    assert all("clients take" not in one for one in (await publish(store, agent(), scope=ACME))[2])


@pytest.mark.parametrize("name", ["model", "messages", "stream", "tools", "temperature", "n"])
async def test_mod_9_extras_override_nothing(store: Store, crew: Crew, name: str) -> None:
    """Refused at publish with the pointer; unchecked, the Run fails and nothing is sent."""
    spec = _spec(extras={name: 1, "fine": 2})
    async with (
        OpenAIServer(answer(_WHOLE)) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        with pytest.raises(InvalidSpec) as caught:
            await publish(store, spec, scope=ACME, check=runtime(store, client))
        [issue] = caught.value.issues
        assert (issue.pointer, issue.code) == (f"/model/extras/{name}", "reserved_extra")
        found = await talk(store, crew, client, spec=spec)
        assert server.connections == 0
    assert found.end == ("failed", "unsendable_request")


async def test_mod_9_an_unchecked_field_fails_the_run_before_it_is_sent(
    store: Store, crew: Crew
) -> None:
    """The typed reason is in the log, with the field and the client; no stand-in hides it."""
    spec = _spec(cache="system", fallbacks=[FallbackModel(model="other")])
    async with (
        OpenAIServer(answer(_WHOLE)) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        found = await talk(store, crew, client, spec=spec)
        assert server.connections == 0
    assert found.end == ("failed", "unsendable_request")
    [failed] = found.every(ModelFailed)
    assert failed.next == "give_up"
    assert failed.said is not None
    assert failed.said.message == (
        "OpenAIClient does not take cache; leave it out, or call another model"
    )


@pytest.mark.parametrize("field", sorted(_SET))
async def test_mod_9_a_client_that_would_drop_a_field_is_not_called(
    store: Store, crew: Crew, field: ModelField
) -> None:
    """The runtime asks what it takes; the client need not refuse anything itself."""
    model = FakeModel(takes=Takes(EVERYTHING.fields - {field})).turn("never")
    found = await talk(store, crew, model, look, spec=_spec("look", **{field: _SET[field]}))
    assert found.end == ("failed", "unsendable_request")
    assert model.requests == []


@pytest.mark.parametrize(
    ("tools", "choice", "pointer", "code"),
    [
        ((), {"mode": "required"}, "/mode", "nothing_to_work_on"),
        (("look",), {"mode": "tool"}, "", "missing_field"),
        (("look",), {"mode": "tool", "tool": "lok"}, "/tool", "unknown_selector"),
        (("look",), {"mode": "auto", "tool": "look"}, "/tool", "unknown_selector"),
    ],
)
async def test_pub_1_a_choice_of_no_tool_is_refused(
    store: Store, tools: tuple[str, ...], choice: dict[str, str], pointer: str, code: str
) -> None:
    """Without any Runtime: the Spec alone tells."""
    spec = _spec(*tools, tool_choice=ToolChoice.model_validate(choice))
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, spec, scope=ACME)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == (f"/model/tool_choice{pointer}", code)


async def test_mod_9_a_required_tool_that_is_not_permitted_is_not_asked_for(
    store: Store, crew: Crew
) -> None:
    """Who may not call it gets a typed reason, not a provider's refusal."""

    class Nothing(AllowAll):
        """Permits no tool."""

        async def permitted(self, scope: object) -> frozenset[str]:
            """Return no pattern."""
            return frozenset()

    model = FakeModel().turn("never")
    spec = _spec("look", tool_choice=ToolChoice(mode="tool", tool="look"))
    found = await talk(store, crew, model, look, spec=spec, policy=Nothing())
    assert found.end == ("failed", "unsendable_request")
    assert model.requests == []
