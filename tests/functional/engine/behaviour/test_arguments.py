"""Calls that nobody can execute as they were written (MOD-2, MOD-3, R-30)."""

import pytest

from psych_runtime.ports.store import Store
from psych_runtime.testing.fake_model import FakeModel
from psych_schema.record import ModelDelta, ToolStarted
from tests.functional.engine.behaviour.talk import Told, answers, talk
from tests.functional.engine.harness import ACME, Crew, agent

_GARBAGE = '{"x": "' + "a" * 2_000_000
_MANY = "[" * 2_000_000


class Bench:
    """Tools that remember whether they ran."""

    def __init__(self) -> None:
        self.ran: list[object] = []

    async def double(self, x: int) -> int:
        """Double a number.

        Args:
            x: The number.
        """
        self.ran.append(x)
        return 2 * x

    async def ping(self) -> str:
        """Answer."""
        self.ran.append("ping")
        return "pong"

    async def secret(self) -> str:
        """Tell what not everybody may know."""
        self.ran.append("secret")
        return "told"


async def _log_bytes(store: Store, told: Told) -> int:
    rows = await store.read(ACME.tenant, told.run_id)
    return max(len(row.body) + len(row.content or "") for row in rows)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"x": 1', "line 1, column"),
        ('{"x": 1,}', "line 1, column"),
        ('{\n"x": 1\n"y": 2}', "line 3, column 1"),
        ("[1]", "instead of an object"),
        ("null", "instead of an object"),
        ('"x"', "instead of an object"),
        ('""', "instead of an object"),
        ("", "nothing instead of an object"),
        ("  ", "nothing instead of an object"),
        ('{"x": "one"}', "x"),
        ('{"x": null}', "x"),
        ('{"x": 1.5}', "x"),
        ('{"y": 1}', '"y" is no argument'),
        ('{"x": 1, "x": 2}', "x"),
        ('{"x": NaN}', "line 1, column"),
        ("{'x': 1}", "line 1, column"),
        ('{"x": "\ud800"}', "x"),
    ],
)
async def test_mod_2_malformed_arguments_are_never_executed(
    store: Store, crew: Crew, text: str, position: str
) -> None:
    """The model reads where it is wrong and what was expected, in at most 1 KB."""
    bench = Bench()
    model = FakeModel().raw_call("double", text).turn(text="I give up.")
    told = await talk(store, crew, model, bench.double)

    assert bench.ran == []
    assert told.every(ToolStarted) == []
    [(code, message)] = told.refusals
    assert code == "malformed"
    assert position in message
    assert "not executed" in message
    assert "Expected: " in message
    assert "integer" in message
    assert len(message.encode()) <= 1024
    assert answers(model.requests[1].messages)[0][1] == message
    assert told.end == ("completed", None)


@pytest.mark.parametrize("text", [_GARBAGE, _MANY, "é" * 1_000_000])
async def test_mod_2_garbage_of_2_mb_stays_out_of_the_log(
    store: Store, crew: Crew, text: str
) -> None:
    """Its beginning and its digest are kept; the next prompt does not carry it either."""
    bench = Bench()
    model = FakeModel().raw_call("double", text).turn(text="I give up.")
    told = await talk(store, crew, model, bench.double)

    assert bench.ran == []
    [(code, message)] = told.refusals
    assert code == "malformed"
    assert "Malformed arguments of double" in message
    assert str(len(text.encode())) in message
    assert "not executed" in message
    assert "Expected: " in message
    assert len(message.encode()) <= 1024
    assert await _log_bytes(store, told) < 8_192
    assert len(model.requests[1].model_dump_json()) < 16_384
    assert told.end == ("completed", None)


async def test_mod_2_deltas_of_2_mb_of_arguments_are_bounded(store: Store, crew: Crew) -> None:
    """With deltas on, readers do not get what the log does not keep without bound."""
    bench = Bench()
    model = FakeModel().raw_call("double", _GARBAGE).turn(text="I give up.")
    told = await talk(store, crew, model, bench.double, deltas=True)

    assert bench.ran == []
    assert told.end == ("completed", None)
    pieces = [one.text or "" for one in told.every(ModelDelta) if one.channel == "arguments"]
    assert 0 < len("".join(pieces)) <= 64 * 1024
    assert await _log_bytes(store, told) < 256 * 1024


@pytest.mark.parametrize("text", ["", " ", "{}"])
async def test_mod_2_nothing_is_an_empty_object_for_a_tool_without_parameters(
    store: Store, crew: Crew, text: str
) -> None:
    """Providers send an empty text for no arguments."""
    bench = Bench()
    model = FakeModel().raw_call("ping", text).turn(text="Done.")
    told = await talk(store, crew, model, bench.ping)
    assert bench.ran == ["ping"]
    assert told.calls == [("ok", "", "pong")]


async def test_mod_2_a_whole_float_is_an_integer(store: Store, crew: Crew) -> None:
    """2.0 is what some models write for 2; this neighbour of a wrong type runs."""
    bench = Bench()
    model = FakeModel().raw_call("double", '{"x": 2.0}').turn(text="Done.")
    told = await talk(store, crew, model, bench.double)
    assert bench.ran == [2]
    assert told.calls == [("ok", "", "4")]


async def test_mod_2_a_malformed_call_leaves_its_siblings_alone(store: Store, crew: Crew) -> None:
    """One refusal, one execution, answered in order."""
    bench = Bench()
    model = FakeModel()
    model.turn(tool_calls=[("double", {"x": "one"}), ("double", {"x": 2})])
    model.turn(text="Done.")
    told = await talk(store, crew, model, bench.double)
    assert bench.ran == [2]
    first, second = [text for _, text in answers(model.requests[1].messages)]
    assert "Malformed" in first
    assert second == ""
    assert told.calls == [("ok", "", "4")]


async def test_mod_3_an_unknown_tool_is_answered_with_what_there_is(
    store: Store, crew: Crew
) -> None:
    """The list is sorted; nothing ran."""
    bench = Bench()
    model = FakeModel().turn(tool_calls=[("dubble", {"x": 1})]).turn(text="Done.")
    told = await talk(store, crew, model, bench.ping, bench.double)
    assert bench.ran == []
    assert told.refusals == [("unknown", "There is no tool 'dubble'. You can call: double, ping.")]
    assert told.end == ("completed", None)


async def test_mod_3_a_forbidden_name_is_not_confirmed(store: Store, crew: Crew) -> None:
    """A registered tool that the Spec does not grant looks like one that does not exist."""
    bench = Bench()
    model = FakeModel()
    model.turn(tool_calls=[("secret", {}), ("nobody", {})]).turn(text="Done.")
    told = await talk(store, crew, model, bench.ping, bench.secret, spec=agent("ping"))
    assert bench.ran == []
    [(code, first), (other, second)] = told.refusals
    assert code == other == "unknown"
    assert first.replace("secret", "nobody") == second
    assert "secret" not in second


@pytest.mark.parametrize("name", ["", "\x00", "a\ud800b", "n" * 5_000, "tool\nname", "💥"])
async def test_mod_3_strange_names_are_only_unknown(store: Store, crew: Crew, name: str) -> None:
    """Whatever the model calls it, the answer is bounded and the Run goes on."""
    bench = Bench()
    model = FakeModel().raw_call(name, "{}").turn(text="Done.")
    told = await talk(store, crew, model, bench.ping)
    [(code, message)] = told.refusals
    assert code == "unknown"
    assert len(message) < 400
    assert told.end == ("completed", None)


async def test_mod_3_an_agent_without_tools_says_so(store: Store, crew: Crew) -> None:
    """There is nothing to list."""
    model = FakeModel().turn(tool_calls=[("ping", {})]).turn(text="Done.")
    told = await talk(store, crew, model)
    assert told.refusals == [("unknown", "There is no tool 'ping'. You can call: none.")]
