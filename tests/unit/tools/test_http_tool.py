"""What the one path knows of an HTTP tool (TOOL-2)."""

import json

import pytest
from pydantic import JsonValue

from psych_runtime import Runtime
from psych_runtime.store.memory import MemoryStore
from psych_runtime.testing import FakeModel
from psych_runtime.tools.arguments import Arguments, Malformed, read_arguments
from psych_runtime.tools.registered import RegisteredTool
from psych_schema.spec import AgentSpec, HttpTool, ModelRef

SCHEMA: JsonValue = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "fields": {"type": "array", "items": {"$ref": "#/$defs/Field"}},
        "limit": {"type": "integer", "default": 20},
    },
    "required": ["order"],
    "$defs": {"Field": {"enum": ["state", "price"]}},
}


def made(**fields: JsonValue) -> RegisteredTool:
    """Return the tool that a Runtime makes of a declaration."""
    whole = {
        "kind": "http",
        "name": "get_order",
        "description": "Get an order.",
        "method": "GET",
        "url": "https://shop.example.com/orders/{order}",
        "input_schema": SCHEMA,
    }
    declared = HttpTool.model_validate_json(json.dumps(whole | fields))
    runtime = Runtime(store=MemoryStore(), model=FakeModel())
    model = ModelRef(model="m")
    spec = AgentSpec(name="a", instructions="i", model=model, tools=[declared])
    assert runtime.missing(spec) == ()
    assert runtime.granted(spec)["get_order"] is runtime.granted(spec)["get_order"]
    return runtime.granted(spec)["get_order"]


def problem(tool: RegisteredTool, text: str) -> str:
    """Return what a model is told of arguments that do not fit."""
    read = read_arguments(tool, text)
    assert isinstance(read, Malformed)
    return read.message


def test_tool_2_identity_and_definition() -> None:
    """The model gets the schema, closed; the rest is not its business."""
    tool = made()
    assert (tool.identity, tool.facts.identity) == ("http:get_order", "http:get_order")
    assert isinstance(SCHEMA, dict)
    assert tool.definition.parameters == SCHEMA | {"additionalProperties": False}
    assert "shop.example.com" not in tool.definition.model_dump_json()


def test_tool_2_a_schema_that_says_that_it_is_open_stays_open() -> None:
    """And one that is not there takes nothing."""
    nothing: JsonValue = {"type": "object", "properties": {}, "additionalProperties": False}
    open_schema: JsonValue = {"type": "object", "additionalProperties": True}
    url = "https://shop.example.com/orders"
    assert made(url=url, input_schema=None).definition.parameters == nothing
    assert made(url=url, input_schema=open_schema).definition.parameters == open_schema


@pytest.mark.parametrize(
    ("fields", "risk", "safe"),
    [
        ({"method": "GET"}, "read_only", True),
        ({"method": "HEAD"}, "read_only", True),
        ({"method": "PUT"}, "write", False),
        ({"method": "DELETE"}, "write", False),
        ({"method": "POST"}, "write", False),
        ({"method": "POST", "risk": "read_only", "safe_to_retry": True}, "read_only", True),
        ({"method": "GET", "risk": "destructive", "safe_to_retry": False}, "destructive", False),
    ],
)
def test_run_1_the_method_says_what_a_call_may_do_unless_the_spec_does(
    fields: dict[str, JsonValue], risk: str, safe: bool
) -> None:
    """Idempotent by the book is not enough: services differ."""
    tool = made(**fields)
    assert (tool.risk, tool.safe_to_retry) == (risk, safe)
    assert tool.annotations == {risk.replace("_", "-")}


def test_app_1_the_hash_covers_everything_that_decides_what_is_done() -> None:
    """Consent to a call is consent to this request and no other."""
    changes: list[dict[str, JsonValue]] = [
        {},
        {"url": "https://evil.example.com/orders/{order}"},
        {"method": "DELETE"},
        {"headers": {"X-A": "1"}},
        {"query": {"a": "1"}},
        {"method": "POST", "body": {"a": "{order}", "b": "{fields}", "c": "{limit}"}},
        {"output_schema": {}},
        {"credential": {"kind": "bearer", "secret": "a"}},
        {"credential": {"kind": "bearer", "secret": "b"}},
        {"risk": "write"},
        {"safe_to_retry": False},
        {"retries": 1},
        {"timeout_seconds": 1},
        {"max_response_bytes": 1},
        {"description": "x"},
    ]
    assert len({made(**fields).hash for fields in changes}) == len(changes)


def test_mod_2_arguments_are_judged_by_the_schema() -> None:
    """Where they are wrong, and what was expected; in at most a kilobyte."""
    tool = made()
    assert "order is required" in problem(tool, "{}")
    assert "order is required" in problem(tool, '{"order_": 1}')
    assert "did you mean 'order'" in problem(tool, '{"order": 1, "ordr": 1}')
    assert "/fields/0: must be one of" in problem(tool, '{"order": 1, "fields": ["x"]}')
    assert "nothing instead of an object" in problem(tool, "")
    assert "an array instead of an object" in problem(tool, "[]")
    assert "not readable as JSON" in problem(tool, '{"order": 1')
    many = json.dumps({f"x{n}": "y" * 500 for n in range(100)})
    assert len(problem(tool, many).encode()) <= 1024


def test_mod_2_what_fits_comes_with_the_defaults() -> None:
    """The digest is of what was given, as with every tool."""
    read = read_arguments(made(), '{"fields": ["price"], "order": 7.0}')
    assert isinstance(read, Arguments)
    assert read.effective == read.values == {"order": 7, "fields": ["price"], "limit": 20}
    assert read.digest_text == '{"fields":["price"],"order":7}'
