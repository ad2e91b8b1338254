"""Models that stand in for one another: when, in which order, and what is recorded (RUN-11)."""

from collections.abc import Mapping
from typing import Any

import pytest

from psych_runtime._reads import stream_text
from psych_runtime.api import publish
from psych_runtime.errors import InvalidSpec
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.model import ModelClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.policy import AllowAll
from psych_schema.record import ModelCompleted, ModelFailed, ModelStarted, TurnStarted
from psych_schema.spec import AgentSpec, FallbackModel, ModelRef
from tests.functional.engine.behaviour.talk import Told, told
from tests.functional.engine.harness import (
    ACME,
    Crew,
    admit,
    agent,
    eventually,
    registry,
)
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    error,
    finish_chunk,
    sse,
    text_chunk,
)

_WHOLE = answer(sse(text_chunk("Whole."), finish_chunk(), "[DONE]"))
_BUSY = error(503, "overloaded", headers={"Retry-After": "0"})


def _spec(*fallbacks: str | FallbackModel, tools: tuple[str, ...] = (), **limits: Any) -> AgentSpec:
    """Return an agent of client `a` with stand-ins."""
    made = agent(*tools, **limits)
    models = tuple(FallbackModel(model=one) if isinstance(one, str) else one for one in fallbacks)
    return made.model_copy(update={"model": ModelRef(model="a/one", fallbacks=models)})


async def _talk(
    store: Store, crew: Crew, clients: Mapping[str, ModelClient], spec: AgentSpec, *tools: Any
) -> Told:
    """Run an agent to its end; clients that hold connections are closed then."""
    made = Runtime(store=store, model=clients, registry=registry(*tools), policy=AllowAll())
    await crew.start(made)
    found = await told(store, await admit(store, spec))
    for client in clients.values():
        if isinstance(client, OpenAIClient):
            await client.aclose()
    return found


def _tries(found: Told) -> list[tuple[str, int, str]]:
    """Return each call's model, the number of its try, and what followed."""
    ends: dict[str, str] = {one.call: one.next for one in found.every(ModelFailed)}
    ends |= {one.call: "completed" for one in found.every(ModelCompleted)}
    return [(one.model, one.tries, ends[one.call]) for one in found.every(ModelStarted)]


async def test_run_11_another_client_stands_in_when_the_retries_are_used_up(
    store: Store, crew: Crew
) -> None:
    """Each model has the whole budget; each try is a call of its own, and says whom it is for."""
    async with (
        OpenAIServer(_BUSY) as first,
        OpenAIServer(_BUSY) as second,
        OpenAIServer(_WHOLE) as third,
    ):
        clients = {
            name: OpenAIClient(server.base_url)
            for name, server in zip("abc", (first, second, third), strict=True)
        }
        spec = _spec("b/two", "c/three", transient_retry_budget=1)
        found = await _talk(store, crew, clients, spec)
        asked = [[one.json["model"] for one in server.seen] for server in (first, second, third)]
    assert found.end == ("completed", None)
    assert found.answer == "Whole."
    assert asked == [["one", "one"], ["two", "two"], ["three"]]
    assert _tries(found) == [
        ("a/one", 1, "retry"),
        ("a/one", 2, "fallback"),
        ("b/two", 3, "retry"),
        ("b/two", 4, "fallback"),
        ("c/three", 5, "completed"),
    ]
    calls = found.every(ModelStarted)
    assert [one.fallback_of for one in calls] == [None, None, calls[1].call, None, calls[3].call]
    assert len(found.every(TurnStarted)) == 1
    [completed] = found.every(ModelCompleted)
    assert completed.served_by == "served-model"


@pytest.mark.parametrize("status", [401, 402, 403, 404])
async def test_run_11_a_permanent_error_goes_on_at_once(
    store: Store, crew: Crew, status: int
) -> None:
    """A key that is refused, or a model that is gone, is not tried again."""
    async with OpenAIServer(error(status, "no")) as first, OpenAIServer(_WHOLE) as second:
        clients = {"a": OpenAIClient(first.base_url), "b": OpenAIClient(second.base_url)}
        found = await _talk(store, crew, clients, _spec("b/two"))
    assert found.end == ("completed", None)
    assert _tries(found) == [("a/one", 1, "fallback"), ("b/two", 2, "completed")]
    [failed] = found.every(ModelFailed)
    assert (failed.failure.code, failed.failure.status) == ("model_permanent", status)


@pytest.mark.parametrize("status", [400, 422])
async def test_run_11_a_bad_request_is_nobody_elses(store: Store, crew: Crew, status: int) -> None:
    """What is wrong with the request itself is told, not hidden behind another model."""
    async with OpenAIServer(error(status, "no such parameter")) as first:
        clients: dict[str, ModelClient] = {
            "a": OpenAIClient(first.base_url),
            "b": FakeModel().turn("hidden"),
        }
        found = await _talk(store, crew, clients, _spec("b/two"))
    assert found.end == ("failed", "model_permanent")
    assert _tries(found) == [("a/one", 1, "give_up")]


async def test_run_11_when_all_fail_the_last_reason_is_the_runs(store: Store, crew: Crew) -> None:
    """Nobody is left: the Run says why the last one failed."""
    clients = {"a": FakeModel().raises_permanent(401), "b": FakeModel().raises_transient(503)}
    spec = _spec("b/two", transient_retry_budget=0)
    found = await _talk(store, crew, clients, spec)
    assert found.end == ("failed", "retries_exhausted")
    assert _tries(found) == [("a/one", 1, "fallback"), ("b/two", 2, "give_up")]


async def test_run_11_the_run_stays_with_whom_it_came_to(store: Store, crew: Crew) -> None:
    """The next turn does not ask the first model again; the next Run does."""

    def look() -> str:
        """Look."""
        return "seen"

    calls = sse(call_chunk(0, id="x", name="look"), finish_chunk("tool_calls"), "[DONE]")
    async with (
        OpenAIServer(error(401, "no")) as first,
        OpenAIServer(answer(calls), _WHOLE) as second,
    ):
        clients = {"a": OpenAIClient(first.base_url), "b": OpenAIClient(second.base_url)}
        spec = _spec("b/two", tools=("look",))
        found = await _talk(store, crew, clients, spec, look)
        again = await told(store, await admit(store, spec))
        for client in clients.values():
            await client.aclose()
    assert _tries(found) == [
        ("a/one", 1, "fallback"),
        ("b/two", 2, "completed"),
        ("b/two", 1, "completed"),
    ]
    assert _tries(again)[0] == ("a/one", 1, "fallback")


async def test_run_11_a_stand_in_fails_in_a_later_turn(store: Store, crew: Crew) -> None:
    """The one behind it takes over; nobody goes back."""

    def look() -> str:
        """Look."""
        return "seen"

    second = FakeModel().turn("", [("look", {})]).raises_permanent(404)
    clients = {
        "a": FakeModel().raises_permanent(401),
        "b": second,
        "c": FakeModel().turn("never").turn("Whole."),
    }
    spec = _spec("b/two", "c/three", tools=("look",))
    found = await _talk(store, crew, clients, spec, look)
    assert found.answer == "Whole."
    assert [one for one, _, _ in _tries(found)] == ["a/one", "b/two", "b/two", "c/three"]


async def test_mod_6_an_overflow_goes_only_to_a_larger_model(store: Store, crew: Crew) -> None:
    """Those that are not said to be larger are passed over; the record says why."""
    clients = {
        "a": FakeModel().overflows(),
        "b": FakeModel().turn("not asked"),
        "c": FakeModel().turn("Whole."),
    }
    larger = FallbackModel(model="c/three", larger_context=True)
    found = await _talk(store, crew, clients, _spec("b/two", larger))
    assert found.answer == "Whole."
    assert _tries(found) == [("a/one", 1, "fallback"), ("c/three", 2, "completed")]
    [failed] = found.every(ModelFailed)
    assert failed.failure.code == "context_overflow"


async def test_mod_6_an_overflow_without_a_larger_model_fails(store: Store, crew: Crew) -> None:
    """Another of the same size would only say it again."""
    clients = {"a": FakeModel().overflows(), "b": FakeModel().turn("not asked")}
    found = await _talk(store, crew, clients, _spec("b/two"))
    assert found.end == ("failed", "context_overflow")
    assert _tries(found) == [("a/one", 1, "give_up")]


async def test_run_11_a_client_that_is_not_there_is_passed_over(store: Store, crew: Crew) -> None:
    """A name without a client fails its call, as a model that is gone does."""
    clients = {"b": FakeModel().turn("Whole."), "c": FakeModel()}
    found = await _talk(store, crew, clients, _spec("b/two"))
    assert _tries(found) == [("a/one", 1, "fallback"), ("b/two", 2, "completed")]


async def test_run_11_each_model_has_its_own_settings(store: Store, crew: Crew) -> None:
    """Nothing is inherited but what holds whichever model answers."""
    first, second = FakeModel().raises_permanent(401), FakeModel().turn("Whole.")
    model = ModelRef(
        model="a/one",
        temperature=0.5,
        extras={"effort": "high"},
        stop_sequences=["END"],
        fallbacks=[FallbackModel(model="b/two", top_p=0.25)],
    )
    spec = agent().model_copy(update={"model": model})
    found = await _talk(store, crew, {"a": first, "b": second}, spec)
    assert found.answer == "Whole."
    [one], [two] = first.requests, second.requests
    assert (one.temperature, one.top_p, one.extras) == (0.5, None, {"effort": "high"})
    assert (two.temperature, two.top_p, two.extras) == (None, 0.25, {})
    assert one.stop_sequences == two.stop_sequences == ("END",)
    assert (one.ref, two.ref) == ("a/one", "b/two")
    told_one, told_two = (one.params for one in found.every(ModelStarted))
    assert told_one.keys() == {"temperature", "extras", "stop_sequences"}
    assert told_two == {"top_p": 0.25, "stop_sequences": ["END"]}


async def test_run_11_a_stand_ins_text_replaces_what_broke_off(store: Store, crew: Crew) -> None:
    """A reader takes back what the first model said."""
    clients = {"a": FakeModel().aborts_mid_token("Hal"), "b": FakeModel().turn("Whole.")}
    spec = _spec("b/two", transient_retry_budget=0)
    await crew.start(Runtime(store=store, model=clients, policy=AllowAll()))
    run = await admit(store, spec, deltas=True)
    chunks = [one async for one in stream_text(store, run, scope=ACME)]
    assert "".join(one.text for one in chunks if one.call == chunks[-1].call) == "Whole."
    replaced = {one.replaces for one in chunks} - {None}
    assert replaced <= {one.call for one in chunks}


async def test_run_11_another_worker_goes_on_with_the_stand_in(store: Store, crew: Crew) -> None:
    """Whom the Run came to is in the log."""
    first, second = FakeModel().raises_permanent(401), FakeModel().stalls().turn("Whole.")
    made = Runtime(store=store, model={"a": first, "b": second}, policy=AllowAll())
    worker = await crew.start(made, grace_seconds=0.0)
    run = await admit(store, _spec("b/two"))
    await eventually(lambda: len(second.requests) == 1)
    await crew.stop(worker)
    await crew.start(made)
    found = await told(store, run)
    assert found.answer == "Whole."
    assert [one for one, _, _ in _tries(found)] == ["a/one", "b/two", "b/two"]
    assert len(first.requests) == 1


async def test_pub_1_a_model_named_twice_is_refused(store: Store) -> None:
    """A Run could not tell where it stands."""
    with pytest.raises(InvalidSpec) as caught:
        await publish(store, _spec("b/two", "a/one"), scope=ACME)
    [issue] = caught.value.issues
    assert (issue.pointer, issue.code) == ("/model/fallbacks/1/model", "doubled_name")
