"""Sorts what a provider answers instead of a model's words: repeat, give up, or compact.

Shared by the adapters; keeps RUN-11 (Retry-After), MOD-5 and MOD-6.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime

from psych_runtime.core.http_dates import read_http_date
from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.model._json import mend, object_at, parse, text_at

__all__ = [
    "MESSAGE_BYTES",
    "is_overflow",
    "is_transient_status",
    "judge_event",
    "judge_response",
    "retry_after_seconds",
]

MESSAGE_BYTES = 1024
"""A provider's message is cut to so much."""

_LONGEST_SECONDS = 86_400.0

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_PERMANENT_SERVER_STATUSES = frozenset({501, 505})

_PERMANENT_CODES = frozenset(
    {
        "authentication_error",
        "billing_error",
        "billing_not_active",
        "content_filter",
        "content_policy_violation",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_prompt",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
        "permission_error",
    }
)

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "request_too_large",  # Anthropic: the bytes of the request
    }
)

# OpenAI bounds what is said in characters, too; the same code tells of a long name or id.
_LONG_MESSAGE = re.compile(r"messages\[\d+\]\.content\S*: string too long")

_RATE_TEXTS = ("rate limit", "rate_limit", "per min", "per day", "please wait", "throttl")

_OVERFLOW_TEXTS = (
    "maximum context length",  # OpenAI, Azure, DeepSeek, OpenRouter, vLLM, Mistral, Fireworks
    "context length exceeded",
    "context_length_exceeded",
    "exceeds the context length",  # Ollama
    "greater than the context length",  # LM Studio
    "exceed context limit",  # Anthropic, with max_tokens
    "exceeds the available context size",  # llama.cpp
    "context window",  # Cerebras, MiniMax, the Responses API
    "maximum model length",  # vLLM
    "maximum prompt length",  # xAI
    "prompt is too long",  # Anthropic, Fireworks
    "prompt too long",
    "prompt token count of",  # GitHub Copilot
    "input is too long",  # Bedrock
    "too many input tokens",  # Bedrock
    "too many tokens",  # Cohere
    "exceeds the maximum number of tokens allowed",  # Gemini
    "reduce the input token count",  # Vertex
    "tokens exceed the configured limit",  # OpenAI
    "exceeded model token limit",  # Moonshot
    "reduce the length of the messages",  # OpenAI, Groq
    "range of input length should be",  # DashScope
    "prompt exceeds max length",  # Zhipu
    "`inputs` tokens + `max_new_tokens` must be",  # Text Generation Inference, Together
    "`inputs` must have less than",  # Text Generation Inference
)


def judge_response(
    status: int,
    headers: Mapping[str, str],
    body: str,
    *,
    host: str,
    now: datetime,
    redact: Callable[[str], str],
) -> ModelError:
    """Return the error that an answer other than 2xx means.

    Args:
        headers: with names in lower case, or a mapping that does not care.
        body: decoded; its beginning will do.
        now: for a Retry-After that is a date without a Date beside it.
        redact: takes secrets out of the provider's words.
    """
    error = _error_object(body)
    said = redact(_message(error, body)) or "no reason given"
    message = _bounded(f"{host} answered {status}: {said}")
    codes = _codes(error)
    if status >= 400 and status != 429 and is_overflow(message, codes):
        return ContextOverflow(message, status=status)
    if 300 <= status < 400:
        remedy = "redirects are not followed: give the final address as base_url"
        return ModelPermanent(f"{host} answered {status}; {remedy}", status=status)
    told = headers.get("x-should-retry")
    transient = is_transient_status(status) and not codes & _PERMANENT_CODES
    if told in ("true", "false"):
        transient = told == "true"
    if transient:
        wait = retry_after_seconds(headers, now=now)
        return ModelTransient(message, status=status, retry_after_seconds=wait)
    return ModelPermanent(message, status=status)


def judge_event(error: object, *, host: str, redact: Callable[[str], str]) -> ModelError:
    """Return what an error object inside a stream means: transient unless it says otherwise."""
    error = object_at(error, "error") or error
    said = redact(_message(error, "")) or "an error without a reason"
    message = _bounded(f"{host} broke the stream off: {said}")
    codes = _codes(error)
    status = _status(error)
    if status != 429 and is_overflow(message, codes):
        return ContextOverflow(message, status=status)
    if codes & _PERMANENT_CODES or (status is not None and not is_transient_status(status)):
        return ModelPermanent(message, status=status)
    return ModelTransient(message, status=status)


def is_transient_status(status: int) -> bool:
    """Tell whether another try may help: 408, 409, 425, 429 and 5xx but 501 and 505."""
    if status in _TRANSIENT_STATUSES:
        return True
    return status >= 500 and status not in _PERMANENT_SERVER_STATUSES


def is_overflow(message: str, codes: frozenset[str] = frozenset()) -> bool:
    """Tell whether a provider's words mean that the conversation is too long (MOD-6)."""
    if codes & _OVERFLOW_CODES:
        return True
    lower = message.lower()
    if any(text in lower for text in _RATE_TEXTS):
        return False
    return any(text in lower for text in _OVERFLOW_TEXTS) or bool(_LONG_MESSAGE.search(lower))


def retry_after_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how long to wait, from 0 to one day; None when nothing readable is said.

    `retry-after-ms` goes before `retry-after`, which is seconds or a date; a date is compared
    with the answer's own Date, so that a wrong clock on either side does no harm.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _clamp(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return _clamp(seconds)
    until = read_http_date(value or "")
    if until is None:
        return None
    said = read_http_date(headers.get("date", ""))
    return _clamp((until - (said or now)).total_seconds())


def _clamp(seconds: float) -> float:
    return min(max(seconds, 0.0), _LONGEST_SECONDS)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _error_object(body: str) -> object:
    """Return the `error` of a body, or the whole of it where that is no object."""
    try:
        value = parse(body)
    except ValueError:
        return None
    if isinstance(value, list) and value:
        value = value[0]  # Gemini wraps it in an array
    return object_at(value, "error") or value


def _message(error: object, otherwise: str) -> str:
    """Return the words of an error: its message, a detail, itself, or the body as it came."""
    if isinstance(error, str):
        return error
    for key in ("message", "detail", "error", "msg"):
        said = text_at(error, key) or text_at(object_at(error, key), "message")
        if said:
            return said
    return " ".join(otherwise.split())


def _codes(error: object) -> frozenset[str]:
    return frozenset(code for key in ("code", "type") if (code := text_at(error, key)))


def _status(error: object) -> int | None:
    """Return the HTTP status that an error object names, as a number or in digits."""
    for key in ("code", "status", "status_code"):
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def _bounded(message: str) -> str:
    """Cut to the bound, at a character."""
    raw = mend(message).encode()
    return (
        raw.decode() if len(raw) <= MESSAGE_BYTES else raw[:MESSAGE_BYTES].decode(errors="ignore")
    )
