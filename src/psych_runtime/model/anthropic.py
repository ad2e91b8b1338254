"""Calls the Anthropic Messages API, or a server that speaks its format, and streams its answer.

Keeps MOD-1, MOD-5, MOD-6, MOD-9, RUN-11, RUN-12, SEC-1 to SEC-3 and TOK-1 at this boundary.
"""

import ssl
from collections.abc import Iterable, Mapping

from psych_runtime._system import System
from psych_runtime.egress import Bounds, Endpoint
from psych_runtime.errors import InvalidArgument
from psych_runtime.model._anthropic_reader import MessageReader, is_last
from psych_runtime.model._anthropic_request import FIELDS, OWN, encode
from psych_runtime.model._client import Client
from psych_runtime.model._exchange import Exchange, Reader
from psych_runtime.model._takes import fields_without
from psych_runtime.ports.model import ModelField, Takes
from psych_schema.model import ModelRequest

__all__ = ["AnthropicClient"]

_VERSION = "2023-06-01"


class AnthropicClient(Client):
    """A ModelClient for the Anthropic Messages API and servers that are compatible with it.

    One client serves any number of Runs and keeps nothing of any of them (RUN-12). It reaches the
    scheme, host and port of `base_url` and no other address, ignores proxies of the environment,
    and follows no redirect. Close it with `aclose()` when the process is done with it.

    Args:
        base_url: up to and without `/messages`.
        api_key: sent as `x-api-key`; in no repr, error or log line. None sends none.
        models: the names that a Spec may use; None leaves that to the server.
        headers: sent with each request and kept as secret as the key: `anthropic-beta`, or
            `Authorization` for servers that want the key there.
        max_tokens: the bound on output of a Spec that sets none; the format demands one.
        without: fields of a Spec that the server does not have; a Spec that sets one is refused
            when it is published.
        max_connections: so many calls run at once; more wait up to a minute for their turn.
        connect_seconds: how long a connection may take.
        ssl_context: for a private certificate authority; None is the system's trust.
        system: whose clock a Retry-After date is compared with; None is the process's.

    Raises:
        EgressDenied: `base_url` is no http(s) URL, or carries credentials or a query.
        InvalidPayload: a header cannot carry the key.
        InvalidArgument: `without` names something else than a field that this client has, or
            `max_tokens` is less than 1.
    """

    def __init__(
        self,
        base_url: str = "https://api.anthropic.com/v1",
        *,
        api_key: str | None = None,
        models: Iterable[str] | None = None,
        headers: Mapping[str, str] | None = None,
        max_tokens: int = 16_384,
        without: Iterable[ModelField] = (),
        max_connections: int = 256,
        connect_seconds: float = 10.0,
        ssl_context: ssl.SSLContext | None = None,
        system: System | None = None,
    ) -> None:
        if max_tokens < 1:
            raise InvalidArgument(what="max_tokens", problem="an answer has at least one token")
        key = {} if api_key is None else {"x-api-key": api_key}
        endpoint = Endpoint(
            base_url,
            headers={**key, **(headers or {})},
            plain_headers={"anthropic-version": _VERSION},
            bounds=Bounds(max_connections=max_connections, connect_seconds=connect_seconds),
            ssl_context=ssl_context,
        )
        self._fields = fields_without(FIELDS, without)
        self._max_tokens = max_tokens
        exchange = Exchange(
            endpoint=endpoint,
            path="messages",
            accept="text/event-stream",
            is_last=is_last,
            system=system or System(),
        )
        super().__init__(exchange, models=models)

    def takes(self) -> Takes:
        """Return what is sent on: all but `seed`, and what `without` named."""
        return Takes(self._fields, OWN)

    def _encode(self, request: ModelRequest) -> bytes:
        return encode(request, fields=self._fields, max_tokens=self._max_tokens)

    def _reader(self) -> Reader:
        return MessageReader(host=self._endpoint.host, redact=self._endpoint.redact)
