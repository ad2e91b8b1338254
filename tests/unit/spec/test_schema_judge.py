"""What fits a JSON Schema: as the reference library has it, without the library (PUB-1)."""

import json

import jsonschema_specifications  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from psych_runtime.core._meta_schema import META_SCHEMA
from psych_runtime.core._schema_judge import Judge
from psych_runtime.core._work import Work

NAMES = st.sampled_from(["a", "b", "ab", "c1"])
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
SCALARS: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, True, False, -2, 0, 1, 3, 0.5, 1.0, 2.5, 2**70, "", "a", "ab", "abc1", "\xe9"]
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
LEAVES: st.SearchStrategy[JsonValue] = st.one_of(
    st.booleans(),
    st.just({"$ref": "#/$defs/X"}),
    st.builds(lambda name: {"type": name}, st.sampled_from(TYPES)),
)
SIZES = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
LIMITS = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum")
VOCABULARIES = (
    "core",
    "applicator",
    "unevaluated",
    "validation",
    "meta-data",
    "format-annotation",
    "content",
)
DRAFT = "https://json-schema.org/draft/2020-12/"
REMARKS = {"$comment", "default", "deprecated", "format", "title"}


def _schema(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    some, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, max_size=2)
    keywords: dict[str, st.SearchStrategy[JsonValue]] = {
        **dict.fromkeys(SIZES, st.integers(0, 3)),
        **dict.fromkeys(LIMITS, st.sampled_from([0, 1, 2.5])),
        **dict.fromkeys(("minContains", "maxContains"), st.integers(0, 2)),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), some),
        **dict.fromkeys(("properties", "dependentSchemas"), named),
        **dict.fromkeys(("additionalProperties", "propertyNames", "items", "contains"), inner),
        **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), inner),
        **dict.fromkeys(("if", "then", "else", "not"), inner),
        "$ref": st.just("#/$defs/X"),
        "const": VALUES,
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
        "enum": st.lists(VALUES, max_size=3),
        "multipleOf": st.sampled_from([1, 2, 0.5, 0.1]),
        "pattern": st.sampled_from(["a", "^a", "b$", "[0-9]"]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "1"]), inner, max_size=2),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "type": st.sampled_from(TYPES) | st.just(["string", "array"]),
        "uniqueItems": st.booleans(),
    }
    return st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({one: keywords[one] for one in chosen})
    )


@settings(max_examples=400)
@given(st.recursive(LEAVES, _schema, max_leaves=8), st.sampled_from(["a", "b"]), VALUES)
def test_pub_1_what_fits_is_what_the_reference_says_fits(
    schema: JsonValue, name: str, value: JsonValue
) -> None:
    """Every keyword of draft 2020-12, in any mixture."""
    inner: dict[str, JsonValue] = {"properties": {name: True}, "prefixItems": [True]}
    whole: dict[str, JsonValue] = {"allOf": [schema], "$defs": {"X": inner}}
    if isinstance(schema, dict):
        whole = {**schema, "$defs": {"X": inner}}
    expected = Draft202012Validator(whole).is_valid(value)
    assert (not Judge(whole, Work()).faults(value)) == expected


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"items": True}, [1]),
        ({"prefixItems": [True]}, [1]),
        ({"contains": {"const": 1}}, [1]),
        ({"unevaluatedItems": True}, [1]),
        ({"anyOf": [False, {"items": True}]}, [1]),
        ({"if": {"items": True}}, [1]),
        ({"properties": {"a": True}}, {"a": 1}),
        ({"patternProperties": {"a": True}}, {"a": 1}),
        ({"additionalProperties": True}, {"a": 1}),
        ({"unevaluatedProperties": True}, {"a": 1}),
        ({"dependentSchemas": {"a": {"properties": {"a": True}}}}, {"a": 1}),
        ({"oneOf": [{"properties": {"a": True}}, False]}, {"a": 1}),
    ],
)
def test_pub_1_what_a_part_has_judged_is_not_judged_again(
    part: JsonValue, value: JsonValue
) -> None:
    """By `unevaluatedItems` and `unevaluatedProperties`; without the part nothing is judged."""
    rest: dict[str, JsonValue] = {"unevaluatedItems": False, "unevaluatedProperties": False}
    assert Judge({"allOf": [part], **rest}, Work()).faults(value) == []
    assert Judge({"not": {"not": part}, **rest}, Work()).faults(value) != []


def _flat(value: JsonValue, *, is_named: bool = False) -> JsonValue:
    """Return a part of the published meta-schema as the one document has it."""
    if isinstance(value, list):
        return [_flat(one) for one in value]
    if not isinstance(value, dict):
        return value
    if is_named:
        return {name: _flat(one) for name, one in value.items()}
    found: dict[str, JsonValue] = {}
    for name, one in value.items():
        if name == "$dynamicRef":
            found["$ref"] = "#"
        elif name == "$ref":
            found["$ref"] = "#/$defs/" + str(one).rsplit("/", 1)[1]
        elif name not in REMARKS:
            found[name] = _flat(one, is_named=name in ("$defs", "properties"))
    return found


def test_pub_1_the_meta_schema_is_the_published_one() -> None:
    """All its vocabularies as one document, without remarks."""
    properties: dict[str, JsonValue] = {}
    parts: dict[str, JsonValue] = {}
    for name in (*(f"meta/{one}" for one in VOCABULARIES), "schema"):
        published = jsonschema_specifications.REGISTRY.contents(DRAFT + name)
        flat = _flat(json.loads(json.dumps(published)))
        assert isinstance(flat, dict)
        for of, whole in (("properties", properties), ("$defs", parts)):
            found = flat.get(of, {})
            assert isinstance(found, dict)
            assert whole.keys().isdisjoint(found)
            whole.update(found)
    assert {
        "type": ["object", "boolean"],
        "properties": properties,
        "$defs": parts,
    } == META_SCHEMA


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [False]}, True),
        ({"$defs": {"a": {"$id": "https://example.com/", "$ref": "#/$defs/b"}, "b": False}}, True),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$id": "https://example.com/", "$ref": "#/$defs/b"}, "b": False},
            },
            False,
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$schema": "x", "pattern": 3}}}, True),
        ({"$ref": "#/nowhere"}, False),
        ({"$ref": f"#/allOf/{'9' * 5000}", "allOf": [True]}, False),
        ({"properties": 3, "required": 3, "type": 3, "enum": 3, "allOf": 3}, False),
    ],
)
def test_sec_3_a_schema_that_nobody_judged_cannot_crash_a_check(
    schema: JsonValue, fits: bool
) -> None:
    """No `$id` and no `$schema` leads out of it, and an ill-formed rule says nothing."""
    assert (not Judge(schema, Work()).faults([1])) is fits
