"""The formats side by side, for what must hold of each of our clients alike."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from psych_runtime.model import _anthropic_request as messages_format
from psych_runtime.model import _request as chat_format
from psych_runtime.model._anthropic_reader import MessageReader
from psych_runtime.model._chunks import ChunkReader
from psych_runtime.model.anthropic import AnthropicClient
from psych_runtime.model.openai import OpenAIClient
from psych_schema.common import Usage
from psych_schema.model import ModelEvent, ModelRequest, TextDelta, UsageReport
from tests.servers import anthropic_server as anthropic
from tests.servers import openai_server as openai
from tests.servers.openai_server import OpenAIServer, Reply, answer

__all__ = ["ANTHROPIC", "FORMATS", "OPENAI", "TOLD", "Client", "Format", "each_format"]

type Client = OpenAIClient | AnthropicClient

TOLD: Final[Sequence[ModelEvent]] = (
    UsageReport(usage=Usage(input_tokens=3, output_tokens=1)),
    TextDelta(text="Hel"),
)
"""What `hel` tells before it breaks off."""

_CHAT: Final = chat_format.Dialect(
    max_tokens_field="max_tokens", streaming=True, include_usage=True
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A client, the server that it calls, and how that says things.

    Args:
        path: of a request, below the base URL.
        key: the header that has the key, and what stands before it.
        write: values as the bytes of a stream, in each of `spellings`.
        say: the values that begin an answer with these texts.
        call: the values that begin an answer with a call of this tool.
        end: the values that end an answer well; behind the last one nothing comes.
        hel: an answer that has told TOLD.
        hi: an answer that is not streamed: `Hi` by `m-1`, for 2 tokens and 1.
        fault: the value of an error in the stream, with these words.
        refuse: a refusal with this status, these words and headers.
        unfinished: what an answer without an end is said to lack.
        lacks: what no server of this format is sent.
    """

    client: type[OpenAIClient] | type[AnthropicClient]
    server: type[OpenAIServer]
    path: str
    key: tuple[str, str]
    reader: Callable[..., ChunkReader | MessageReader]
    encode: Callable[[ModelRequest], bytes]
    write: Callable[..., bytes]
    spellings: Sequence[Mapping[str, str | bool]]
    say: Callable[..., Sequence[object]]
    call: Callable[[str], Sequence[object]]
    end: Sequence[object]
    hel: bytes
    hi: bytes
    fault: Callable[[str], object]
    refuse: Callable[..., Reply]
    unfinished: str
    lacks: tuple[str, object]

    def __str__(self) -> str:
        return self.client.__name__

    @property
    def finish(self) -> bytes:
        """What ends an answer well."""
        return self.write(*self.end)

    def whole(self, *texts: str, **spelling: str | bool) -> bytes:
        """Return a whole answer."""
        return self.write(*self.say(*texts), *self.end, **spelling)

    def answer(self, *texts: str) -> Reply:
        """Answer with these texts."""
        return answer(self.whole(*texts))


def _chat(request: ModelRequest) -> bytes:
    return chat_format.encode(request, _CHAT)


def _chat_refusal(status: int, words: str, headers: Mapping[str, str] | None = None) -> Reply:
    return openai.error(status, words, headers=headers)


OPENAI: Final = Format(
    client=OpenAIClient,
    server=OpenAIServer,
    path="chat/completions",
    key=("authorization", "Bearer "),
    reader=ChunkReader,
    encode=_chat,
    write=openai.sse,
    spellings=({"newline": "\n"}, {"newline": "\r\n"}, {"newline": "\r"}),
    say=lambda *texts: [openai.text_chunk(text) for text in texts],
    call=lambda name: [openai.call_chunk(0, id="a", name=name, arguments="{}")],
    end=(openai.finish_chunk(), "[DONE]"),
    hel=openai.sse(
        {**openai.text_chunk("Hel"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    ),
    hi=json.dumps(
        {
            "object": "chat.completion",
            "model": "m-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "Hi"},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 2, "completion_tokens": 1},
        }
    ).encode(),
    fault=lambda words: {"error": {"message": words}},
    refuse=_chat_refusal,
    unfinished="without a finish reason",
    lacks=("cache", "system"),
)


def _message(request: ModelRequest) -> bytes:
    return messages_format.encode(request, fields=messages_format.FIELDS, max_tokens=900)


def _message_refusal(status: int, words: str, headers: Mapping[str, str] | None = None) -> Reply:
    return anthropic.error(status, "api_error", words, headers=headers)


def _said(*texts: str) -> list[anthropic.Json]:
    told = [anthropic.delta(0, "text_delta", text=text) for text in texts]
    return [anthropic.start(), anthropic.block(0, "text", text=""), *told]


ANTHROPIC: Final = Format(
    client=AnthropicClient,
    server=anthropic.AnthropicServer,
    path="messages",
    key=("x-api-key", ""),
    reader=MessageReader,
    encode=_message,
    write=anthropic.events,
    spellings=({"named": True}, {"named": False}),
    say=_said,
    call=lambda name: [anthropic.block(0, "tool_use", id="a", name=name, input={})],
    end=(anthropic.stop(0), anthropic.message_delta(), {"type": "message_stop"}),
    hel=anthropic.events(anthropic.start(input_tokens=3, output_tokens=1), *_said("Hel")[1:]),
    hi=json.dumps(
        {
            "type": "message",
            "model": "m-1",
            "content": [{"type": "text", "text": "Hi"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 2, "output_tokens": 1},
        }
    ).encode(),
    fault=lambda words: {"type": "error", "error": {"type": "api_error", "message": words}},
    refuse=_message_refusal,
    unfinished="without a stop reason",
    lacks=("seed", 1),
)

FORMATS: Final = (OPENAI, ANTHROPIC)

each_format: Final = pytest.mark.parametrize("form", FORMATS, ids=str)
