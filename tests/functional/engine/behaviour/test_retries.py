"""Model calls that fail: tried again within a budget, never told twice (RUN-11, RUN-14, MOD-5)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from psych_runtime._reads import stream_text
from psych_runtime.api import publish
from psych_runtime.errors import ContextOverflow, RunFailed
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Usage
from psych_schema.model import ModelEvent, ModelRequest, TextDelta, TextPart
from psych_schema.record import ModelFailed, ModelStarted, RunSuspended, TurnStarted
from psych_schema.spec import ModelRef
from tests.functional.engine.behaviour.talk import outcomes, talk, told
from tests.functional.engine.harness import (
    ACME,
    Crew,
    ShiftedSystem,
    admit,
    agent,
    eventually,
    of_type,
    run_to_end,
    runtime,
)
from tests.servers.openai_server import OpenAIServer, answer, error, finish_chunk, sse, text_chunk


def _waits(failed: ModelFailed) -> float:
    assert failed.retry_at is not None
    return round((failed.retry_at - failed.at).total_seconds(), 2)


async def test_run_11_a_transient_error_is_tried_again(store: Store, crew: Crew) -> None:
    """Each try is a call of its own, in the same turn; the failure says what came when."""
    model = FakeModel().raises_transient(503, retry_after_seconds=0, times=2).turn(text="Whole.")
    found = await talk(store, crew, model)
    assert found.end == ("completed", None)
    assert [(one.turn, one.tries) for one in found.every(ModelStarted)] == [(1, 1), (1, 2), (1, 3)]
    assert len({one.call for one in found.every(ModelStarted)}) == 3
    assert len(found.every(TurnStarted)) == 1
    for failed in found.every(ModelFailed):
        assert (failed.failure.code, failed.failure.transient, failed.failure.status) == (
            "model_transient",
            True,
            503,
        )
        assert failed.next == "retry"
        assert failed.said is not None
        assert failed.said.message == "the model answered 503 (scripted)"
        assert failed.usage is None


async def test_run_11_a_back_off_without_retry_after_is_short_and_grows(
    store: Store, crew: Crew
) -> None:
    """Half a second at first, doubled, with jitter of a half."""
    model = FakeModel().raises_transient(500, times=2).turn(text="Whole.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    for number, least in enumerate((0.25, 0.5), 1):

        async def failed(number: int = number) -> bool:
            return len(await of_type(store, run, ModelFailed)) == number

        await eventually(failed)
        waits = _waits((await of_type(store, run, ModelFailed))[-1])
        assert least <= waits < 2 * least + 1.0  # the store's clock is known within a call's time
    found = await told(store, run)
    assert found.end == ("completed", None)


async def test_run_14_retry_after_is_honoured_and_the_run_is_parked(
    store: Store, crew: Crew, clock: ShiftedSystem
) -> None:
    """Until then nobody holds it and nobody calls the model; when the time has come it goes on."""
    busy = FakeModel().raises_transient(429, retry_after_seconds=3600).turn(text="At last.")
    model = FakeModel.route({"fake": busy, "fine": FakeModel().turn(text="Fine.")})
    await crew.start(runtime(store, model), concurrency=1)
    run = await admit(store, agent(deadline_seconds=10_000.0))

    async def parked() -> bool:
        return (await store.header(ACME.tenant, run)).state == "suspended"

    await eventually(parked)
    [failed] = await of_type(store, run, ModelFailed)
    assert 3600 <= _waits(failed) < 3602
    [suspended] = await of_type(store, run, RunSuspended)
    assert suspended.wake_at == failed.retry_at
    assert suspended.waits == ()
    header = await store.header(ACME.tenant, run)
    assert header.worker is None
    assert header.wake_at == failed.retry_at

    other = agent().model_copy(update={"model": ModelRef(model="fine")})
    assert (await told(store, await admit(store, other))).answer == "Fine."
    assert (await store.header(ACME.tenant, run)).state == "suspended"
    assert len(busy.requests) == 1

    clock.shift_seconds += 3605
    found = await told(store, run)
    assert found.end == ("completed", None)
    assert [one.tries for one in found.every(ModelStarted)] == [1, 2]


@pytest.mark.parametrize("budget", [0, 2])
async def test_run_11_the_budget_is_a_bound(store: Store, crew: Crew, budget: int) -> None:
    """So many failures a turn survives; one more and the Run fails typed."""
    model = FakeModel().raises_transient(503, retry_after_seconds=0, times=budget + 1)
    model.turn(text="Never.")
    found = await talk(store, crew, model, spec=agent(transient_retry_budget=budget))
    assert found.end == ("failed", "retries_exhausted")
    assert [one.next for one in found.every(ModelFailed)] == ["retry"] * budget + ["give_up"]
    assert found.every(ModelFailed)[-1].retry_at is None
    assert len(model.requests) == budget + 1


async def test_run_11_the_budget_is_each_turns_own(store: Store, crew: Crew) -> None:
    """A failure of the turn before does not count."""

    async def act() -> str:
        """Act."""
        return "acted"

    model = FakeModel()
    for _ in range(3):
        model.raises_transient(503, retry_after_seconds=0).turn(tool_calls=[("act", {})])
    model.turn(text="Done.")
    found = await talk(store, crew, model, act, spec=agent("act", transient_retry_budget=1))
    assert found.end == ("completed", None)
    assert [one.tries for one in found.every(ModelStarted)] == [1, 2, 1, 2, 1, 2, 1]


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_run_11_a_permanent_error_fails_at_once(
    store: Store, crew: Crew, status: int
) -> None:
    """It has a code and a status, and is not tried again."""
    model = FakeModel().raises_permanent(status).turn(text="Never.")
    found = await talk(store, crew, model)
    assert found.end == ("failed", "model_permanent")
    [failed] = found.every(ModelFailed)
    assert (failed.failure.transient, failed.failure.status, failed.next) == (
        False,
        status,
        "give_up",
    )
    assert len(model.requests) == 1


async def test_run_11_a_model_that_nobody_knows_fails_at_once(store: Store, crew: Crew) -> None:
    """The message names those that are known."""
    found = await talk(store, crew, FakeModel(models=["a", "b"]).turn(text="Never."))
    assert found.end == ("failed", "model_permanent")
    [failed] = found.every(ModelFailed)
    assert failed.said is not None
    assert failed.said.message == "no model 'fake'; known: a, b"


class _Overflowing(FakeModel):
    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        return self._overflow()

    async def _overflow(self) -> AsyncGenerator[ModelEvent]:
        yield TextDelta(text="I ")
        raise ContextOverflow("the conversation is too long")


async def test_mod_6_context_overflow_has_its_own_code(store: Store, crew: Crew) -> None:
    """Nothing compacts yet: the Run fails and says why."""
    found = await talk(store, crew, _Overflowing())
    assert found.end == ("failed", "context_overflow")


async def test_run_11_the_text_of_a_failed_call_is_kept_and_taken_back(
    store: Store, crew: Crew
) -> None:
    """The log has what was said; a reader of text is told which text is void."""
    model = FakeModel().aborts_mid_token("It is half a", usage=Usage(input_tokens=5))
    model.turn(text="It is whole.")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)
    async with aclosing(stream_text(store, run, scope=ACME)) as texts:
        chunks = [chunk async for chunk in texts]
    found = await told(store, run)
    [failed] = found.every(ModelFailed)
    assert failed.said is not None
    assert failed.said.parts == (TextPart(text="It is half a"),)
    assert failed.usage == Usage(input_tokens=5)
    first, second = [one.call for one in found.every(ModelStarted)]

    shown: dict[str, str] = {}
    for chunk in chunks:
        if chunk.replaces is not None:
            shown[chunk.replaces] = ""
        shown[chunk.call] = shown.get(chunk.call, "") + chunk.text
    assert shown.pop(second) == "It is whole."
    assert shown.pop(first) == ""
    assert shown == {}
    assert next(one.replaces for one in chunks if one.call == second) == first


async def test_run_11_a_reader_of_a_run_that_fails_hears_why(store: Store, crew: Crew) -> None:
    """stream_text ends with the reason."""
    model = FakeModel().raises_permanent(401)
    await crew.start(runtime(store, model))
    run = await admit(store, agent())
    with pytest.raises(RunFailed) as caught:
        await anext(stream_text(store, run, scope=ACME))
    assert (caught.value.state, caught.value.reason) == ("failed", "model_permanent")


async def test_mod_5_a_stall_is_a_transient_failure(store: Store, crew: Crew) -> None:
    """What came before the silence is kept; the next try is whole."""
    model = FakeModel().stalls(text="It is half a").turn(text="It is whole.")
    spec = agent(stream_idle_seconds=0.5)
    found = await talk(store, crew, model, spec=spec)
    assert found.end == ("completed", None)
    [failed] = found.every(ModelFailed)
    assert failed.failure.transient
    assert failed.said is not None
    assert failed.said.parts == (TextPart(text="It is half a"),)


async def test_run_11_a_servers_retry_after_reaches_the_record(store: Store, crew: Crew) -> None:
    """From an HTTP header to the instant that the store judges."""
    done = answer(sse(text_chunk("Whole."), finish_chunk(), "[DONE]"))
    busy = error(429, "Slow down.", headers={"Retry-After": "1"})
    async with OpenAIServer(busy, done) as server:
        client = OpenAIClient(server.base_url)
        found = await talk(store, crew, client)
        await client.aclose()
    assert found.end == ("completed", None)
    [failed] = found.every(ModelFailed)
    assert failed.failure.status == 429
    assert 1 <= _waits(failed) < 3


async def test_run_11_failures_stand_in_order(store: Store, crew: Crew) -> None:
    """Type and outcome of the whole log."""
    model = FakeModel().raises_transient(503, retry_after_seconds=0).turn(text="Whole.")
    await crew.start(runtime(store, model))
    version = await publish(store, agent(), scope=ACME)
    run = await admit(store, version)
    await run_to_end(store, run)
    found = await told(store, run)
    assert outcomes(found.records) == [
        ("run.admitted", ""),
        ("attempt.started", ""),
        ("turn.started", ""),
        ("tools.offered", ""),
        ("model.started", ""),
        ("model.failed", "model_transient"),
        ("model.started", ""),
        ("model.completed", "stop"),
        ("run.settled", "completed"),
    ]
