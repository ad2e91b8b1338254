"""Calls any server that speaks the OpenAI chat/completions format, and streams its answer.

Keeps MOD-1, MOD-5, MOD-6, RUN-11, RUN-12, SEC-1 to SEC-3 and TOK-1 at this boundary.
"""

import ssl
from collections.abc import Iterable, Mapping
from typing import Literal

from psych_runtime._system import System
from psych_runtime.egress import Bounds, Endpoint
from psych_runtime.model._chunks import ChunkReader
from psych_runtime.model._client import Client
from psych_runtime.model._exchange import Exchange, Reader
from psych_runtime.model._request import FIELDS, OWN, Dialect, ReasoningField, encode
from psych_runtime.model._sse import Event
from psych_runtime.model._takes import fields_without
from psych_runtime.ports.model import ModelField, Takes
from psych_schema.model import ModelRequest

__all__ = ["OpenAIClient"]

_NEW_FIELD_HOSTS = ("api.openai.com", ".openai.azure.com")


class OpenAIClient(Client):
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
        without: fields of a Spec that the server does not have, `output` for many; a Spec that
            sets one is refused when it is published.
        reasoning_field: under which name what the model thought goes back to it, for servers that
            want it; None sends none.
        max_connections: so many calls run at once; more wait up to a minute for their turn.
        connect_seconds: how long a connection may take.
        ssl_context: for a private certificate authority; None is the system's trust.
        system: whose clock a Retry-After date is compared with; None is the process's.

    Raises:
        EgressDenied: `base_url` is no http(s) URL, or carries credentials or a query.
        InvalidPayload: a header cannot carry the key.
        InvalidArgument: `without` names something else than a field that this client has.
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
        without: Iterable[ModelField] = (),
        reasoning_field: ReasoningField | None = None,
        max_connections: int = 256,
        connect_seconds: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        system: System | None = None,
    ) -> None:
        endpoint = Endpoint(
            base_url,
            api_key=api_key,
            headers=headers,
            bounds=Bounds(max_connections=max_connections, connect_seconds=connect_seconds),
            ssl_context=ssl_context,
        )
        self._dialect = Dialect(
            max_tokens_field=max_tokens_field or _max_tokens_field(endpoint.host),
            streaming=streaming,
            include_usage=include_usage,
            reasoning_field=reasoning_field,
            fields=fields_without(FIELDS, without),
        )
        exchange = Exchange(
            endpoint=endpoint,
            path="chat/completions",
            accept="text/event-stream" if streaming else "application/json",
            is_last=_is_last,
            system=system or System(),
        )
        super().__init__(exchange, models=models)

    def takes(self) -> Takes:
        """Return what is sent on: all but `cache`, and what `without` named."""
        return Takes(self._dialect.fields, OWN)

    def _encode(self, request: ModelRequest) -> bytes:
        return encode(request, self._dialect)

    def _reader(self) -> Reader:
        return ChunkReader(host=self._endpoint.host, redact=self._endpoint.redact)


def _is_last(event: Event) -> bool:
    return event.data.strip() == "[DONE]"


def _max_tokens_field(host: str) -> Literal["max_completion_tokens", "max_tokens"]:
    return "max_completion_tokens" if host.endswith(_NEW_FIELD_HOSTS) else "max_tokens"
