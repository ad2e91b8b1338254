"""One call over HTTP, whatever the format: ask, judge the status, read, let go (MOD-5, SEC-1)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn, Protocol

from psych_runtime._system import System
from psych_runtime.egress import Answer, Endpoint
from psych_runtime.errors import (
    EgressDenied,
    EgressFailed,
    ModelError,
    ModelPermanent,
    ModelTransient,
)
from psych_runtime.model._body import Failed, values
from psych_runtime.model._sse import Event
from psych_runtime.model.transient import judge_response
from psych_schema.model import ModelEvent

__all__ = ["Exchange", "Reader"]

_ERROR_BYTES = 64 << 10
_ERROR_SECONDS = 10.0


class Reader(Protocol):
    """Turns the values of one answer, in order, into events."""

    def read(self, value: object) -> Iterator[ModelEvent]:
        """Yield the events of the next value; what it tells before an error is not lost."""

    def end(self) -> Iterator[ModelEvent]:
        """Yield what is left, and the finish. ModelTransient: the answer has none."""

    def raise_error(self, error: object) -> NoReturn:
        """Raise what an error object inside the stream means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How the calls of one client are made.

    `path` is below the endpoint's base URL, `is_last` knows the event behind which nothing comes,
    `system` has the clock that a Retry-After date is compared with.
    """

    endpoint: Endpoint
    path: str
    accept: str
    is_last: Callable[[Event], bool]
    system: System

    async def events(
        self, body: bytes, reader: Reader, *, idle_seconds: float
    ) -> AsyncGenerator[ModelEvent]:
        """Send `body`, and yield what `reader` makes of the answer, as it comes.

        Raises:
            ModelTransient: no connection, a silent or broken stream, 408, 409, 425, 429, 5xx.
            ModelPermanent: the server refuses the request.
            ContextOverflow: the server says that the conversation is too long.
        """
        host = self.endpoint.host
        answer = await self._ask(body, idle_seconds)
        try:
            if not 200 <= answer.status < 300:
                raise await self._refusal(answer)
            if answer.compressed:
                raise ModelPermanent(f"{host} sent a compressed body, unasked")
            told = values(answer, host=host, idle_seconds=idle_seconds, is_last=self.is_last)
            async with aclosing(told):
                async for value in told:
                    if isinstance(value, Failed):
                        reader.raise_error(value.said)
                    for event in reader.read(value):
                        yield event
            for event in reader.end():
                yield event
        finally:
            await answer.aclose()

    async def _ask(self, body: bytes, idle_seconds: float) -> Answer:
        host = self.endpoint.host
        try:
            async with asyncio.timeout(idle_seconds):
                return await self.endpoint.post(
                    self.path, body, accept=self.accept, silence_seconds=idle_seconds
                )
        except TimeoutError:
            problem = f"{host} did not answer within {idle_seconds:g} s"
        except EgressFailed as error:
            problem = str(error)
        except EgressDenied as error:
            raise ModelPermanent(str(error)) from error
        raise ModelTransient(problem)

    async def _refusal(self, answer: Answer) -> ModelError:
        raw = b""
        if not answer.compressed:
            raw = await answer.read(bound_bytes=_ERROR_BYTES, seconds=_ERROR_SECONDS)
        return judge_response(
            answer.status,
            answer.headers,
            raw.decode(errors="replace"),
            host=self.endpoint.host,
            now=self.system.now(),
            redact=self.endpoint.redact,
        )
