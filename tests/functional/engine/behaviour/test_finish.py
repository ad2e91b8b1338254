"""How a model may end its answer, and what the Run makes of it (MOD-4, MOD-5)."""

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.model import FinishReason
from psych_schema.record import ModelCompleted, ToolStarted
from tests.functional.engine.behaviour.talk import answers, talk
from tests.functional.engine.harness import Crew, agent


class Bench:
    """A tool that counts."""

    def __init__(self) -> None:
        self.ran = 0

    async def act(self) -> str:
        """Do it."""
        self.ran += 1
        return "done"


async def test_mod_4_length_with_calls_executes_none(store: Store, crew: Crew) -> None:
    """The calls may be incomplete: the model is told, and may ask again."""
    bench = Bench()
    model = FakeModel()
    model.turn(tool_calls=[("act", {}), ("act", {})], finish="length")
    model.turn(text="Less, then.")
    told = await talk(store, crew, model, bench.act)

    assert bench.ran == 0
    assert told.every(ToolStarted) == []
    assert [code for code, _ in told.refusals] == ["limit", "limit"]
    assert all("output limit" in text for _, text in answers(model.requests[1].messages))
    assert told.end == ("completed", None)


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "other"])
async def test_mod_4_stop_with_calls_executes_them(
    store: Store, crew: Crew, finish: FinishReason
) -> None:
    """What is there counts, not what the reason says of it (M9)."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("act", {})], finish=finish).turn(text="Done.")
    told = await talk(store, crew, model, bench.act)

    assert bench.ran == 1
    assert [one.finish for one in told.every(ModelCompleted)] == [finish, "stop"]
    assert told.end == ("completed", None)


async def test_mod_4_content_filter_with_calls_executes_none(store: Store, crew: Crew) -> None:
    """A filter cuts an answer off as the output limit does: its calls may be incomplete."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("act", {})], finish="content_filter").turn(text="Well.")
    told = await talk(store, crew, model, bench.act)

    assert bench.ran == 0
    [(code, message)] = told.refusals
    assert code == "limit"
    assert "content filter" in message
    assert told.end == ("completed", None)


async def test_mod_4_tool_calls_without_a_call_is_an_answer(store: Store, crew: Crew) -> None:
    """A reason that promises calls does not make any."""
    told = await talk(store, crew, FakeModel().turn(text="Hello.", finish="tool_calls"))
    assert told.end == ("completed", None)
    assert told.answer == "Hello."


@pytest.mark.parametrize(
    ("finish", "text", "code"),
    [
        ("content_filter", "I cannot", "content_filter"),
        ("content_filter", "", "content_filter"),
        ("length", "It is so th", "output_truncated"),
        ("length", "", "output_truncated"),
        ("stop", "", "empty_answer"),
        ("stop", " \n\t", "empty_answer"),
        ("other", "", "empty_answer"),
    ],
)
async def test_mod_4_what_is_no_whole_answer_is_not_completed(
    store: Store, crew: Crew, finish: FinishReason, text: str, code: str
) -> None:
    """The Run fails with its own reason; what was said stands in the log."""
    told = await talk(store, crew, FakeModel().turn(text=text, finish=finish))
    assert told.end == ("failed", code)
    said = told.every(ModelCompleted)[0].said
    assert said is not None
    assert "".join(getattr(part, "text", "") for part in said.parts) == text


async def test_mod_4_reasoning_alone_is_no_answer(store: Store, crew: Crew) -> None:
    """Thoughts are not told to whoever asked."""
    told = await talk(store, crew, FakeModel().turn(reasoning="Hm, well."))
    assert told.end == ("failed", "empty_answer")


@pytest.mark.parametrize("finish", ["stop", "other"])
async def test_mod_4_a_text_is_completed(store: Store, crew: Crew, finish: FinishReason) -> None:
    """The neighbour of all of these."""
    told = await talk(store, crew, FakeModel().turn(text="Hello there.", finish=finish))
    assert told.end == ("completed", None)
    assert told.answer == "Hello there."


async def test_mod_4_text_beside_calls_is_not_the_answer(store: Store, crew: Crew) -> None:
    """Only the last word is what the Run answers."""
    bench = Bench()
    model = FakeModel().turn(text="I will look.", tool_calls=[("act", {})]).turn(text="Found.")
    told = await talk(store, crew, model, bench.act)
    assert told.answer == "Found."


async def test_limits_a_model_that_never_stops_asking_fails_at_max_turns(
    store: Store, crew: Crew
) -> None:
    """The third model call is not made."""
    bench = Bench()
    model = FakeModel()
    for _ in range(5):
        model.turn(tool_calls=[("act", {})])
    told = await talk(store, crew, model, bench.act, spec=agent("act", max_turns=2))
    assert told.end == ("failed", "turn_limit")
    assert len(model.requests) == 2
    assert bench.ran == 2
