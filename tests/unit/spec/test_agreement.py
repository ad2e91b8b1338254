"""The published schema and the reader say the same of every document (SPEC-5)."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import JsonValue

import psych_schema
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import InvalidSpec
from tests.unit.spec.documents import minimal, spec_documents

KNOWN = {"doubled_name", "number_too_large"}
"""What JSON Schema cannot say: names that are doubled, numbers that readers read differently."""

VALUES: st.SearchStrategy[JsonValue] = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        7.0,
        0.5,
        10**6,
        "",
        "a",
        "A b",
        "x" * 300,
        [],
        ["a"],
        {},
        {"kind": "code"},
    ]
)


@cache
def published() -> Draft202012Validator:
    folder = Path(str(psych_schema.__file__)).parent
    places = (folder / "published" / "schema", folder.parent / "schema")
    file = next(place / "agent.json" for place in places if place.is_dir())
    return Draft202012Validator(json.loads(file.read_text(encoding="utf-8")))


def agrees(document: JsonValue) -> bool:
    """Return the verdict of both; fail when they differ by more than is known."""
    valid = published().is_valid(document)
    try:
        read_spec(json.dumps(document))
    except InvalidSpec as error:
        codes = {issue.code for issue in error.issues}
        assert not valid or codes <= KNOWN
        return False
    assert valid
    return True


def spots(value: JsonValue) -> list[dict[str, JsonValue] | list[JsonValue]]:
    """Return every mapping and list in a document."""
    if isinstance(value, dict):
        return [value, *(spot for member in value.values() for spot in spots(member))]
    if isinstance(value, list):
        return [value, *(spot for item in value for spot in spots(item))]
    return []


@given(spec_documents())
def test_spec_5_valid_documents_are_valid_for_both(document: dict[str, JsonValue]) -> None:
    """Whatever the reader takes, the schema takes."""
    assert agrees(document)


@settings(max_examples=300)
@given(spec_documents(), st.data())
def test_spec_5_mutated_documents_have_one_verdict(
    document: dict[str, JsonValue], data: st.DataObject
) -> None:
    """A member gone, replaced or added, anywhere."""
    spot = data.draw(st.sampled_from(spots(document)))
    value = data.draw(VALUES)
    if isinstance(spot, list):
        spot.append(value)
    else:
        known = ["kind", "name", "max_turns", "temperature", "tools", "nonsense"]
        name = data.draw(st.sampled_from([*spot, *known]))
        if data.draw(st.booleans()):
            assume(name in spot)
            del spot[name]
        else:
            spot[name] = value
    agrees(document)


@pytest.mark.parametrize("document", [None, [], "x", 3, {}])
def test_spec_5_what_is_no_spec_is_none_for_both(document: JsonValue) -> None:
    """The neighbours of a mapping."""
    assert not agrees(document)


def test_spec_5_the_known_differences_are_these() -> None:
    """The reader is stricter in two ways, and in no other."""
    doubled = minimal(tools=[{"kind": "code", "name": "a"}, {"kind": "code", "name": "a"}])
    large = minimal(model={"model": "m", "max_output_tokens": 2**53})
    for document in (doubled, large):
        plain: JsonValue = json.loads(json.dumps(document))
        assert published().is_valid(plain)
        assert not agrees(plain)
