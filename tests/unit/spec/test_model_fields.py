"""ModelRef, FallbackModel and the port speak of the same fields (MOD-9)."""

import pytest

from psych_runtime.core.model_fields import FIELDS, asked_fields, takes_of, unsendable
from psych_runtime.ports.model import PLAIN, Takes
from psych_runtime.runtime.asked import params_of, tool_choice_of
from psych_runtime.testing.fake_model import EVERYTHING, FakeModel
from psych_schema.model import ModelRequest
from psych_schema.spec import AgentSpec, FallbackModel, ModelRef, ToolChoice

_OF_THE_RUN = {"stop_sequences", "tool_choice", "parallel_tool_calls"}
"""What holds whichever model answers, so that no stand-in has it."""


def _spec(**fields: object) -> AgentSpec:
    model = ModelRef.model_validate({"model": "m", **fields})
    return AgentSpec(name="a", instructions="Help.", model=model)


def test_mod_9_a_stand_in_has_the_settings_of_a_model() -> None:
    """Each with the same type and default, so that nothing is said twice in two ways."""
    ref, other = ModelRef.model_fields, FallbackModel.model_fields
    assert ref.keys() - other.keys() == _OF_THE_RUN | {"fallbacks"}
    assert other.keys() - ref.keys() == {"larger_context"}
    for name in ref.keys() & other.keys():
        assert (ref[name].annotation, ref[name].default) == (
            other[name].annotation,
            other[name].default,
        )


def test_mod_9_the_port_names_every_field_of_a_model() -> None:
    """One that is new in the schema is one that a client takes or not."""
    rest = {"model", "fallbacks"}
    assert set(FIELDS) == (ModelRef.model_fields.keys() - rest) | {"output"}
    assert set(FIELDS) <= ModelRequest.model_fields.keys()
    assert list(FIELDS) == sorted(FIELDS)


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", 0), ("temperature", 0.0), ("parallel_tool_calls", False)],
)
def test_mod_9_what_is_nothing_but_set_is_asked_for(field: str, value: object) -> None:
    """0 and false are not the same as unset."""
    model = ModelRef.model_validate({"model": "m", field: value})
    assert list(asked_fields(model)) == [field]
    assert list(asked_fields(ModelRef(model="m"))) == []
    assert params_of(_spec(**{field: value}), model, 1) == {field: value}


def test_mod_9_a_client_that_does_not_say_is_plain() -> None:
    """One that says is believed."""

    class Silent:
        """A client without `takes`."""

        stream = FakeModel.stream
        models = FakeModel.models

    assert takes_of(Silent()) == PLAIN
    assert takes_of(FakeModel()) == EVERYTHING
    assert takes_of(FakeModel(takes=PLAIN)) == PLAIN


def test_mod_9_the_first_reason_names_field_and_client() -> None:
    """Of several, the first in the order of the alphabet: the same each time."""
    request = ModelRequest(model="m", system="", messages=(), seed=1, cache="system")
    nothing = Takes(frozenset())
    assert unsendable(request, nothing, client="C") == (
        "C does not take cache; leave it out, or call another model"
    )
    assert unsendable(request, EVERYTHING, client="C") is None


def test_mod_9_a_secret_among_extras_is_not_shown() -> None:
    """The name of a member is a text of the Spec like any other."""
    name = "sk-" + "a1B2" * 12
    request = ModelRequest(model="m", system="", messages=(), extras={name: 1})
    refused = unsendable(request, Takes(EVERYTHING.fields, frozenset({name})), client="C")
    assert refused is not None
    assert name not in refused


def test_mod_9_a_call_is_required_in_the_first_turn() -> None:
    """What forbids or leaves it holds in each."""
    for mode in ("required", "tool"):
        forced = _spec(tool_choice={"mode": mode, "tool": None})
        assert tool_choice_of(forced, 1) == ToolChoice.model_validate({"mode": mode})
        assert tool_choice_of(forced, 2) is None
    for mode in ("auto", "none"):
        free = _spec(tool_choice={"mode": mode})
        assert tool_choice_of(free, 1) == tool_choice_of(free, 9) is not None


def test_log_2_what_may_be_long_is_recorded_by_hash() -> None:
    """A record of each turn does not repeat the Spec."""
    spec = _spec(extras={"long": "x" * 10_000})
    spec = AgentSpec.model_validate(
        spec.model_dump() | {"output": {"json_schema": {"title": "y" * 10_000}}}
    )
    params = params_of(spec, spec.model, 1)
    assert params.keys() == {"extras", "output"}
    assert all(isinstance(one, str) and len(one) == 64 for one in params.values())
