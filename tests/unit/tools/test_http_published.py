"""What is refused of an HTTP tool when its Spec is published, all at once (PUB-1, SPEC-4)."""

import pytest
from pydantic import JsonValue

from psych_runtime import InvalidSpec, Issue, Scope, ToolRegistry, publish, tool
from psych_runtime.core.spec_file import load_spec
from psych_runtime.store.memory import MemoryStore
from psych_schema.spec import AgentSpec

ACME = Scope(tenant="acme")
URL = "https://shop.example.com/orders"
LISTS: JsonValue = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}


def spec(**fields: JsonValue) -> dict[str, object]:
    """Return a Spec with one tool that has these fields."""
    one = {"kind": "http", "name": "t", "description": "d", "method": "POST", "url": URL} | fields
    return {
        "kind": "agent",
        "name": "a",
        "instructions": "i",
        "model": {"model": "m"},
        "tools": [one],
    }


def takes(*names: str, **more: JsonValue) -> JsonValue:
    """Return an input schema with these arguments, of any kind."""
    return {"type": "object", "properties": {name: {} for name in names}, **more}


async def issues(**fields: JsonValue) -> list[Issue]:
    """Return what publishing says is wrong."""
    try:
        await publish(MemoryStore(), spec(**fields), scope=ACME, check=ToolRegistry())
    except InvalidSpec as error:
        return list(error.issues)
    return []


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"url": "https://{a}/x", "input_schema": takes("a")}, "/url", "invalid_url"),
        ({"url": "https://u:p@a/"}, "/url", "invalid_url"),
        ({"url": URL + "?x=1"}, "/url", "invalid_url"),
        ({"url": URL + "/{a}"}, "/url", "unknown_argument"),
        ({"url": URL + "/{a}", "input_schema": takes("a")}, "/url", "optional_in_path"),
        ({"headers": {"X-A": "{b}"}}, "/headers/X-A", "unknown_argument"),
        ({"headers": {"X-A": "{"}}, "/headers/X-A", "invalid_template"),
        ({"headers": {"X A": "1"}}, "/headers/X A", "invalid_header"),
        ({"headers": {"X-A": "1\r\n2"}}, "/headers/X-A", "invalid_header"),
        ({"headers": {"X-A": "é"}}, "/headers/X-A", "invalid_header"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "/headers/x-a", "doubled_name"),
        ({"headers": {"Host": "evil"}}, "/headers/Host", "reserved_header"),
        ({"headers": {"content-length": "0"}}, "/headers/content-length", "reserved_header"),
        ({"headers": {"Idempotency-Key": "1"}}, "/headers/Idempotency-Key", "reserved_header"),
        ({"headers": {"Authorization": "x"}}, "/headers/Authorization", "reserved_header"),
        ({"headers": {"Cookie": "{c}"}, "input_schema": takes("c")}, "/headers/Cookie",
         "reserved_header"),
        ({"headers": {"X-Api-Key": "12345"}}, "/headers/X-Api-Key", "secret_in_spec"),
        ({"headers": {f"X-{n}": "1" for n in range(65)}}, "/headers", "too_long"),
        ({"query": {"api_key": "12345"}}, "/query/api_key", "secret_in_spec"),
        ({"body": {"auth": {"password": "12345"}}}, "/body/auth/password", "secret_in_spec"),
        ({"query": {"q": "{x}"}}, "/query/q", "unknown_argument"),
        ({"query": {"q": "a}"}}, "/query/q", "invalid_template"),
        ({"body": {"a": ["{x}"]}}, "/body/a/0", "unknown_argument"),
        ({"body": {"a/b": "{"}}, "/body/a~1b", "invalid_template"),
        ({"body": {}, "method": "GET"}, "/body", "body_not_allowed"),
        ({"output_schema": {}, "method": "HEAD"}, "/output_schema", "body_not_allowed"),
        ({"output_schema": False}, "/output_schema", "contradiction"),
        ({"description": " \n"}, "/description", "blank"),
        ({"risk": "write", "method": "HEAD"}, "/risk", "contradiction"),
        ({"body": {}, "input_schema": takes("a")}, "/input_schema/properties/a",
         "unused_argument"),
        ({"body": {}, "input_schema": takes(additionalProperties=True)},
         "/input_schema/additionalProperties", "unused_argument"),
        ({"credential": {"kind": "header", "secret": "k", "header": "Host"}},
         "/credential/header", "reserved_header"),
        ({"credential": {"kind": "header", "secret": "k", "header": "Proxy-Authorization"}},
         "/credential/header", "reserved_header"),
        ({"credential": {"kind": "header", "secret": "k", "header": "X-K"},
          "headers": {"x-k": "{a}"}, "input_schema": takes("a")},
         "/credential/header", "doubled_name"),
        ({"input_schema": []}, "/input_schema", "invalid_json_schema"),
        ({"input_schema": True}, "/input_schema", "invalid_json_schema"),
        ({"input_schema": {"type": "array"}}, "/input_schema/type", "invalid_json_schema"),
        ({"input_schema": {"properties": {}}}, "/input_schema/type", "invalid_json_schema"),
        ({"input_schema": takes("a b")}, "/input_schema/properties/a b", "invalid_name"),
        ({"input_schema": {"type": "object", "properties": {"a": {"type": "strnig"}}}},
         "/input_schema/properties/a/type", "invalid_json_schema"),
        ({"input_schema": {"type": "object", "properties": {"a": {"pattern": "(a+)+\\1"}}}},
         "/input_schema/properties/a/pattern", "invalid_json_schema"),
        ({"input_schema": {"type": "object",
                           "properties": {"a": {"type": "integer", "default": "x"}}}},
         "/input_schema/properties/a/default", "misfit"),
        ({"input_schema": takes("a", description="x" * 300_000)}, "/input_schema", "too_long"),
        ({"url": URL + "/{a}", "input_schema": {"type": "object", "required": ["a"],
          "properties": {"a": {"type": "array"}}}}, "/url", "no_text"),
        ({"headers": {"X-A": "{a}"}, "input_schema": {"type": "object",
          "properties": {"a": {"type": ["null", "object"]}}}}, "/headers/X-A", "no_text"),
        ({"output_schema": {"type": "objetc"}}, "/output_schema/type", "invalid_json_schema"),
        ({"output_schema": {"$ref": "https://a/b"}}, "/output_schema/$ref", "invalid_json_schema"),
        ({"query": {"tenant": "acme"}, "method": "DELETE", "input_schema": takes("tenant")},
         "/input_schema/properties/tenant", "doubled_name"),
        ({"input_schema": {"type": "object", "required": ["zz"]}}, "/input_schema/required",
         "unknown_argument"),
        ({"url": "https://2130706433/"}, "/url", "invalid_url"),
        ({"url": "https://0x7f.1/"}, "/url", "invalid_url"),
        ({"url": "https://127.1/"}, "/url", "invalid_url"),
        ({"url": "https://h.example.com./"}, "/url", "invalid_url"),
        ({"url": "https://-a.example.com/"}, "/url", "invalid_url"),
        ({"url": f"https://{'a' * 64}.example.com/"}, "/url", "invalid_url"),
        ({"name": "remember"}, "/name", "reserved_name"),
        ({"description": "a\0b"}, "/description", "nul_character"),
    ],
)  # fmt: skip
async def test_pub_1_what_cannot_work_is_refused_with_its_place(
    fields: dict[str, JsonValue], pointer: str, code: str
) -> None:
    """One thing wrong gives one issue, where it is."""
    found = await issues(**fields)
    assert [(issue.pointer, issue.code) for issue in found] == [(f"/tools/0{pointer}", code)]


def asks(**fields: JsonValue) -> JsonValue:
    """Return a lookup with these fields."""
    return {"url": f"{URL}/{{idempotency_key}}"} | fields


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"reconcile": asks(query={"q": "{nobody}"})}, "/query/q", "unknown_argument"),
        ({"reconcile": asks(url=URL + "/{a}")}, "/url", "unknown_argument"),
        ({"reconcile": asks(url=URL + "/{a}"), "input_schema": takes("a")}, "/url",
         "optional_in_path"),
        ({"reconcile": asks(), "input_schema": takes("idempotency_key")}, "", "doubled_name"),
        ({"reconcile": asks(), "safe_to_retry": True}, "", "contradiction"),
        ({"reconcile": asks(), "method": "GET"}, "", "contradiction"),
        ({"reconcile": asks(), "method": "HEAD"}, "", "contradiction"),
        ({"reconcile": asks(url="https://{idempotency_key}/x")}, "/url", "invalid_url"),
        ({"reconcile": asks(url=URL + "?key={idempotency_key}")}, "/url", "invalid_url"),
        ({"reconcile": asks(url="https://u:p@a/{idempotency_key}")}, "/url", "invalid_url"),
        ({"reconcile": asks(headers={"Idempotency-Key": "{idempotency_key}"})},
         "/headers/Idempotency-Key", "reserved_header"),
        ({"reconcile": asks(headers={"Authorization": "x"})}, "/headers/Authorization",
         "reserved_header"),
        ({"reconcile": asks(headers={"X A": "1"})}, "/headers/X A", "invalid_header"),
        ({"reconcile": asks(headers={"X-A": "1", "x-a": "2"})}, "/headers/x-a", "doubled_name"),
        ({"reconcile": asks(headers={"X-A": "{"})}, "/headers/X-A", "invalid_template"),
        ({"reconcile": asks(headers={"X-Api-Key": "12345"})}, "/headers/X-Api-Key",
         "secret_in_spec"),
        ({"reconcile": asks(query={"api_key": "12345"})}, "/query/api_key", "secret_in_spec"),
        ({"reconcile": asks(query={f"q{n}": "1" for n in range(65)})}, "/query", "too_long"),
        ({"reconcile": asks(headers={"x-k": "{idempotency_key}"}),
          "credential": {"kind": "header", "secret": "k", "header": "X-K"}}, "/headers",
         "doubled_name"),
        ({"reconcile": asks(url=URL + "/{a}"), "input_schema": LISTS}, "/url", "no_text"),
        ({"reconcile": asks(url=URL)}, "", "unused_argument"),
        ({"reconcile": asks(url=URL, query={"q": "1"}), "input_schema": takes("a")}, "",
         "unused_argument"),
    ],
)  # fmt: skip
async def test_pub_1_a_lookup_that_cannot_work_is_refused_with_its_place(
    fields: dict[str, JsonValue], pointer: str, code: str
) -> None:
    """One thing wrong gives one issue, where it is."""
    found = await issues(**fields)
    assert [(issue.pointer, issue.code) for issue in found] == [
        (f"/tools/0/reconcile{pointer}", code)
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"reconcile": asks()},
        {"reconcile": asks(), "method": "DELETE"},
        {"reconcile": asks(), "method": "GET", "safe_to_retry": False},
        {"reconcile": asks(query={"q": "{a}"}), "input_schema": takes("a")},
        {"reconcile": asks(url=URL + "/{a}"), "input_schema": takes("a", required=["a"])},
        {"reconcile": asks(url=URL, query={"key": "{idempotency_key}"})},
        {"reconcile": {"url": URL + "/{a}"},
         "input_schema": takes("a", "idempotency_key", required=["a"])},
        {"reconcile": asks(headers={"X-Key": "{idempotency_key}"})},
    ],
)  # fmt: skip
async def test_pub_1_a_lookup_that_works_is_published(fields: dict[str, JsonValue]) -> None:
    """Neighbours of what is refused."""
    assert await issues(**fields) == []


async def test_pub_1_everything_is_said_at_once_with_what_was_meant() -> None:
    """Three typing errors, three issues, three suggestions."""
    found = await issues(
        url=URL + "/{ordr}",
        headers={"X-T": "{tennant}"},
        body={"note": "{nota}"},
        input_schema=takes("order", "tenant", "note", required=["order"]),
    )
    named = {issue.pointer: issue.suggestion for issue in found if issue.suggestion}
    assert named == {
        "/tools/0/url": "order",
        "/tools/0/headers/X-T": "tenant",
        "/tools/0/body/note": "note",
    }


async def test_spec_4_unknown_fields_and_methods_are_refused_with_a_suggestion() -> None:
    """As in every Spec."""
    found = await issues(time_out_seconds=3, method="PSOT")
    assert {issue.suggestion for issue in found} == {"timeout_seconds", "POST"}


async def test_sec_2_a_refused_secret_is_not_repeated() -> None:
    """Neither where it looks like one nor where it stands in place of a name."""
    wrong: list[dict[str, JsonValue]] = [
        {"headers": {"X-Api-Key": "s3cr3t canary"}},
        {"credential": {"kind": "bearer", "secret": "s3cr3t canary"}},
        {"url": "https://u:s3cr3t@a/"},
    ]
    for fields in wrong:
        found = await issues(**fields)
        assert found
        assert "s3cr3t" not in repr(found)


async def test_pub_1_a_code_tool_of_the_same_name_is_refused() -> None:
    """The model could not tell them apart."""

    @tool
    def t() -> None:
        """Do."""

    registry = ToolRegistry()
    registry.register(t)
    both = spec()
    assert isinstance(both["tools"], list)
    both["tools"].append({"kind": "code", "name": "t"})
    with pytest.raises(InvalidSpec) as caught:
        await publish(MemoryStore(), both, scope=ACME, check=registry)
    assert {issue.code for issue in caught.value.issues} == {"doubled_name"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"url": "http://127.0.0.1:8080/"},
        {"query": {"page_token": "{t}"}, "input_schema": takes("t")},
        {"headers": {"X-Token": "{t}"}, "input_schema": takes("t")},
        {"body": {"a": "{t}", "b": "{{t}}"}, "input_schema": takes("t")},
        {"method": "DELETE", "body": {"why": "{t}"}, "input_schema": takes("t")},
        {"input_schema": {}},
        {"credential": {"kind": "header", "secret": "a/b", "header": "Cookie"}},
    ],
)
async def test_pub_1_what_works_is_published(fields: dict[str, JsonValue]) -> None:
    """Neighbours of what is refused."""
    assert await issues(**fields) == []


def test_spec_4_yaml_errors_have_line_and_column() -> None:
    """A misspelt field of a tool stands where it was written."""
    text = """\
kind: agent
name: a
instructions: i
model: {model: m}
tools:
  - kind: http
    name: t
    description: d
    methd: GET
    url: https://a/
"""
    with pytest.raises(InvalidSpec) as caught:
        load_spec(text)
    said = {(issue.line, issue.column, issue.suggestion) for issue in caught.value.issues}
    assert (9, 5, "method") in said


def test_spec_4_what_a_template_says_is_judged_in_its_file() -> None:
    """Before anything is published, and where it stands, whatever the order of the tools."""
    text = """\
kind: agent
name: a
instructions: i
model: {model: m}
tools:
  - {kind: http, name: z, description: d, method: GET, url: 'https://{host}/'}
  - {kind: http, name: a, description: d, method: GET, url: 'https://a/', query: {q: '{x}'}}
"""
    with pytest.raises(InvalidSpec) as caught:
        load_spec(text)
    said = [(issue.code, issue.line, issue.column) for issue in caught.value.issues]
    assert said == [("invalid_url", 6, 61), ("unknown_argument", 7, 86)]


async def test_pub_2_secrets_are_listed_as_unchecked() -> None:
    """Whether there is one, only its use can tell."""
    made = await publish(
        MemoryStore(), spec(credential={"kind": "bearer", "secret": "shop/key"}), scope=ACME
    )
    assert any("shop/key" in one for one in made.unchecked)


def test_spec_1_yaml_and_python_make_the_same_tool() -> None:
    """The defaults are part of what it is."""
    text = """\
kind: agent
name: a
instructions: i
model: {model: m}
tools:
  - {kind: http, name: t, description: d, method: POST, url: 'https://shop.example.com/orders'}
"""
    assert load_spec(text) == AgentSpec.model_validate(spec())
