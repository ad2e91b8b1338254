"""No secret is echoed: not as a value, not in a source line (SPEC-4)."""

import json

import pytest

from psych_runtime import load_spec
from psych_runtime.core._redact import is_secret_name, mask_line, shown
from psych_runtime.errors import InvalidSpec
from tests.unit.spec.documents import issues, minimal

SECRETS = (
    "sk-proj-abcdefghijklmnop",
    "ghp_abcdefghijklmnopqrst",
    "xoxb-1234567890-abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "Bearer abcdef123456",
    "-----BEGIN PRIVATE KEY-----",
    "postgresql://app:hunter2@db/prod",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "0123456789abcdef0123456789abcdef",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_spec_4_what_looks_like_a_secret_is_not_echoed(secret: str) -> None:
    """Wherever it was pasted by mistake; the issue is still there."""
    wrong = minimal(name=secret, model={"model": "m", "temperature": secret}, tools=[secret])
    yaml_text = "\n".join(
        (
            "kind: agent",
            f'name: "{secret}"',
            "instructions: x",
            f'model: {{model: m, x: "{secret}"}}',
        )
    )
    for value in (wrong, json.dumps(wrong)):
        text = "\n".join(issue.text("spec") for issue in issues(value))
        assert "/model/temperature: must be a number" in text
        assert secret not in text
        assert "hunter2" not in text
    with pytest.raises(InvalidSpec) as caught:
        load_spec(yaml_text)
    assert "/model/x: unknown field" in str(caught.value)
    assert secret not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "API-KEY",
        "x-api-key",
        "password",
        "dbPassword",
        "token",
        "access_token",
        "Authorization",
        "auth",
        "client_secret",
        "cookie",
        "private_key",
        "credentials",
        "OPENAI_API_KEY",
    ],
)
def test_spec_4_what_stands_under_such_a_name_is_not_echoed(name: str) -> None:
    """Also when the value looks like nothing."""
    assert is_secret_name(name)
    with pytest.raises(InvalidSpec) as caught:
        load_spec(
            f"kind: agent\nname: x\n{name}: hunter2, really\ninstructions: 3\n"
            f"model: {{model: m, {name}: hunter2}}\n"
        )
    text = str(caught.value)
    assert f"/{name}: unknown field" in text
    assert f"/model/{name}: unknown field" in text
    assert "hunter2" not in text
    assert "really" not in text


@pytest.mark.parametrize(
    "name",
    ["max_output_tokens", "tokens", "key", "name", "author", "instructions", "tokenizer", "keys"],
)
def test_spec_4_ordinary_names_are_no_secrets(name: str) -> None:
    """A number of tokens is what somebody wants to read."""
    assert not is_secret_name(name)


def test_spec_4_ordinary_values_are_shown() -> None:
    """Short, as JSON; lists and mappings by their size; nothing a terminal would obey."""
    assert shown("gpt-4o-mini-2024-07-18") == '"gpt-4o-mini-2024-07-18"'
    assert shown("my-long-tool-name-with-number-42") == '"my-long-tool-name-with-number-42"'
    assert shown("x" * 61) == '"' + "x" * 60 + '..."'
    assert shown("a\n\x1b[31m\u202e") == '"a\\n\\u001b[31m\N{REPLACEMENT CHARACTER}"'
    assert shown({"api_key": "x"}) == "a mapping of 1"
    assert shown([1, 2]) == "a list of 2"
    assert [shown(value) for value in (None, True, 3, 0.5)] == ["null", "true", "3", "0.5"]
    assert shown(10**300) == "a number of many digits"


def test_spec_4_a_masked_line_keeps_its_length() -> None:
    """So that the caret below it stays right."""
    lines = {
        'token: "abc" # it': "token: ***** # it",
        "a: {password: x, b: 1}": "a: {password: ********",
        '{"api_key": "a\\"b", "n": 1}': '{"api_key": ******, "n": 1}',
        "url: https://me:pw@host/": "url: https://*****@host/",
        "name: plain": "name: plain",
        "a\x1b[0m: 1": "a\N{REPLACEMENT CHARACTER}[0m: 1",
    }
    assert {line: mask_line(line) for line in lines} == lines


def test_spec_4_a_long_line_is_cut_around_the_caret() -> None:
    """A minified file shows what is near; the column is the real one."""
    text = json.dumps(minimal(description="d" * 5_000, instructions=3))
    found = issues(text)[0]
    assert found.column == text.index("3}") + 1 if "3}" in text else text.index(": 3") + 3
    assert found.source is not None
    assert found.caret is not None
    assert len(found.source) <= 121
    assert found.source[found.caret - 1] == "3"
