"""Calls any server that speaks the OpenAI chat/completions format, and streams its answer.

Keeps MOD-1, MOD-5, MOD-6, RUN-11, RUN-12, SEC-1 to SEC-3 and TOK-1 at this boundary.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Literal

from psych_runtime._system import System
from psych_runtime.egress import Answer, Bounds, Endpoint
from psych_runtime.errors import (
    EgressDenied,
    EgressFailed,
    ModelError,
    ModelPermanent,
    ModelTransient,
)
from psych_runtime.model._body import Failed, values
from psych_runtime.model._chunks import ChunkReader
from psych_runtime.model._request import Dialect, encode
from psych_runtime.model.transient import judge_response
from psych_schema.model import ModelEvent, ModelRequest

__all__ = ["OpenAIClient"]

_ERROR_BYTES = 64 << 10
_ERROR_SECONDS = 10.0
_NEW_FIELD_HOSTS = ("api.openai.com", ".openai.azure.com")


class OpenAIClient:
    """A ModelClient for OpenAI and the many servers that are compatible with it.

    One client serves any number of Runs and keeps nothing of any of them (RUN-12). It reaches the
    scheme, host and port of `base_url` and no other address, ignores proxies of the environment,
    and follows no redirect. Close it with `aclose()` when the process is done with it.

    Args:
        base_url: up to and without `/chat/completions`.
        api_key: sent as a bearer token; in no repr, error or log line. None sends none.
        models: the names that a Spec may use; None leaves that to the server.
        headers: sent with each request and kept as secret as the key.
        streaming: False asks for whole answers, from servers that cannot stream tool calls.
        include_usage: False for servers that refuse `stream_options`; usage is unknown then.
        max_tokens_field: what the server calls the bound on output; None is
            `max_completion_tokens` for OpenAI and Azure, `max_tokens` for others.
        max_connections: so many calls run at once; more wait up to a minute for their turn.
        connect_seconds: how long a connection may take.
        ssl_context: for a private certificate authority; None is the system's trust.
        system: whose clock a Retry-After date is compared with; None is the process's.

    Raises:
        EgressDenied: `base_url` is no http(s) URL, or carries credentials or a query.
        InvalidPayload: a header cannot carry the key.
    """

    def __init__(
        self,
        base_url: str = "https://api.openai.com/v1",
        *,
        api_key: str | None = None,
        models: Iterable[str] | None = None,
        headers: Mapping[str, str] | None = None,
        streaming: bool = True,
        include_usage: bool = True,
        max_tokens_field: Literal["max_completion_tokens", "max_tokens"] | None = None,
        max_connections: int = 256,
        connect_seconds: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        system: System | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            base_url,
            api_key=api_key,
            headers=headers,
            bounds=Bounds(max_connections=max_connections, connect_seconds=connect_seconds),
            ssl_context=ssl_context,
        )
        self._dialect = Dialect(
            max_tokens_field=max_tokens_field or _max_tokens_field(self._endpoint.host),
            streaming=streaming,
            include_usage=include_usage,
        )
        self._models = None if models is None else frozenset(models)
        self._system = system or System()

    def __repr__(self) -> str:
        """Name the address only."""
        return f"OpenAIClient({self._endpoint.url!r})"

    def models(self) -> frozenset[str] | None:
        """Return the names given at construction, None when every name will do."""
        return self._models

    async def aclose(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._endpoint.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Call the model and yield what it says as it says it; the last event is a Finish.

        Closing the generator ends the call and frees its connection.

        Raises:
            ModelTransient: no connection, a silent or broken stream, 408, 409, 425, 429, 5xx.
            ModelPermanent: the server refuses the request, or it cannot be written for it.
            ContextOverflow: the server says that the conversation is too long.
        """
        body = encode(request, self._dialect)
        answer = await self._ask(body, request.stream_idle_seconds)
        try:
            if not 200 <= answer.status < 300:
                raise await self._refusal(answer)
            if answer.compressed:
                raise ModelPermanent(f"{self._endpoint.host} sent a compressed body, unasked")
            async with aclosing(self._read(answer, request.stream_idle_seconds)) as events:
                async for event in events:
                    yield event
        finally:
            await answer.aclose()

    async def _ask(self, body: bytes, idle_seconds: float) -> Answer:
        accept = "text/event-stream" if self._dialect.streaming else "application/json"
        try:
            async with asyncio.timeout(idle_seconds):
                return await self._endpoint.post(
                    "chat/completions", body, accept=accept, silence_seconds=idle_seconds
                )
        except TimeoutError:
            problem = f"{self._endpoint.host} did not answer within {idle_seconds:g} s"
        except EgressFailed as error:
            problem = str(error)
        except EgressDenied as error:
            raise ModelPermanent(str(error)) from error
        raise ModelTransient(problem)

    async def _read(self, answer: Answer, idle_seconds: float) -> AsyncGenerator[ModelEvent]:
        host = self._endpoint.host
        reader = ChunkReader(host=host, redact=self._endpoint.redact)
        async with aclosing(values(answer, host=host, idle_seconds=idle_seconds)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Failed):
                    reader.raise_error(chunk.said)
                for event in reader.read(chunk):
                    yield event
        for event in reader.end():
            yield event

    async def _refusal(self, answer: Answer) -> ModelError:
        raw = b""
        if not answer.compressed:
            raw = await answer.read(bound_bytes=_ERROR_BYTES, seconds=_ERROR_SECONDS)
        return judge_response(
            answer.status,
            answer.headers,
            raw.decode(errors="replace"),
            host=self._endpoint.host,
            now=self._system.now(),
            redact=self._endpoint.redact,
        )


def _max_tokens_field(host: str) -> Literal["max_completion_tokens", "max_tokens"]:
    return "max_completion_tokens" if host.endswith(_NEW_FIELD_HOSTS) else "max_tokens"
