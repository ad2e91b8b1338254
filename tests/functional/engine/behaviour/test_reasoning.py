"""What a model thought is kept, and goes back to that model only (MOD-9)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.runtime.runtime import Runtime
from psych_runtime.testing.fake_model import FakeModel
from psych_runtime.tools.policy import AllowAll
from psych_schema.model import (
    AssistantMessage,
    CallDelta,
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningPart,
    TextDelta,
    TextPart,
)
from psych_schema.record import ModelCompleted
from psych_schema.spec import FallbackModel, ModelRef
from tests.functional.engine.behaviour.talk import talk, told
from tests.functional.engine.harness import Crew, admit, agent, registry
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    call_chunk,
    error,
    finish_chunk,
    sse,
    text_chunk,
)

_CALLS = answer(
    sse(
        text_chunk("", reasoning_content="I must "),
        text_chunk("", reasoning_content="look."),
        call_chunk(0, id="x", name="look"),
        finish_chunk("tool_calls"),
        "[DONE]",
    )
)
_WHOLE = answer(sse(text_chunk("Whole."), finish_chunk(), "[DONE]"))


def look() -> str:
    """Look."""
    return "seen"


async def test_mod_9_a_model_that_wants_its_thoughts_gets_them(store: Store, crew: Crew) -> None:
    """Under the name of the field that the server reads; the log says whose they are."""
    async with (
        OpenAIServer(_CALLS, _WHOLE) as server,
        aclosing(OpenAIClient(server.base_url, reasoning_field="reasoning_content")) as client,
    ):
        found = await talk(store, crew, client, look, spec=agent("look"))
        sent = server.seen[1].json["messages"]
    assert isinstance(sent, list)
    said = sent[-2]
    assert isinstance(said, dict)
    assert said["reasoning_content"] == "I must look."
    first = found.every(ModelCompleted)[0]
    assert first.said is not None
    assert first.said.parts == (ReasoningPart(text="I must look.", by="fake"),)


async def test_mod_9_a_server_that_does_not_want_them_gets_none(store: Store, crew: Crew) -> None:
    """Some refuse a history that has them: it is asked for, by whoever makes the client."""
    async with (
        OpenAIServer(_CALLS, _WHOLE) as server,
        aclosing(OpenAIClient(server.base_url)) as client,
    ):
        await talk(store, crew, client, look, spec=agent("look"))
        [_, second] = server.seen
    assert b"I must look." not in second.body


async def test_mod_9_a_stand_in_does_not_get_anothers_thoughts(store: Store, crew: Crew) -> None:
    """They may be signed, and a provider refuses a signature that is not its own."""
    async with OpenAIServer(_CALLS, error(401, "no")) as one, OpenAIServer(_WHOLE) as two:
        clients = {
            name: OpenAIClient(server.base_url, reasoning_field="reasoning_content")
            for name, server in (("a", one), ("b", two))
        }
        made = Runtime(store=store, model=clients, registry=registry(look), policy=AllowAll())
        await crew.start(made)
        model = ModelRef(model="a/one", fallbacks=[FallbackModel(model="b/two")])
        spec = agent("look").model_copy(update={"model": model})
        found = await told(store, await admit(store, spec))
        for client in clients.values():
            await client.aclose()
        refused, taken = one.seen[1].body, two.seen[0].body
    assert found.answer == "Whole."
    assert b"I must look." in refused
    assert b"I must look." not in taken


class _Signing(FakeModel):
    """Thinks in signed and redacted blocks, between which it speaks."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Say it once; then answer as scripted."""
        if any(isinstance(message, AssistantMessage) for message in request.messages):
            return super().stream(request)
        return self._think()

    async def _think(self) -> AsyncGenerator[ModelEvent]:
        yield ReasoningDelta(text="First")
        yield ReasoningDelta(text=".", signature="s1")
        yield ReasoningDelta(text="Second.", signature="s2")
        yield ReasoningDelta(text="", signature="r1", redacted=True)
        yield ReasoningDelta(text="", signature="r2", redacted=True)
        yield ReasoningDelta(text="Open")
        yield ReasoningDelta(text="", signature="r3", redacted=True)
        yield TextDelta(text="So.")
        yield CallDelta(index=0, name="look", arguments="{}")
        yield Finish(reason="tool_calls")


async def test_mod_9_blocks_of_thoughts_stay_apart(store: Store, crew: Crew) -> None:
    """A signature closes one, a redacted one stands alone: each goes back as it came."""
    model = _Signing().turn("never").turn("Whole.")
    found = await talk(store, crew, model, look, spec=agent("look"))
    assert found.answer == "Whole."
    [request] = model.requests
    said = request.messages[-2]
    assert isinstance(said, AssistantMessage)
    assert said.parts == (
        ReasoningPart(text="First.", signature="s1", by="fake"),
        ReasoningPart(text="Second.", signature="s2", by="fake"),
        ReasoningPart(text="", signature="r1", redacted=True, by="fake"),
        ReasoningPart(text="", signature="r2", redacted=True, by="fake"),
        ReasoningPart(text="Open", by="fake"),
        ReasoningPart(text="", signature="r3", redacted=True, by="fake"),
        TextPart(text="So."),
    )
