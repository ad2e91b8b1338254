"""What providers that speak the chat/completions format say of a request that is too long (MOD-6).

Wordings are those that the providers publish or that are quoted publicly, with made-up figures.
"""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from psych_runtime.testing.model_contract.dialect import Kind, Refusal
from psych_runtime.testing.model_contract.wire import Message

__all__ = ["NEAR_OVERFLOWS", "OVERFLOWS"]


def _said(status: int, message: str, **more: JsonValue) -> Refusal:
    """Return the usual error object."""
    return _body(status, {"error": {"message": message, **more}})


def _body(status: int, body: JsonValue) -> Refusal:
    return Refusal(status, json.dumps(body, ensure_ascii=False).encode())


def _event(message: str, **more: JsonValue) -> Message:
    """Return the error object as a chunk."""
    return Message(json.dumps({"error": {"message": message, **more}}, ensure_ascii=False))


_INVALID: Final = "invalid_request_error"

OVERFLOWS: Final[Mapping[str, Refusal | Message]] = {
    "openai": _said(
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "128994 tokens (128242 in the messages, 752 in the functions). Please reduce the length "
        "of the messages or functions.",
        type=_INVALID,
        param="messages",
        code="context_length_exceeded",
    ),
    "openai, input limit": _said(
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
        "294817 tokens. Please reduce the length of the messages.",
        type=_INVALID,
        param="messages",
        code="context_length_exceeded",
    ),
    "openai, characters": _said(
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
        "10485760, but got a string with length 15000000 instead.",
        type=_INVALID,
        param="messages[1].content",
        code="string_above_max_length",
    ),
    "openai, in the stream": _event(
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        type=_INVALID,
        param="input",
        code="context_length_exceeded",
    ),
    "openai, only the code": _said(
        400, "The request is too big.", type=_INVALID, code="context_length_exceeded"
    ),
    "azure": _said(
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 9041 tokens "
        "(8041 in the messages, 1000 in the completion). Please reduce the length of the messages "
        "or completion.",
        type=_INVALID,
        param="messages",
        code="context_length_exceeded",
    ),
    "deepseek": _said(
        400,
        "This model's maximum context length is 131072 tokens. However, you requested 131134 "
        "tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the "
        "messages or completion.",
        type=_INVALID,
        param=None,
        code=_INVALID,
    ),
    "anthropic through a proxy": _said(
        400,
        'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":'
        '"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}',
        type=None,
        param=None,
        code="400",
    ),
    "anthropic, with max_tokens": _said(
        400,
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        type=_INVALID,
    ),
    "anthropic, in the stream": _event(
        "prompt is too long: 213462 tokens > 200000 maximum", type=_INVALID
    ),
    "vllm": _body(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested "
            "4231 tokens (3975 in the messages, 256 in the completion). Please reduce the length "
            "of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "vllm, prompt alone": _said(
        400,
        "The decoder prompt (length 5012) is longer than the maximum model length of 4096. Make "
        "sure that `max_model_len` is no smaller than the number of text tokens.",
        type="BadRequestError",
        code=400,
    ),
    "llama.cpp": _said(
        400,
        "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing "
        "it",
        type="exceed_context_size_error",
        code=400,
        n_prompt_tokens=13392,
        n_ctx=8192,
    ),
    "llama.cpp, as a server error": _said(
        500,
        "the request exceeds the available context size. try increasing the context size or "
        "enable context shift",
        type="exceed_context_size_error",
        code=500,
    ),
    "lm studio": _body(
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the "
            "context length. Try to load the model with a larger context length, or provide a "
            "shorter input"
        },
    ),
    "ollama": _said(
        400, "the input length exceeds the context length", type=_INVALID, param=None, code=None
    ),
    "gemini": _body(
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1200293) exceeds the maximum number of "
                    "tokens allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
    ),
    "vertex": _body(
        400,
        {
            "error": {
                "code": 400,
                "message": "Unable to submit request because the input token count is 1100000 but "
                "model only supports up to 1048576. Reduce the input token count and try again.",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    "mistral": _body(
        400,
        {
            "object": "error",
            "message": "Prompt contains 40353 tokens and 0 draft tokens, too large for model with "
            "32768 maximum context length",
            "type": "invalid_request_prompt",
            "param": None,
            "code": "3051",
        },
    ),
    "groq": _said(
        400,
        "Please reduce the length of the messages or completion.",
        type=_INVALID,
        param="messages",
        code="context_length_exceeded",
    ),
    "together": _said(
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 7900 "
        "`inputs` tokens and 1000 `max_new_tokens`",
        type=_INVALID,
        param=None,
        code=None,
    ),
    "text generation inference": _body(
        422,
        {
            "error": "Input validation error: `inputs` must have less than 4095 tokens. Given: "
            "5012",
            "error_type": "validation",
        },
    ),
    "bedrock": _body(400, {"message": "Input is too long for requested model."}),
    "bedrock through a proxy": _said(
        400,
        "An error occurred (ValidationException) when calling the Converse operation: The model "
        "returned the following errors: Input is too long for requested model.",
        type="BadRequestError",
    ),
    "cohere": _body(
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - "
            "received 5000. Try using a shorter prompt or a smaller max_tokens value."
        },
    ),
    "xai": _body(
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 "
            "tokens.",
        },
    ),
    "moonshot": _said(
        400,
        "Invalid request: Your request exceeded model token limit: 8192 (requested: 9041)",
        type=_INVALID,
    ),
    "dashscope": _said(
        400,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        type=_INVALID,
        code="invalid_parameter_error",
    ),
    "zhipu": _body(400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    "minimax": _said(
        400, "invalid params, context window exceeds limit (2013)", type="bad_request_error"
    ),
    "copilot": _said(
        400,
        "prompt token count of 148183 exceeds the limit of 128000",
        code="model_max_prompt_tokens_exceeded",
    ),
    "openrouter": _said(
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about "
        "40041 tokens (39017 of text input, 1024 in the output). Please reduce the length of "
        "either one.",
        code=400,
    ),
}
"""By provider; a Message is one that comes inside a stream."""

NEAR_OVERFLOWS: Final[Mapping[str, tuple[Refusal | Message, Kind]]] = {
    "openai, tokens per minute": (
        _said(
            429,
            "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit "
            "30000, Used 29050, Requested 2000. Please try again in 2.1s.",
            type="tokens",
            param=None,
            code="rate_limit_exceeded",
        ),
        "transient",
    ),
    "openai, quota": (
        _said(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            type="insufficient_quota",
            param=None,
            code="insufficient_quota",
        ),
        "permanent",
    ),
    "azure, token rate": (
        _said(
            429,
            "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of "
            "your current OpenAI S0 pricing tier. Please retry after 20 seconds.",
            code="429",
        ),
        "transient",
    ),
    "anthropic, input tokens per minute": (
        _said(
            429,
            "This request would exceed your organization's rate limit of 40,000 input tokens per "
            "minute. You can see the response headers for current usage. Please reduce the prompt "
            "length or the maximum tokens requested, or try again later.",
            type="rate_limit_error",
        ),
        "transient",
    ),
    "bedrock, throttled": (
        _body(429, {"message": "Too many tokens, please wait before trying again."}),
        "transient",
    ),
    "bedrock, throttled in the stream": (
        _event("Too many tokens, please wait before trying again.", type="throttlingException"),
        "transient",
    ),
    "a token rate in the stream": (
        _event(
            "Rate limit reached: too many tokens per minute, try again in 7s.",
            type="rate_limit_error",
            code="rate_limit_exceeded",
        ),
        "transient",
    ),
    "gemini, free tier": (
        _body(
            429,
            [
                {
                    "error": {
                        "code": 429,
                        "message": "You exceeded your current quota. Quota exceeded for metric: "
                        "generate_content_free_tier_input_token_count, limit: 250000. Please "
                        "retry in 14s.",
                        "status": "RESOURCE_EXHAUSTED",
                    }
                }
            ],
        ),
        "transient",
    ),
    "a gateway that gave up": (
        _said(504, "upstream request failed: context deadline exceeded", type="server_error"),
        "transient",
    ),
    "a gateway that gave up in the stream": (
        _event("Post upstream: context canceled", type="server_error"),
        "transient",
    ),
    "openai, too large an output": (
        _said(
            400,
            "max_tokens is too large: 100000. This model supports at most 16384 completion "
            "tokens, whereas you provided 100000.",
            type=_INVALID,
            param="max_tokens",
            code="invalid_value",
        ),
        "permanent",
    ),
    "groq, too large an output": (
        _said(
            400,
            "`max_tokens` must be less than or equal to `8192`, the maximum value for "
            "`max_tokens` is less than the `context_window` for this model",
            type=_INVALID,
            param="max_tokens",
        ),
        "permanent",
    ),
    "openai, too long an id": (
        _said(
            400,
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but got a string with length 52 instead.",
            type=_INVALID,
            param="messages[2].tool_calls[0].id",
            code="string_above_max_length",
        ),
        "permanent",
    ),
    "openai, too many tools": (
        _said(
            400,
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
            "an array with length 129 instead.",
            type=_INVALID,
            param="tools",
            code="array_above_max_length",
        ),
        "permanent",
    ),
}
"""What is none, with words of it, and what it is."""
