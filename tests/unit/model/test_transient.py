"""What a provider's refusal means: repeat, give up or compact (RUN-11, MOD-6)."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model.transient import (
    is_overflow,
    judge_event,
    judge_response,
    retry_after_seconds,
)

_NOW = datetime(2026, 11, 29, 20, 0, 0, tzinfo=UTC)


def _judge(status: int, body: str = "", **headers: str) -> ModelError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return judge_response(
        status,
        named,
        body,
        host="h",
        now=_NOW,
        redact=lambda text: text.replace("sk-canary", "[removed]"),
    )


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_run_11_a_status_that_passes_is_transient(status: int) -> None:
    """Another try may help."""
    error = _judge(status)
    assert isinstance(error, ModelTransient)
    assert error.status == status


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 501, 505])
def test_run_11_a_status_that_stays_is_permanent(status: int) -> None:
    """The same request would fail again."""
    error = _judge(status)
    assert type(error) is ModelPermanent
    assert error.status == status


def test_run_11_an_empty_account_is_permanent_though_429() -> None:
    """Waiting does not fill it."""
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    assert type(_judge(429, body)) is ModelPermanent


@pytest.mark.parametrize(("told", "kind"), [("true", ModelTransient), ("false", ModelPermanent)])
def test_run_11_the_server_s_own_advice_decides(told: str, kind: type[ModelError]) -> None:
    """It knows."""
    assert type(_judge(400, x_should_retry=told)) is kind
    assert type(_judge(503, x_should_retry=told)) is kind


def test_sec_1_a_redirect_is_permanent_and_says_what_to_do() -> None:
    """It is not followed."""
    error = _judge(308, location="http://elsewhere/")
    assert type(error) is ModelPermanent
    assert "base_url" in str(error)
    assert "elsewhere" not in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Sun, 29 Nov 2026 20:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 19:00:00 GMT"}, 0.0),
        (
            {
                "retry-after": "Sun, 29 Nov 2026 09:00:30 GMT",
                "date": "Sun, 29 Nov 2026 09:00:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0 Nov 0 3000000000:0"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_run_11_retry_after_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date, never negative, never more than a day."""
    assert retry_after_seconds(headers, now=_NOW) == seconds


@given(st.text(max_size=40))
def test_run_11_any_retry_after_is_read_or_ignored(value: str) -> None:
    """Foreign text never raises."""
    seconds = retry_after_seconds({"retry-after": value, "date": value}, now=_NOW)
    assert seconds is None or 0 <= seconds <= 86_400


@given(st.from_regex(r"(Sun, )?[0-9]{1,9} (Nov|Foo) -?[0-9]{1,9} [0-9:]{0,12} ?([+-][0-9]{1,9})?"))
def test_run_11_any_date_is_read_or_ignored(value: str) -> None:
    """Also one that no calendar has."""
    seconds = retry_after_seconds({"retry-after": value}, now=_NOW)
    assert seconds is None or 0 <= seconds <= 86_400


def test_run_11_retry_after_reaches_the_error() -> None:
    """The runtime waits so long."""
    error = _judge(429, retry_after="12")
    assert isinstance(error, ModelTransient)
    assert error.retry_after_seconds == 12.0


_OVERFLOWS = {
    "openai": "This model's maximum context length is 8192 tokens. However, your messages resulted "
    "in 9001 tokens. Please reduce the length of the messages.",
    "openai, newer": "Input tokens exceed the configured limit of 272000 tokens.",
    "responses": "Your input exceeds the context window of this model.",
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "anthropic, output": "input length and `max_tokens` exceed context limit: 190000 + 20000",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed "
    "(1048576).",
    "bedrock": "Input is too long for requested model.",
    "mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
    "maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "vllm": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "ollama": "the input length exceeds the context length",
    "tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097",
    "moonshot": "Invalid request: Your request exceeded model token limit: 8192",
    "dashscope": "Range of input length should be [1, 30720]",
    "lm studio": "The number of tokens to keep from the initial prompt is greater than the context "
    "length.",
    "vertex": "Unable to submit request because the input token count is 1100000 but model only "
    "supports up to 1048576. Reduce the input token count and try again.",
    "copilot": "prompt token count of 148183 exceeds the limit of 128000",
    "openai, characters": "Invalid 'messages[1].content': string too long. Expected a string with "
    "maximum length 10485760, but got a string with length 15000000 instead.",
    "openrouter": "This endpoint's maximum context length is 8192 tokens. You requested 9000.",
}


@pytest.mark.parametrize("provider", _OVERFLOWS)
def test_mod_6_overflow_is_recognised_by_the_provider_s_words(provider: str) -> None:
    """Compaction can help, another try cannot."""
    assert is_overflow(_OVERFLOWS[provider])
    error = _judge(400, json.dumps({"error": {"message": _OVERFLOWS[provider]}}))
    assert isinstance(error, ContextOverflow)
    assert error.status == 400


def test_mod_6_overflow_is_recognised_by_its_code() -> None:
    """Whatever the words."""
    body = '{"error": {"message": "too big", "code": "context_length_exceeded"}}'
    assert isinstance(_judge(400, body), ContextOverflow)
    body = '{"error": {"message": "too big", "type": "exceed_context_size_error", "code": 500}}'
    assert isinstance(_judge(500, body), ContextOverflow)


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000.",
        "Too many tokens, please wait before trying again.",
        "Rate limit reached: too many tokens per minute.",
        "context deadline exceeded",
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected at most 40 characters.",
        "Invalid value: 'tool'. Supported values are: 'system', 'assistant'.",
        "Incorrect API key provided.",
        "The model `gpt-9` does not exist.",
    ],
)
def test_mod_6_other_refusals_are_no_overflow(words: str) -> None:
    """Compaction would not help."""
    assert not is_overflow(words)


def test_mod_6_a_long_name_is_no_overflow_though_its_code_is_that_of_a_long_text() -> None:
    """Compacting shortens no id."""
    code = '"code": "string_above_max_length"'
    body = f'{{"error": {{"message": "Invalid \'tools[0].name\': string too long.", {code}}}}}'
    assert type(_judge(400, body)) is ModelPermanent


@pytest.mark.parametrize("status", [429, "429"])
def test_mod_6_a_rate_limit_in_tokens_inside_a_stream_is_no_overflow(status: int | str) -> None:
    """Its status says so, where it has one."""
    error = {"error": {"message": "too many tokens", "code": status}}
    judged = judge_event(error, host="h", redact=str)
    assert (type(judged), judged.status) == (ModelTransient, 429)


def test_mod_6_a_rate_limit_in_tokens_is_no_overflow() -> None:
    """It passes by itself."""
    assert type(_judge(429, '{"error": {"message": "too many tokens per minute"}}')) is (
        ModelTransient
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "boom"}}', "boom"),
        ('{"error": "boom"}', "boom"),
        ('{"message": "boom"}', "boom"),
        ('{"error": "Not Found", "message": "no such path"}', "no such path"),
        ('{"detail": "boom"}', "boom"),
        ('[{"error": {"message": "boom", "code": 400}}]', "boom"),
        ("<html>\n  bad gateway</html>", "<html> bad gateway</html>"),
        ("", "no reason given"),
        ('{"error": {"message": ', '{"error": {"message":'),
        ("[" * 100_000, "[[["),
    ],
)
def test_run_11_the_provider_s_words_are_kept(body: str, words: str) -> None:
    """In whatever shape they come."""
    assert str(_judge(500, body)).startswith(f"h answered 500: {words}")


def test_run_11_the_provider_s_words_are_bounded() -> None:
    """To one kilobyte, at a character."""
    message = str(_judge(500, json.dumps({"error": {"message": "ü" * 5000}})))
    assert 1020 <= len(message.encode()) <= 1024


def test_sec_2_the_key_is_taken_out_of_escaped_words() -> None:
    """Some servers escape what need not be escaped."""
    assert "canary" not in str(_judge(401, '{"error": {"message": "bad key sk\\u002dcanary"}}'))
    assert "canary" not in str(_judge(401, "bad key sk-canary"))


def test_log_5_half_a_character_in_a_message_is_replaced() -> None:
    """An error can always be written down."""
    assert str(_judge(500, '{"error": {"message": "\\ud83d"}}')).endswith("\ufffd")
