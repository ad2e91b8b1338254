"""`psych schema` prints the published schemas, however it is installed (SPEC-5, CLI-1)."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.functional.cli.inside import psych
from tests.functional.cli.runner import psych as psych_process


def test_cli_1_schemas_are_listed() -> None:
    """One name a line; as JSON on request."""
    ran = psych_process("schema")
    names = ran.out.split()
    assert ran.code == 0
    assert names == sorted(names)
    assert {"agent", "answer", "record", "report", "runs", "status"} <= set(names)
    assert psych_process("schema", "--json").json() == {"schemas": names}


@pytest.mark.parametrize("name", ["agent", "agent.json"])
def test_cli_1_a_schema_stands_alone(name: str) -> None:
    """It is a JSON Schema, its references lead into itself, and it knows a Spec."""
    ran = psych("schema", name)
    schema = ran.json()
    assert ran.code == 0
    assert isinstance(schema, dict)
    assert schema["$id"] == "https://psychruntime.com/schema/v1/agent.json"
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    spec = {"kind": "agent", "name": "x", "instructions": "hi", "model": {"model": "m"}}
    assert validator.is_valid(spec)
    assert not validator.is_valid({**spec, "nonsense": 1})
    assert '"$ref": "#/' in json.dumps(schema)


def test_cli_1_an_unknown_schema_is_wrong_usage() -> None:
    """With the nearest name."""
    ran = psych("schema", "agnt")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'agent'?" in " ".join(ran.err.replace("│", " ").split())
