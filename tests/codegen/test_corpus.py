"""Model and published schema judge every example as its name says."""

import json

import pytest

from codegen import corpus
from codegen.flat import ROOTS
from codegen.tree import as_text, read
from psych_schema.types import RECORD_TYPES
from tests.codegen.published import adapter, model_error, validator
from tests.codegen.trees import GENERATED, SCHEMA

EXAMPLES = corpus.load(SCHEMA)
VALID = [example for example in EXAMPLES if example.error is None]


def _name(example: corpus.Example) -> str:
    return f"{example.type}-{example.path.stem}"


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_the_model_judges_an_example(example: corpus.Example) -> None:
    """Valid ones are taken; an invalid one gives the error that it names."""
    assert model_error(example.type, example.document) == example.error


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_spec_5_the_published_schema_judges_an_example(example: corpus.Example) -> None:
    """A reader without Python comes to the same verdict."""
    schema = validator(example.type)
    if schema is None:
        unpublished = {"Message", "ModelEvent", "ModelRequest", "OutputFormat"}
        assert example.type in unpublished
    else:
        assert schema.is_valid(example.document) == (example.error is None)


@pytest.mark.parametrize("example", VALID, ids=_name)
def test_a_valid_example_survives_its_round_trip(example: corpus.Example) -> None:
    """What is written is read back as the same value."""
    reader = adapter(example.type)
    value = reader.validate_json(json.dumps(example.document))
    assert reader.validate_json(reader.dump_json(value)) == value


@pytest.mark.parametrize("name", sorted(model.__name__ for model in RECORD_TYPES.values()))
def test_each_record_type_has_a_legal_and_an_illegal_example(name: str) -> None:
    """No record type is without both."""
    verdicts = {example.error is None for example in EXAMPLES if example.type == name}
    assert verdicts == {True, False}


def test_there_are_35_record_types() -> None:
    """The catalogue of records.md is complete."""
    assert len(RECORD_TYPES) == 35


@pytest.mark.parametrize("root", sorted(ROOTS))
def test_each_published_root_has_a_legal_and_an_illegal_example(root: str) -> None:
    """What people outside rely on is shown from both sides."""
    title = as_text(read(GENERATED / "schema" / f"{root}.json")["title"])
    verdicts = {example.error is None for example in EXAMPLES if example.type == title}
    assert verdicts == {True, False}
