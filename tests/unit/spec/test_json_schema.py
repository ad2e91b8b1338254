"""A JSON Schema inside a document is one, and stands alone (PUB-1)."""

import pytest
from pydantic import JsonValue

from psych_runtime.core.json_schema import check_instance, check_json_schema
from psych_runtime.errors import InvalidPayload, PayloadTooLarge

AT = "/tools/0/parameters"
TYPES = "must be one of array, boolean, integer, null, number, object, string, or a list of them"
UNMATCHED = "is no pattern that can be matched"
ALL_OF = "is not supported; say it without, as two patterns in allOf or with not"
COUNTS = "write smaller counts and fewer of them, or use maxLength"
NOWHERE = "must lead to a place in this schema, as #/$defs/Name does"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
        {"$defs": {"A": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"$defs": {"a/b c": {}}, "$ref": "#/$defs/a~1b%20c"},
        {"$defs": {"A": {"$anchor": "here"}}, "$ref": "#here"},
        {"anyOf": [{"type": "string"}, {"$ref": "#/anyOf/0"}]},
        {"properties": {"a": {"$ref": "#"}}},
        {"items": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}},
        {
            "$defs": {"A": {"allOf": [{}, {}]}},
            "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}],
        },
        {"const": {"$ref": "nowhere", "type": 3}, "default": {"pattern": "("}},
        {"enum": [{"$ref": "nowhere"}], "examples": [{"type": "nothing"}]},
        {"type": "string", "pattern": "^[a-z]+$", "x-ours": 3, "format": "date"},
    ],
)
def test_pub_1_a_schema_that_stands_alone_passes(schema: JsonValue) -> None:
    """References within the document, and values that only look like schemas."""
    assert check_json_schema(schema, AT) == []


@pytest.mark.parametrize(
    ("schema", "pointer", "message", "suggestion"),
    [
        ({"type": "strng"}, "/type", TYPES, "string"),
        ({"type": ["object", "foo"]}, "/type", TYPES, None),
        (3, "", "must be a mapping or true or false, not a number", None),
        ({"properties": [1]}, "/properties", "must be a mapping, not a list", None),
        ({"required": "a"}, "/required", "must be a list, not a text", None),
        ({"required": ["a", "a"]}, "/required", "holds one thing twice", None),
        ({"minLength": -1}, "/minLength", "must be at least 0", None),
        ({"multipleOf": 0}, "/multipleOf", "must be more than 0", None),
        ({"anyOf": []}, "/anyOf", "must not be empty", None),
        ({"items": [1]}, "/items", "must be a mapping or true or false, not a list", None),
        ({"properties": {"a": {"type": 5}}}, "/properties/a/type", TYPES, None),
        ({"$ref": "#/$defs/A"}, "/$ref", NOWHERE, None),
        ({"$ref": "https://example.com/a.json"}, "/$ref", NOWHERE, None),
        ({"$ref": "other.json#/a"}, "/$ref", NOWHERE, None),
        ({"$ref": "#nowhere"}, "/$ref", NOWHERE, None),
        ({"items": {"not": {"$dynamicRef": "#x"}}}, "/items/not/$dynamicRef", NOWHERE, None),
        (
            {"pattern": "("},
            "/pattern",
            f"{UNMATCHED}: unclosed group",
            None,
        ),
        (
            {"patternProperties": {"[": True}},
            "/patternProperties/[",
            f"{UNMATCHED}: unclosed character class",
            None,
        ),
        (
            {"items": {"pattern": "^(?!a)b"}},
            "/items/pattern",
            f"{UNMATCHED}: look-around, including look-ahead and look-behind, {ALL_OF}",
            None,
        ),
        (
            {"pattern": "(a{1000}){1000}"},
            "/pattern",
            f"{UNMATCHED}: it is too large once its counts are written out; {COUNTS}",
            None,
        ),
    ],
)
def test_pub_1_an_invalid_schema_is_refused(
    schema: JsonValue, pointer: str, message: str, suggestion: str | None
) -> None:
    """Once for each place, in our words; nothing is fetched."""
    found = check_json_schema(schema, AT)
    assert [(i.pointer, i.message, i.suggestion) for i in found] == [
        (AT + pointer, message, suggestion)
    ]
    assert found[0].code == "invalid_json_schema"


def test_pub_1_everything_wrong_with_a_schema_is_told() -> None:
    """Also what is no JSON at all."""
    schema = {"type": "strng", "properties": {"a": {"minimum": "x"}, "b": {"$ref": "#/c"}}}
    assert sorted(i.pointer for i in check_json_schema(schema, "")) == [
        "/properties/a/minimum",
        "/properties/b/$ref",
        "/type",
    ]
    assert [(i.code, i.pointer) for i in check_json_schema({"default": len}, AT)] == [
        ("foreign_object", f"{AT}/default")
    ]


def test_sec_3_schemas_are_bounded() -> None:
    """In depth and size."""
    nested: dict[str, object] = {}
    for _ in range(62):
        nested = {"items": nested}
    assert check_json_schema(nested, "") == []
    for _ in range(10):
        nested = {"items": nested}
    assert [issue.code for issue in check_json_schema(nested, "")] == ["too_deep"]
    with pytest.raises(PayloadTooLarge):
        check_json_schema({"description": "x" * 2_000_000}, "")


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "#"}, ""),
        ({"allOf": [{"$ref": "#/allOf/0"}]}, "/allOf/0"),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            "/$defs/b",
        ),
        ({"$defs": {"a": {"$anchor": "x", "not": {"$ref": "#x"}}}}, "/$defs/a/not"),
        ({"dependentSchemas": {"a": {"if": {"$ref": "#"}}}}, "/dependentSchemas/a/if"),
    ],
)
def test_pub_1_a_schema_that_leads_back_to_itself_is_refused(
    schema: JsonValue, pointer: str
) -> None:
    """Whoever checked a value with it would never come to an end."""
    [issue] = check_json_schema(schema, AT)
    assert issue.pointer == AT + pointer
    assert issue.message == "leads back to itself, so no value could ever be checked"


def test_sec_3_a_value_whose_check_does_not_end_is_refused() -> None:
    """Also by a schema that was published before circles were looked for."""
    with pytest.raises(InvalidPayload, match="leads in a circle"):
        check_instance(1, {"$ref": "#"}, what="payload")


def test_pub_1_a_pattern_that_only_tells_may_be_any() -> None:
    """Whoever judges the values does it without this schema."""
    schema = {"pattern": "(?=a)", "items": {"$ref": "#/nowhere"}}
    [issue] = check_json_schema(schema, AT, is_matched=False)
    assert issue.pointer == f"{AT}/items/$ref"


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": r"(a)\1"},
        {"patternProperties": {r"(a)\1": True}},
        {"patternProperties": {r"(a)\1": True}, "additionalProperties": False},
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {r"(a)\1": True}}]},
    ],
)
def test_sec_3_an_older_schema_with_a_pattern_that_cannot_be_matched(schema: JsonValue) -> None:
    """It was published when patterns were not judged so: the pattern is named."""
    value: JsonValue = "aa" if isinstance(schema, dict) and "pattern" in schema else {"aa": 1}
    with pytest.raises(InvalidPayload) as caught:
        check_instance(value, schema, what="payload")
    assert caught.value.problem == (
        r'its schema has the pattern "(a)\\1": backreferences are not supported; '
        "say it without: no later part can repeat an earlier one"
    )


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        (1, False, "/: may not be here"),
        (1, {"type": "string"}, "/: must be a text, not a number"),
        (1.5, {"type": ["integer", "null"]}, "/: must be a whole number or null, not a number"),
        ({"a": 1}, {"properties": {"a": {"enum": ["x", 2]}}}, '/a: must be one of "x", 2'),
        ({"a": 1}, {"additionalProperties": False}, "/a: may not be here"),
        ({}, {"required": ["a"]}, '/: lacks "a"'),
        ({"a": 1}, {"dependentRequired": {"a": ["b"]}}, '/: "a" must come with "b"'),
        ({"a": 1}, {"propertyNames": {"maxLength": 0}}, "/: must have at most 0 characters"),
        (
            [1],
            {"contains": {"type": "null"}},
            "/: must hold at least 1 of what its schema asks for",
        ),
        ([[], ["a"]], {"items": {"minItems": 1}}, "/0: must not be empty"),
        ("b", {"pattern": "^a"}, "/: must match ^a"),
        ({"a": {"b": 1}, "c": 1}, {"properties": {"c": False, "a": False}}, "/a: may not be here"),
        (
            {"kind": "b", "size": "x"},
            {
                "anyOf": [
                    {"required": ["other"]},
                    {"properties": {"size": {"type": "integer"}}},
                ]
            },
            "/size: must be a whole number, not a text",
        ),
        (1, {"anyOf": [False, False]}, "/: fits none of the choices that its schema gives"),
        (
            1,
            {"oneOf": [True, True]},
            "/: must fit exactly one of the choices that its schema gives",
        ),
        (1, {"not": {}}, "/: is what its schema excludes"),
    ],
)
def test_sus_2_what_does_not_fit_is_told_in_words(
    value: JsonValue, schema: JsonValue, problem: str
) -> None:
    """Where it stands, and what must be there; the value itself is not repeated."""
    with pytest.raises(InvalidPayload) as caught:
        check_instance(value, schema, what="payload")
    assert caught.value.problem == problem
