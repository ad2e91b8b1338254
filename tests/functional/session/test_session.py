"""session(): the shortest way to a durable answer, and what is left when it is closed."""

import asyncio
import contextvars
from pathlib import Path

import pytest

import psych_runtime
from psych_runtime import (
    AgentSpec,
    AllowAll,
    CodeTool,
    InvalidSpec,
    ModelRef,
    Scope,
    WaitTimeout,
    session,
)
from psych_runtime.blob.memory import MemoryBlobStore
from psych_runtime.errors import NotThreadTail, RegistrationError, UnsupportedStore
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import FakeModel
from psych_runtime.tools.registry import ToolRegistry
from psych_schema.common import Scope as PlainScope

BOUND_SECONDS = 20.0


@psych_runtime.tool(annotations={"read-only"})
def temperature(city: str) -> float:
    """Return the temperature in a city, in degrees Celsius.

    Args:
        city: The name of the city.
    """
    return {"Lisbon": 21.5}.get(city, 12.0)


async def note(text: str) -> str:
    """Take a note.

    Args:
        text: What to note.
    """
    return f"noted: {text}"


def _spec(*tools: str) -> AgentSpec:
    return AgentSpec(
        kind="agent",
        name="weather",
        instructions="Answer questions about the weather.",
        model=ModelRef(model="scripted"),
        tools=tuple(CodeTool(name=name) for name in tools),
    )


async def test_doc_1_the_first_example(url: str | None) -> None:
    """Question in, answer out, on any store."""
    model = FakeModel()
    model.turn(tool_calls=[("temperature", {"city": "Lisbon"})])
    model.turn(text="It is 21.5 degrees in Lisbon.")
    async with session(model, tools=[temperature], store=url) as made:
        answer = await made.ask(_spec("temperature"), "How warm is it in Lisbon?")
    assert answer.text == "It is 21.5 degrees in Lisbon."
    assert answer.output == "It is 21.5 degrees in Lisbon."
    assert answer.finished
    assert answer.ended is not None
    assert answer.ended.state == "completed"


async def test_session_plain_and_marked_functions_are_tools(url: str | None) -> None:
    """A mark is not needed; without one the policy decides."""
    model = FakeModel()
    model.turn(tool_calls=[("temperature", {"city": "Oslo"}), ("note", {"text": "cold"})])
    model.turn(text="Noted.")
    async with session(model, tools=[temperature, note], store=url, policy=AllowAll()) as made:
        assert made.registry.names() == {"temperature", "note"}
        answer = await made.ask(_spec("temperature", "note"), "Note it.")
        records = await psych_runtime.records(made.store, answer.run_id, scope=made.scope)
    assert answer.text == "Noted."
    done = [record for record in records if record.type == "tool.completed"]
    assert [getattr(record, "outcome", None) for record in done] == ["ok", "ok"]


async def test_session_by_default_an_unmarked_tool_is_asked_about(url: str | None) -> None:
    """The answer says what waits, and how it goes on; once denied, the model is told."""
    model = FakeModel().turn(tool_calls=[("note", {"text": "x"})]).turn(text="I may not.")
    async with session(model, tools=[note], store=url) as made:
        waiting = await made.ask(_spec("note"), "Note it.")
        [pending] = waiting.pending_approvals
        assert (waiting.status, pending.identity) == ("waiting", "code:note")
        await psych_runtime.decide(
            made.store,
            waiting.run_id,
            scope=made.scope,
            decisions={pending.call_id: "deny"},
            by="ann",
        )
        await made.wait(waiting.run_id, timeout_seconds=BOUND_SECONDS)
        answer = await psych_runtime.answer(made.store, waiting.run_id, scope=made.scope)
        view = await psych_runtime.report(made.store, waiting.run_id, scope=made.scope)
    assert answer.text == "I may not."
    assert [(one.outcome, one.code) for one in view.tool_calls] == [("refused", "denied")]


async def test_session_a_registry_and_tools_are_added_up() -> None:
    """`tools` go into the registry that was given."""
    registry = ToolRegistry()
    registry.register(note)
    async with session(FakeModel(), tools=[temperature], registry=registry) as made:
        assert made.registry is registry
        assert registry.names() == {"temperature", "note"}


async def test_session_a_result_goes_to_its_blob_store() -> None:
    """From as many bytes on as it was told."""

    def much() -> str:
        """Say much."""
        return "x" * 2000

    blob, model = MemoryBlobStore(), FakeModel()
    model.turn(tool_calls=[("much", {})]).turn(text="Done.")
    async with session(
        model, tools=[much], blob=blob, offload_bytes=1024, policy=AllowAll()
    ) as made:
        answer = await made.ask(_spec("much"), "Go.")
        [kept] = await blob.listed("local", answer.run_id)
    assert kept.bytes == 2000
    assert list(model.requests[1].attachments) == [kept.hash]


@pytest.mark.parametrize("thing", ["temperature", 42, None, {"name": "x"}])
async def test_session_what_cannot_be_called_is_no_tool(thing: object) -> None:
    """A typed error names it; nothing was started."""
    before = len(asyncio.all_tasks())
    with pytest.raises(RegistrationError) as caught:
        async with session(FakeModel(), tools=[thing]):
            raise AssertionError("it must not begin")
    assert repr(thing)[:20] in str(caught.value)
    assert len(asyncio.all_tasks()) == before


async def test_session_a_tool_twice_is_refused() -> None:
    """As in any registry."""
    with pytest.raises(RegistrationError):
        async with session(FakeModel(), tools=[note, note]):
            raise AssertionError("it must not begin")


async def test_session_a_store_that_nobody_knows_is_refused() -> None:
    """Before anything is started."""
    with pytest.raises(UnsupportedStore):
        async with session(FakeModel(), store="mongodb://127.0.0.1/x"):
            raise AssertionError("it must not begin")


async def test_session_a_spec_is_checked_against_its_tools(url: str | None) -> None:
    """A typo is found before a Run is admitted."""
    async with session(FakeModel(), tools=[temperature], store=url) as made:
        with pytest.raises(InvalidSpec, match="temperature"):
            await made.ask(_spec("temprature"), "Hello?")


async def test_session_continues_a_thread(url: str | None) -> None:
    """The second question comes with what was said before."""
    model = FakeModel().turn(text="Hello, Ann.").turn(text="You are Ann.")
    async with session(model, store=url) as made:
        first = await made.ask(_spec(), "I am Ann.")
        second = await made.ask(_spec(), "Who am I?", continues=first.run_id)
        with pytest.raises(NotThreadTail):
            await made.ask(_spec(), "And I?", continues=first.run_id)
        state = await made.wait(second.run_id)
    assert second.text == "You are Ann."
    assert len(model.requests[1].messages) == 3
    assert (state.thread.position, state.thread.previous) == (2, first.run_id)


async def test_session_an_input_that_is_no_text(url: str | None) -> None:
    """Any JSON reaches the model as JSON."""
    model = FakeModel().turn(text="Seen.")
    async with session(model, store=url) as made:
        await made.ask(_spec(), {"city": "Oslo", "days": [1, 2]})
    [message] = model.requests[0].messages
    assert getattr(message.parts[0], "text", None) == '{"city":"Oslo","days":[1,2]}'


async def test_session_wait_timeout_names_the_run(url: str | None) -> None:
    """The Run goes on and can be waited for."""
    model = FakeModel().turn(tool_calls=[("hold", {})]).turn(text="At last.")
    release = asyncio.Event()

    async def hold() -> str:
        """Hold."""
        await release.wait()
        return "held"

    async with session(model, tools=[hold], store=url, policy=AllowAll()) as made:
        with pytest.raises(WaitTimeout) as caught:
            await made.ask(_spec("hold"), "Go.", timeout_seconds=0.05)
        [header] = (await psych_runtime.list_runs(made.store, scope=made.scope)).headers
        assert caught.value.run_id == header.run_id
        assert header.run_id in str(caught.value)
        release.set()
        state = await made.wait(header.run_id, timeout_seconds=BOUND_SECONDS)
        assert state.lifecycle == "done"
        found = await psych_runtime.answer(made.store, header.run_id, scope=made.scope)
        assert found.text == "At last."


async def test_session_streams_and_starts(url: str | None) -> None:
    """start() returns at once; the stream ends with the Run; the same key is the same Run."""
    model = FakeModel().turn(text="Hello there.")
    async with session(model, store=url) as made:
        version = await made.publish(_spec())
        first = await made.start(version, "Hello.", idempotency_key="k")
        again = await made.start(version, "Hello.", idempotency_key="k")
        kinds = [record.type async for record in made.stream(first.run_id)]
    assert (first.created, again.created) == (True, False)
    assert first.run_id == again.run_id
    assert (kinds[0], kinds[-1]) == ("run.admitted", "run.settled")
    assert "model.delta" in kinds


async def test_session_two_questions_at_once(url: str | None) -> None:
    """One worker, any number of Runs."""
    model = FakeModel().turn(text="Yes.")
    async with session(model, store=url) as made:
        answers = await asyncio.gather(*(made.ask(_spec(), f"Is it {n}?") for n in range(8)))
    assert {one.text for one in answers} == {"Yes."}
    assert len({one.run_id for one in answers}) == 8


async def test_session_a_failed_run_is_an_answer_that_says_so(url: str | None) -> None:
    """ask() does not raise for what the model did."""
    async with session(FakeModel().raises_permanent(401), store=url) as made:
        answer = await made.ask(_spec(), "Hello?")
    assert answer.text is None
    assert answer.ended is not None
    assert (answer.ended.state, answer.ended.code) == ("failed", "model_permanent")


async def test_session_closed_in_flight_is_resumed_by_another(tmp_path: Path) -> None:
    """A Run in the middle of a model call is let go in order; a new session finishes it."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    slow = FakeModel().turn(tool_calls=[("note", {"text": "x"})]).stalls(text="I am thin")
    async with session(slow, tools=[note], store=url, policy=AllowAll()) as made:
        run = await made.start(_spec("note"), "Go.")
        async with asyncio.timeout(BOUND_SECONDS):
            async for record in made.stream(run.run_id):
                if record.type == "model.delta" and len(slow.requests) == 2:
                    break
        made.worker._grace_seconds = 0.0  # the model would use all of it

    quick = FakeModel().turn(tool_calls=[("note", {"text": "x"})]).turn(text="Thought.")
    async with session(quick, tools=[note], store=url, policy=AllowAll()) as made:
        state = await made.wait(run.run_id, timeout_seconds=BOUND_SECONDS)
        answer = await psych_runtime.answer(made.store, run.run_id, scope=made.scope)
        records = await psych_runtime.records(made.store, run.run_id, scope=made.scope)
    assert state.lifecycle == "done"
    assert answer.text == "Thought."
    assert len(quick.requests) == 1
    ended = [record for record in records if record.type == "attempt.ended"]
    assert [getattr(record, "reason", None) for record in ended] == ["drained"]
    assert [record.type for record in records].count("tool.completed") == 1


async def test_session_a_body_that_raises_lets_everything_go(tmp_path: Path) -> None:
    """The error comes out as it is; the worker ended, the file is closed."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    before = len(asyncio.all_tasks())

    async def ask_and_fail() -> None:
        async with session(FakeModel().turn(text="Hello."), store=url) as made:
            await made.ask(_spec(), "Hello.")
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await ask_and_fail()
    assert len(asyncio.all_tasks()) == before


async def test_session_a_store_of_ones_own_stays_open() -> None:
    """Whoever opened it closes it; a second session finds what the first one did."""
    store = MemoryStore()
    model = FakeModel().turn(text="Hello.")
    async with session(model, store=store) as made:
        first = await made.ask(_spec(), "Hello.")
    async with session(model, store=store, tenant="local") as made:
        assert (await psych_runtime.answer(store, first.run_id, scope=made.scope)).finished
    async with session(model, store=store, tenant="other") as made:
        with pytest.raises(psych_runtime.RunNotFound):
            await psych_runtime.answer(store, first.run_id, scope=made.scope)


TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT", default="nobody")


async def test_session_context_is_set_for_its_runs() -> None:
    """As for a Runtime (RUN-12)."""
    seen: list[str] = []

    async def look() -> str:
        """Look."""
        seen.append(TENANT.get())
        return "seen"

    def context(scope: PlainScope | None) -> None:
        TENANT.set("worker" if scope is None else scope.tenant)

    model = FakeModel().turn(tool_calls=[("look", {})]).turn(text="Done.")
    async with session(
        model, tools=[look], tenant="acme", policy=AllowAll(), context=context
    ) as made:
        await made.ask(_spec("look"), "Look.")
        assert made.scope == Scope(tenant="acme")
    assert seen == ["acme"]


async def test_session_several_clients_by_name() -> None:
    """A Spec says client/model."""
    clients = {"a": FakeModel().turn(text="From a."), "b": FakeModel().turn(text="From b.")}
    spec = _spec().model_copy(update={"model": ModelRef(model="b/large")})
    async with session(clients) as made:
        answer = await made.ask(spec, "Who?")
    assert answer.text == "From b."
    assert clients["b"].requests[0].model == "large"
    assert clients["a"].requests == []


async def test_session_an_empty_store_is_no_store() -> None:
    """A variable that nobody set must not cost the durability that it was for."""
    with pytest.raises(UnsupportedStore):
        async with session(FakeModel(), store=""):
            raise AssertionError("it must not open")


async def test_run_9_a_program_that_is_interrupted_does_not_wait_for_its_model(
    tmp_path: Path,
) -> None:
    """Cancelled inside the block: the stream is closed, the Run is left for the next session."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    model = FakeModel().stalls(text="Let me th")

    async def program() -> None:
        async with session(model, store=url) as s:
            await s.ask(_spec(), "How warm is it?", timeout_seconds=BOUND_SECONDS)

    running = asyncio.create_task(program())
    while not model.requests:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.closed == 1

    async with psych_runtime.open_store(url) as store:
        scope = Scope(tenant="local")
        [header] = (await psych_runtime.list_runs(store, scope=scope)).headers
        assert header.state == "ready"
        types = [one.type for one in await psych_runtime.records(store, header.run_id, scope=scope)]
    assert types[-2:] == ["model.failed", "attempt.ended"]
