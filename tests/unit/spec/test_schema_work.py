"""No schema and no payload makes a check stand still: its steps are counted (SEC-3)."""

import pytest
from pydantic import JsonValue

from psych_runtime.core.json_schema import Work, check_instance, check_json_schema
from psych_runtime.errors import InvalidPayload

TOO_MUCH = "its schema asks for too much work: give less, or publish a simpler schema"
TOO_MUCH_TO_JUDGE = "asks for too much work to be checked: make it smaller, its patterns simpler"
LONG = "x" * 260_000


def doubling(keyword: str) -> JsonValue:
    """Return a small schema that asks 2^40 times the same."""
    levels: dict[str, JsonValue] = {"d40": {"type": "integer"}}
    for level in range(40):
        below: JsonValue = {"$ref": f"#/$defs/d{level + 1}"}
        both: dict[str, JsonValue] = {
            "not": {"not": {"allOf": [below, below]}},
            "if": below,
        }
        here: dict[str, JsonValue] = {keyword: both.get(keyword, [below, below])}
        levels[f"d{level}"] = {**here, "then": below} if keyword == "if" else here
    return {"$ref": "#/$defs/d0", "$defs": levels}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        pytest.param(1, doubling("allOf"), id="allOf"),
        pytest.param("x", doubling("anyOf"), id="anyOf"),
        pytest.param(1, doubling("oneOf"), id="oneOf"),
        pytest.param(1, doubling("not"), id="not"),
        pytest.param(1, doubling("if"), id="if"),
        pytest.param(
            [{}] * 80_000,
            {"items": {"required": [f"p{i}" for i in range(60_000)]}},
            id="required",
        ),
        pytest.param(
            {f"p{i}": 0 for i in range(20_000)},
            {"patternProperties": {f"x{i}": True for i in range(20_000)}},
            id="patternProperties",
        ),
        pytest.param(
            {f"p{i}": 0 for i in range(20_000)},
            {
                "unevaluatedProperties": False,
                "allOf": [{"anyOf": [{"additionalProperties": True}] * 100}],
            },
            id="unevaluatedProperties",
        ),
        pytest.param(
            [0] * 100_000,
            {"unevaluatedItems": False, "allOf": [{"prefixItems": [True] * 99_999}] * 50},
            id="unevaluatedItems",
        ),
        pytest.param(
            [0] * 100_000, {"contains": {"anyOf": [{"type": "string"}] * 20}}, id="contains"
        ),
        pytest.param(LONG, {"allOf": [{"enum": [1]}] * 50_000}, id="enum"),
        pytest.param(LONG, {"allOf": [{"const": LONG}] * 50_000}, id="const"),
        pytest.param(LONG, {"pattern": "[a-z]{0,5000}y"}, id="pattern"),
    ],
)
def test_sec_3_a_check_that_would_stand_still_is_given_up(
    value: JsonValue, schema: JsonValue
) -> None:
    """The payload is no larger than one that is taken; nobody knows whether it fits."""
    with pytest.raises(InvalidPayload) as caught:
        check_instance(value, schema, what="payload")
    assert caught.value.problem == TOO_MUCH


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        pytest.param([0] * 130_000, {"items": {"type": "integer", "minimum": 0}}, id="items"),
        pytest.param(
            [{"a": i} for i in range(25_000)],
            {"items": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
            id="members",
        ),
        pytest.param(list(range(40_000)), {"uniqueItems": True}, id="uniqueItems"),
        pytest.param([{"a": i} for i in range(25_000)], {"uniqueItems": True}, id="unique members"),
        pytest.param(
            list(range(40_000)), {"items": {"enum": list(range(100_000))}}, id="a long enum"
        ),
        pytest.param(
            {f"p{i}": 0 for i in range(20_000)},
            {"unevaluatedProperties": False, "allOf": [{"patternProperties": {"^p": True}}]},
            id="unevaluatedProperties",
        ),
        pytest.param(
            [0] * 50_000,
            {
                "items": {"$ref": "#z"},
                "$defs": {"z": {"$anchor": "z"}} | {f"a{i}": {} for i in range(20_000)},
            },
            id="anchors",
        ),
        pytest.param(1, doubling("anyOf"), id="the first of two"),
        pytest.param("x" * 4000, {"pattern": "^.{1,4096}$"}, id="a counted text"),
        pytest.param(
            ["0f8fad5b-d9cb-469f-a165-70867728950e"] * 6_500,
            {"items": {"pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}},
            id="many ids",
        ),
    ],
)
def test_sus_2_a_large_payload_is_checked_to_its_end(value: JsonValue, schema: JsonValue) -> None:
    """The largest that is taken, by a schema as people write them."""
    check_instance(value, schema, what="payload")


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (["x"] * 60_000, {"items": {"type": "integer"}}),
        (LONG, {"allOf": [{"type": "integer"}] * 50_000}),
        (LONG, {"enum": [LONG[1:], LONG[2:]]}),
        ({LONG: 1}, {"additionalProperties": False}),
    ],
)
def test_sec_3_what_is_told_is_short(value: JsonValue, schema: JsonValue) -> None:
    """However many faults there are, and however long the value is."""
    with pytest.raises(InvalidPayload) as caught:
        check_instance(value, schema, what="payload")
    assert len(caught.value.problem) <= 600


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"allOf": [{}] * 300_000}, id="schemas"),
        pytest.param({"allOf": [{"type": "strng"}] * 50_000}, id="faults"),
        pytest.param({"allOf": [{"$ref": "#a"}] * 60_000}, id="references"),
        pytest.param({"required": [{}] * 250_000}, id="required"),
        pytest.param({"allOf": [{"pattern": f"a{i}"} for i in range(40_000)]}, id="patterns"),
        pytest.param(
            {"allOf": [{"pattern": rf"\w{{60}}{i}"} for i in range(40_000)]}, id="large patterns"
        ),
        pytest.param({"allOf": [{"pattern": f"({i}"} for i in range(40_000)]}, id="bad patterns"),
    ],
)
def test_sec_3_a_schema_that_takes_too_long_to_judge_is_refused(schema: JsonValue) -> None:
    """It is smaller than a Spec may be; the issue stands at the schema itself."""
    found = {issue.pointer: issue.message for issue in check_json_schema(schema, "/at")}
    assert found["/at"] == TOO_MUCH_TO_JUDGE


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "if"])
def test_pub_1_a_schema_that_asks_too_much_can_still_be_judged(keyword: str) -> None:
    """It is one; only a check with it does not end."""
    assert check_json_schema(doubling(keyword), "") == []


def test_sec_3_schemas_of_one_document_share_their_steps() -> None:
    """Each alone would be judged to its end."""
    schema: JsonValue = {"allOf": [{}] * 100}
    work = Work(20_000)
    assert check_json_schema(schema, "/a", work=work) == []
    found = [check_json_schema(schema, f"/{i}", work=work) for i in range(10)]
    assert [issue.message for issue in found[-1]] == [TOO_MUCH_TO_JUDGE]
    assert check_json_schema(schema, "/b", work=Work(20_000)) == []
