"""The generated models: strict, frozen, cheap to import, and one type for an instant."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from codegen import models
from codegen.polish import polish
from codegen.source import Source
from codegen.tree import Node, SchemaError
from psych_schema.base import format_instant, parse_instant
from psych_schema.common import Count, Instant, Scope
from psych_schema.record import Envelope, Record, TurnStarted
from psych_schema.spec import AgentSpec, CodeTool, Limits, Spec, Tool
from psych_schema.transitions import TRANSITIONS
from psych_schema.types import RECORD_TYPES
from tests.codegen.trees import GENERATED, plant, sound, write

RUN = "run_01k3v6k2t8w4m9q7c5x1d00001"
RECORD = "rec_01k3v6k2t8w4m9q7c5x1d00001"
AGENT = {"kind": "agent", "name": "a", "instructions": "x", "model": {"model": "m"}}
AT = datetime(2026, 11, 29, 20, tzinfo=UTC)


def turn_json(*, at: str = '"2026-11-29T20:00:00.000000Z"', turn: str = "1") -> str:
    """Return the JSON text of a turn.started record."""
    return (
        f'{{"type": "turn.started", "run_id": "{RUN}", "id": "{RECORD}",'
        f' "at": {at}, "turn": {turn}, "purpose": "answer"}}'
    )


def loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh Python has loaded after `statement`."""
    code = f"import sys; sys.path.insert(0, {str(GENERATED)!r}); {statement}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_import_psych_schema_loads_nothing() -> None:
    """The package itself is a docstring."""
    loaded = loaded_by("import psych_schema")
    assert "psych_schema" in loaded
    assert not loaded & {"psych_runtime", "pydantic", "sqlalchemy"}


def test_the_models_need_pydantic_alone() -> None:
    """Neither the runtime nor SQLAlchemy comes along with records, Specs and views."""
    loaded = loaded_by("import psych_schema.types, psych_schema.spec, psych_schema.view")
    assert "pydantic" in loaded
    assert not loaded & {"psych_runtime", "sqlalchemy", "jsonschema"}


def test_each_record_type_has_its_class_and_its_transition() -> None:
    """The union, the table of classes and the transition table name the same types."""
    assert list(RECORD_TYPES) == list(TRANSITIONS)
    for name, model in RECORD_TYPES.items():
        assert model.model_fields["type"].default == name


@pytest.mark.parametrize("model", RECORD_TYPES.values(), ids=lambda model: model.__name__)
def test_each_record_carries_the_envelope(model: type[Envelope]) -> None:
    """The loader put every field of the envelope into every type, right after `type`."""
    fields = list(model.model_fields)
    assert fields[0] == "type"
    assert fields[1 : 1 + len(Envelope.model_fields)] == list(Envelope.model_fields)
    for name, field in Envelope.model_fields.items():
        assert model.model_fields[name].annotation == field.annotation
        assert model.model_fields[name].is_required() == field.is_required()


def test_a_record_is_read_through_its_union() -> None:
    """The type decides the class."""
    record = TypeAdapter[Record](Record).validate_json(turn_json())
    assert isinstance(record, TurnStarted)
    assert (record.turn, record.at, record.seq, record.prev) == (1, AT, 0, None)


@pytest.mark.parametrize("turn", ["true", '"1"', "1.0", "0", "null"])
def test_a_named_integer_is_strict_whoever_reads_it(turn: str) -> None:
    """A TypeAdapter without configuration takes no text or truth for a number, either."""
    with pytest.raises(ValidationError):
        TypeAdapter[Record](Record).validate_json(turn_json(turn=turn))
    with pytest.raises(ValidationError):
        TypeAdapter(TurnStarted).validate_json(turn_json(turn=turn))


def test_a_named_scalar_alone_is_strict() -> None:
    """Not even by itself does it convert."""
    assert TypeAdapter[int](Count).validate_json("7") == 7
    with pytest.raises(ValidationError):
        TypeAdapter[int](Count).validate_json('"7"')


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026-11-29T20:00:00Z", id="no digits"),
        pytest.param("2026-11-29T20:00:00.000Z", id="three digits"),
        pytest.param("2026-11-29T20:00:00.0000000Z", id="seven digits"),
        pytest.param("2026-11-29 20:00:00.000000Z", id="space"),
        pytest.param("2026-11-29T20:00:00,000000Z", id="comma"),
        pytest.param("2026-11-29T20:00:00.000000z", id="small z"),
        pytest.param("2026-11-29T20:00:00.000000", id="no zone"),
        pytest.param("2026-11-29T20:00:00.0000+00:00", id="offset"),
        pytest.param("2026-W48-7T20:00:00.000000Z", id="week"),
        pytest.param("2026-02-30T20:00:00.000000Z", id="no such day"),
        pytest.param("2026-11-29T20:00:60.000000Z", id="leap second"),
        pytest.param("2026-11-29T20:00:00.000000Z\n", id="line end"),
        pytest.param("٢٠٢٦-11-29T20:00:00.000000Z", id="other digits"),
        pytest.param("1", id="number"),
    ],
)
def test_an_instant_has_one_form(text: str) -> None:
    """Anything but UTC with six digits and `Z` is refused."""
    with pytest.raises(ValueError, match=r"six digits|must be in|out of range|invalid"):
        parse_instant(text)
    with pytest.raises(ValidationError):
        TypeAdapter[datetime](Instant).validate_python(text)


@pytest.mark.parametrize("value", ["1764446400", "true", "null", "[]"])
def test_an_instant_is_no_other_json(value: str) -> None:
    """A timestamp is a number, not an instant."""
    with pytest.raises(ValidationError):
        TypeAdapter[datetime](Instant).validate_json(value)


def test_an_instant_is_written_as_it_is_read() -> None:
    """In JSON mode, too; every digit is kept."""
    text = "2026-01-02T03:04:05.000007Z"
    value = parse_instant(text)
    assert value == datetime(2026, 1, 2, 3, 4, 5, 7, tzinfo=UTC)
    assert format_instant(value) == text
    record = TypeAdapter(TurnStarted).validate_json(turn_json(at=f'"{text}"'))
    assert f'"at":"{text}"' in record.model_dump_json()
    assert record.model_dump(mode="json")["at"] == text


def test_an_instant_of_another_zone_becomes_utc() -> None:
    """Programs may hand any aware datetime; a naive one is refused."""
    oslo = timezone(timedelta(hours=1))
    adapter = TypeAdapter[datetime](Instant)
    assert adapter.validate_python(datetime(2026, 11, 29, 21, tzinfo=oslo)).tzinfo is UTC
    with pytest.raises(ValidationError):
        adapter.validate_python(AT.replace(tzinfo=None))


def test_the_first_year_is_written_with_four_digits() -> None:
    """No platform drops the zeros."""
    assert format_instant(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


def test_a_spec_takes_lists_and_keeps_tuples() -> None:
    """Sequences may be written as lists; what is kept cannot change."""
    spec = AgentSpec.model_validate({**AGENT, "tools": [{"kind": "code", "name": "forecast"}]})
    assert spec.tools == (CodeTool(name="forecast"),)
    assert spec.limits == Limits()
    with pytest.raises(ValidationError, match="frozen_instance"):
        spec.name = "other"


def test_items_of_a_lax_sequence_stay_strict() -> None:
    """Only the list is taken for a tuple, nothing in it is converted."""
    with pytest.raises(ValidationError, match="string_type"):
        AgentSpec.model_validate({**AGENT, "tools": [{"kind": "code", "name": 7}]})


def test_a_union_of_one_is_its_branch() -> None:
    """Spec and Tool have one branch each and are read like it."""
    assert isinstance(TypeAdapter[Spec](Spec).validate_json(json.dumps(AGENT)), AgentSpec)
    tool = TypeAdapter[Tool](Tool).validate_json('{"kind": "code", "name": "f"}')
    assert tool == CodeTool(name="f")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_are_finite(text: str) -> None:
    """Neither JSON's neighbours nor an overflow gives a number."""
    with pytest.raises(ValidationError):
        Limits.model_validate_json(f'{{"deadline_seconds": {text}}}')


def test_a_closed_object_refuses_and_an_open_one_ignores() -> None:
    """A Scope with a misspelt field is an error; a newer record's field is kept out of the way."""
    with pytest.raises(ValidationError, match="extra_forbidden"):
        Scope.model_validate_json('{"tenant": "acme", "principle": "ada"}')
    record = TurnStarted.model_validate_json(turn_json()[:-1] + ', "colour": "blue"}')
    assert "colour" not in record.model_dump()


def test_a_schema_that_the_generator_cannot_name_is_refused(tmp_path: Path) -> None:
    """Its class would be invented; the message says where."""
    arm: Node = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    tree = plant(sound(), "spec/robot.json", "/$defs/Robot/properties/arm", arm)
    with pytest.raises(SchemaError, match=r"schema/spec/robot\.json: the generator invented Arm"):
        models.emit(Source.load(write(tree, tmp_path)))


def test_an_alias_that_the_generator_invents_is_written_out() -> None:
    """`anyOf [constrained scalar, null]` gets no name of its own."""
    code = (
        "from pydantic import BaseModel\n"
        "type Arms = Annotated[int, Field(ge=0)]\n"
        "class Robot(BaseModel):\n    arms: Arms | None = None\n"
    )
    assert "arms: Annotated[int, Field(ge=0)] | None = None" in polish(
        code, {"Robot": False}, frozenset({"Robot"}), "A robot."
    )
