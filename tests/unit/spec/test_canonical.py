"""One Spec, one text, one hash, however it was written (SPEC-1, SPEC-2)."""

import hashlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from psych_runtime import AgentSpec, CodeTool, Limits, ModelRef, load_spec
from psych_runtime.core.canonical import canonical_text, spec_hash
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import InvalidSpec, PayloadTooLarge
from tests.unit.spec.documents import minimal, shuffled, spec_documents

WRITTEN = '{"instructions":"a\\nb","kind":"agent","model":{"model":"m","temperature":1},"name":"x"}'


def hash_of(value: object) -> str:
    return spec_hash(read_spec(value))


@given(spec_documents(), st.data())
def test_spec_1_one_agent_has_one_hash(document: dict[str, JsonValue], data: st.DataObject) -> None:
    """A model, a dict, JSON and YAML, any key order, LF or CRLF: one hash."""
    wanted = hash_of(document)
    other = data.draw(shuffled(document))
    text = json.dumps(other, indent=data.draw(st.sampled_from([None, 1])))
    block = yaml.safe_dump(other, sort_keys=False, allow_unicode=True)
    assert hash_of(other) == wanted
    assert hash_of(text) == wanted
    assert hash_of(text.encode()) == wanted
    assert hash_of(AgentSpec.model_validate_json(text)) == wanted
    assert spec_hash(AgentSpec.model_validate_json(text)) == wanted
    assert spec_hash(load_spec(text)) == wanted
    assert spec_hash(load_spec(block)) == wanted
    assert spec_hash(load_spec(block.replace("\n", "\r\n"))) == wanted
    assert spec_hash(load_spec(yaml.safe_dump(other, default_flow_style=True))) == wanted


@given(spec_documents())
def test_spec_1_the_canonical_text_reads_as_the_spec(document: dict[str, JsonValue]) -> None:
    """What is stored is what was published: reading it back changes nothing."""
    spec = read_spec(document)
    text = canonical_text(spec)
    assert read_spec(text) == spec
    assert canonical_text(read_spec(text)) == text
    assert hashlib.sha256(text.encode()).hexdigest() == spec_hash(spec)


def test_spec_1_crlf_in_texts_is_lf() -> None:
    """A file that went through Windows is the same Spec; a lone CR is another text."""
    texts = [canonical_text(read_spec(minimal(instructions=i))) for i in ("a\r\nb", "a\nb", "a\rb")]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert read_spec(minimal(instructions="a\r\nb")).instructions == "a\nb"
    direct = AgentSpec(name="x", instructions="a\r\nb", model=ModelRef(model="m", temperature=1))
    assert canonical_text(direct) == WRITTEN


def test_spec_1_one_and_one_point_nought_agree() -> None:
    """In dicts, JSON, YAML and models; 1.5 turns are refused."""
    whole = [
        minimal(limits={"max_turns": 7, "deadline_seconds": 30}),
        minimal(limits={"max_turns": 7.0, "deadline_seconds": 30.0}),
        json.dumps(minimal(limits={"max_turns": 7.0, "deadline_seconds": 3e1})),
        AgentSpec(
            name="triage",
            instructions="Sort tickets.",
            model=ModelRef(model="gpt-4o-mini"),
            limits=Limits(max_turns=7, deadline_seconds=30.0),
        ),
    ]
    assert len({hash_of(one) for one in whole}) == 1
    with pytest.raises(InvalidSpec, match="/limits/max_turns: must be a whole number"):
        read_spec(minimal(limits={"max_turns": 7.5}))


def test_spec_2_defaults_are_left_out() -> None:
    """A default that is written out is the same Spec, so a later optional field changes nothing."""
    written_out = minimal(
        description="",
        tools=[],
        limits={
            "max_turns": 32,
            "max_tool_calls_per_turn": 16,
            "deadline_seconds": 900,
            "transient_retry_budget": 8,
            "failure_streak": 3,
            "failure_streak_stop": 6,
            "repeat_calls": 3,
            "repeat_calls_stop": 6,
            "stream_idle_seconds": 300.0,
        },
    )
    written_out["model"] = {"model": "gpt-4o-mini", "temperature": None, "max_output_tokens": None}
    text = canonical_text(read_spec(written_out))
    assert text == canonical_text(read_spec(minimal()))
    assert text == (
        '{"instructions":"Sort tickets.","kind":"agent","model":{"model":"gpt-4o-mini"},'
        '"name":"triage"}'
    )


def test_spec_2_one_changed_default_is_kept_alone() -> None:
    """Of a nested object only what differs is written."""
    text = canonical_text(read_spec(minimal(limits={"max_turns": 33, "deadline_seconds": 900})))
    assert json.loads(text)["limits"] == {"max_turns": 33}


def test_spec_2_tags_are_always_kept() -> None:
    """`kind` has one value today; it stays in the text, whatever its default in Python."""
    spec = read_spec(minimal(tools=[{"kind": "code", "name": "add"}]))
    document = json.loads(canonical_text(spec))
    assert document["kind"] == "agent"
    assert document["tools"] == [{"kind": "code", "name": "add"}]


def test_spec_2_sets_are_sorted_by_name() -> None:
    """The order in which tools are granted means nothing."""
    names = ["zip", "add", "Mul"]
    spec = read_spec(minimal(tools=[{"kind": "code", "name": name} for name in names]))
    assert [tool.name for tool in spec.tools] == ["Mul", "add", "zip"]
    direct = AgentSpec(
        name="triage",
        instructions="Sort tickets.",
        model=ModelRef(model="gpt-4o-mini"),
        tools=(CodeTool(name="add"), CodeTool(name="zip"), CodeTool(name="Mul")),
    )
    assert spec_hash(direct) == spec_hash(spec)
    assert [tool.name for tool in direct.tools] == ["add", "zip", "Mul"]


def test_spec_2_another_value_is_another_hash() -> None:
    """Whatever is not a default counts."""
    specs = [
        minimal(),
        minimal(name="other"),
        minimal(instructions="Sort tickets"),
        minimal(description="d"),
        minimal(tools=[{"kind": "code", "name": "add"}]),
        minimal(model={"model": "gpt-4o-mini", "temperature": 0}),
        minimal(limits={"max_turns": 1}),
    ]
    assert len({hash_of(spec) for spec in specs}) == len(specs)


@pytest.mark.parametrize(
    ("value", "code"),
    [(float("nan"), "not_finite"), (2**53, "number_too_large"), (len, "foreign_object")],
)
def test_spec_3_an_unchecked_model_has_no_hash(value: object, code: str) -> None:
    """What `model_construct` let in is found where the text is made."""
    limits = Limits.model_construct(None, deadline_seconds=value)
    spec = read_spec(minimal()).model_copy(update={"limits": limits})
    with pytest.raises(InvalidSpec) as caught:
        spec_hash(spec)
    assert [(i.code, i.pointer) for i in caught.value.issues] == [
        (code, "/limits/deadline_seconds")
    ]


def test_sec_3_a_canonical_text_fits_the_bound() -> None:
    """So that what was published can be read back: the bound counts UTF-8."""
    half = "é" * (512 * 1024)
    with pytest.raises(PayloadTooLarge) as caught:
        read_spec(minimal(instructions=half))
    assert caught.value.size_bytes > caught.value.bound_bytes == 1024 * 1024
    fits = read_spec(minimal(instructions=half[:-200]))
    assert read_spec(canonical_text(fits)) == fits
