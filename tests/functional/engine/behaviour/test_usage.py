"""Tokens and cost of a Run are those of its log, and what is unknown stays so (TOK-1, TOK-2)."""

import pytest
from pydantic import JsonValue

from psych_runtime._reads import report
from psych_runtime.api import interrupt
from psych_runtime.model.openai import OpenAIClient
from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.common import Cost, Usage
from psych_schema.record import ModelCompleted, ModelDelta, ModelFailed
from psych_schema.view import ReportView
from tests.functional.engine.behaviour.talk import Told, talk, told
from tests.functional.engine.durability.crashes import die
from tests.functional.engine.flaky import Flaky
from tests.functional.engine.harness import ACME, Crew, admit, agent, eventually, of_type, runtime
from tests.servers.openai_server import (
    OpenAIServer,
    answer,
    finish_chunk,
    sse,
    text_chunk,
    usage_chunk,
)

_FULL = Usage(
    input_tokens=100,
    cache_read_tokens=40,
    cache_write_tokens=10,
    output_tokens=20,
    reasoning_tokens=5,
)


async def _report(store: Store, found: Told) -> ReportView:
    view = await report(store, found.run_id, scope=ACME)
    in_log = [one.usage for one in found.records if isinstance(one, ModelCompleted | ModelFailed)]
    assert [one.usage for one in view.model_calls] == [
        None if usage == Usage() else usage for usage in in_log
    ]
    return view


async def act() -> str:
    """Act."""
    return "acted"


async def test_tok_1_totals_are_the_sum_of_every_call(store: Store, crew: Crew) -> None:
    """Four disjoint counters, reasoning a part of output, a failed try included."""
    model = FakeModel()
    model.turn(tool_calls=[("act", {})], usage=_FULL)
    model.aborts_mid_token("half", usage=_FULL)
    model.turn(text="Done.", usage=_FULL)
    view = await _report(store, await talk(store, crew, model, act))
    assert view.totals.usage == Usage(
        input_tokens=300,
        cache_read_tokens=120,
        cache_write_tokens=30,
        output_tokens=60,
        reasoning_tokens=15,
    )
    assert (view.totals.model_calls, view.totals.calls_without_usage) == (3, 0)


async def test_tok_2_a_call_without_usage_makes_the_total_unknown(store: Store, crew: Crew) -> None:
    """None, not zero; the report says how many calls are missing."""
    model = FakeModel().turn(tool_calls=[("act", {})], usage=_FULL).turn(text="Done.")
    view = await _report(store, await talk(store, crew, model, act))
    assert view.totals.usage == Usage()
    assert view.totals.calls_without_usage == 1
    assert any("token totals are unknown: 1 of 2 model calls" in note for note in view.notes)


async def test_tok_2_cost_is_none_with_a_reason(store: Store, crew: Crew) -> None:
    """Nobody named a price."""
    model = FakeModel().turn(text="Done.", usage=_FULL)
    view = await _report(store, await talk(store, crew, model))
    assert view.totals.cost == Cost(source="missing", reason="no_price")
    assert view.model_calls[0].cost == Cost(source="missing", reason="no_price")


async def test_tok_2_a_cost_that_the_provider_names_is_kept(store: Store, crew: Crew) -> None:
    """As an exact decimal, summed over the calls."""
    cost = Cost(amount="0.1", currency="USD", source="provider")
    model = FakeModel()
    model.turn(tool_calls=[("act", {})], usage=_FULL, cost=cost)
    model.turn(text="Done.", usage=_FULL, cost=cost)
    view = await _report(store, await talk(store, crew, model, act))
    assert view.totals.cost == Cost(amount="0.2", currency="USD", source="provider")


async def test_tok_2_usage_of_an_interrupted_stream_is_unknown(store: Store, crew: Crew) -> None:
    """The call is counted; what it used is not guessed."""
    model = FakeModel().stalls(text="Half")
    await crew.start(runtime(store, model))
    run = await admit(store, agent(), deltas=True)

    async def said() -> bool:
        return bool(await of_type(store, run, ModelDelta))

    await eventually(said)
    await interrupt(store, run, scope=ACME)
    view = await _report(store, await told(store, run))
    assert view.totals.model_calls == 1
    assert view.totals.usage == Usage()
    assert view.totals.calls_without_usage == 1
    assert view.totals.cost.amount is None


async def test_tok_5_a_call_that_a_crash_cut_off_is_counted(
    store: Store, flaky: Flaky, crew: Crew
) -> None:
    """It is made again: two calls, one of them with an unknown use."""
    first = FakeModel().stalls(text="Half")
    second = FakeModel().turn(text="Whole.", usage=_FULL)
    worker = await crew.start(runtime(flaky, first))
    run = await admit(store, agent(), deltas=True)

    async def said() -> bool:
        return bool(await of_type(store, run, ModelDelta))

    await eventually(said)
    await die(flaky, store, worker)
    await crew.start(runtime(store, second))
    found = await told(store, run)
    view = await report(store, run, scope=ACME)
    assert found.end == ("completed", None)
    assert [one.outcome for one in view.model_calls] == ["interrupted", "completed"]
    assert [one.usage for one in view.model_calls] == [None, _FULL]
    assert view.totals.usage == Usage()
    assert view.totals.calls_without_usage == 1
    assert any("Cut off when a worker died: 1 model call" in note for note in view.notes)


@pytest.mark.parametrize("times", [1, 3])
async def test_tok_1_a_providers_inclusive_totals_are_split(
    store: Store, crew: Crew, times: int
) -> None:
    """Of cumulative reports in a stream the last one counts, once."""
    details: JsonValue = {"cached_tokens": 40}
    chunks = [usage_chunk(100, n + 1, prompt_tokens_details=details) for n in range(times)]
    reply = answer(sse(text_chunk("Hello."), finish_chunk(), *chunks, "[DONE]"))
    async with OpenAIServer(reply) as server:
        client = OpenAIClient(server.base_url)
        view = await _report(store, await talk(store, crew, client))
        await client.aclose()
    total = view.totals.usage
    assert (total.input_tokens, total.cache_read_tokens) == (60, 40)
    assert total.output_tokens == times


async def test_tok_2_a_run_without_model_calls_used_nothing(store: Store, crew: Crew) -> None:
    """Zero is known here: nobody was called."""
    run = await admit(store, agent())
    await interrupt(store, run, scope=ACME)
    await crew.start(runtime(store, FakeModel()))
    await told(store, run)
    view = await report(store, run, scope=ACME)
    assert view.totals.model_calls == 0
    assert view.totals.usage.input_tokens == 0
    assert view.totals.cost.reason == "no_model_calls"
