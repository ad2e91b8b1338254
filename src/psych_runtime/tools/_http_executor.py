"""Sends the requests of one HTTP tool; it validates, asks and records nothing (TOOL-2).

A request goes out again only where a repetition harms nothing (RUN-1), any other once: right
before it somebody made sure that the Run is still ours (R-9). Each carries the call's id as its
Idempotency-Key, also after a crash.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from psych_runtime._system import System
from psych_runtime.egress import Outbound, OutboundRequest
from psych_runtime.errors import EgressDenied, EgressFailed, SecretError, SecretUnavailable
from psych_runtime.ports.secrets import SecretResolver
from psych_runtime.tools._http_answer import (
    PERHAPS,
    Reply,
    is_again,
    judge,
    retry_after_seconds,
)
from psych_runtime.tools._http_credential import Carried, carried
from psych_runtime.tools._http_request import HttpRequest, RequestPlan
from psych_runtime.tools.context import ToolContext
from psych_runtime.tools.executed import Executed, failed
from psych_runtime.tools.text import ended
from psych_schema.record import Failure, ToolResult
from psych_schema.spec import HttpTool

__all__ = ["READING", "HttpExecutor", "is_safe"]

READING: Final = frozenset({"GET", "HEAD"})
"""Methods that ask for nothing to be done."""

_REDIRECTS: Final = 5
_CONNECT_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONG_BYTES: Final = 64 * 1024  # a longer answer takes time to read: not the loop's
_ACCEPT: Final = "application/json, text/*;q=0.9, */*;q=0.1"


def is_safe(declared: HttpTool) -> bool:
    """Tell whether a call may be sent again: as the Spec says, else as the method means it."""
    said = declared.safe_to_retry
    return declared.method in READING if said is None else said


class _Tried(NamedTuple):
    """What one request brought, and after how long another may follow; None: never."""

    brought: object
    pause_seconds: float | None = None


class HttpExecutor:
    """Executes calls of `declared`, any number at once; it keeps nothing of any of them."""

    def __init__(
        self,
        declared: HttpTool,
        plan: RequestPlan,
        *,
        outbound: Outbound,
        secrets: SecretResolver,
        system: System,
        redirects: int = _REDIRECTS,
    ) -> None:
        self._redirects = redirects if declared.method in READING else 0
        self._tool = declared
        self._plan = plan
        self._outbound = outbound
        self._secrets = secrets
        self._system = system
        self._is_safe = is_safe(declared)

    async def execute(self, values: Mapping[str, object], context: ToolContext) -> object:
        """Run a call once; return its value, or an Executed that says why there is none."""
        request = self._plan.request(values)
        limit = asyncio.timeout(self._tool.timeout_seconds)
        try:
            async with limit:
                return await self._tries(request, context, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            return self._timed_out()

    async def _credential(self, context: ToolContext) -> Carried:
        """Return what this request carries; a secret that was rotated is used at once."""
        return await carried(self._tool.credential, self._secrets, context.scope)

    async def _tries(
        self,
        request: HttpRequest,
        context: ToolContext,
        limit: asyncio.Timeout,
    ) -> object:
        """Send the request until it is answered, or another would be one too many."""
        loop = asyncio.get_running_loop()
        for nth in range(self._tool.retries + 1):
            tried = await self._once(request, context)
            until = limit.when()
            if tried.pause_seconds is None or nth == self._tool.retries or until is None:
                return tried.brought
            pause = max(tried.pause_seconds, self._pause(nth))
            if loop.time() + pause >= until:
                return tried.brought
            await asyncio.sleep(pause)
        raise AssertionError("a loop that always returns")

    def _pause(self, nth: int) -> float:
        return _FIRST_PAUSE_SECONDS * float(1 << nth) * (0.5 + self._system.random())

    async def _once(self, request: HttpRequest, context: ToolContext) -> _Tried:
        try:
            credential = await self._credential(context)
        except SecretError as error:
            return _Tried(self._without_secret(error))
        try:
            answer = await self._outbound.send(
                context.scope, self._outgoing(request, credential, context)
            )
        except EgressDenied as error:
            return _Tried(self._denied(error, credential))
        except EgressFailed as error:
            again = self._is_safe and error.transient
            return _Tried(self._broken(error, credential), 0.0 if again else None)
        reply = Reply(answer.status, answer.headers, answer.body)
        after = retry_after_seconds(reply.headers, now=self._system.now())
        read = partial(
            judge,
            self._tool,
            reply,
            redactor=credential.redactor,
            is_safe=self._is_safe,
            after_seconds=after,
        )
        brought = await asyncio.to_thread(read) if len(reply.body) > _LONG_BYTES else read()
        if not (self._is_safe and is_again(reply.status)):
            return _Tried(brought)
        return _Tried(brought, after or 0.0)

    def _outgoing(
        self, request: HttpRequest, credential: Carried, context: ToolContext
    ) -> OutboundRequest:
        tool = self._tool
        headers = {**request.headers, **credential.headers}
        if not any(name.lower() == "accept" for name in headers):
            headers["Accept"] = _ACCEPT
        if tool.method not in READING:
            headers["Idempotency-Key"] = context.idempotency_key
        return OutboundRequest(
            method=tool.method,
            url=request.url,
            headers=headers,
            credentials=tuple(credential.headers),
            body=request.body,
            connect_seconds=min(_CONNECT_SECONDS, tool.timeout_seconds),
            total_seconds=tool.timeout_seconds + 1.0,  # the call's own clock ends it before
            max_response_bytes=tool.max_response_bytes,
            max_redirects=self._redirects,
        )

    def _denied(self, error: EgressDenied, credential: Carried) -> Executed:
        advice = "The operator has to allow it; the same call will fail again."
        if error.sent and not self._is_safe:
            advice = PERHAPS
        said = ended(credential.redactor.redact(f"{self._tool.name}: {error}"))
        return failed("egress_denied", f"{said} {advice}")

    def _broken(self, error: EgressFailed, credential: Carried) -> Executed:
        later = "it may work later" if error.transient else "it will fail again"
        if not error.sent:
            advice = f"Nothing was sent; {later}."
        elif not self._is_safe:
            advice = PERHAPS
        else:
            advice = f"{later.capitalize()}; do not repeat it at once."
        said = ended(credential.redactor.redact(f"{self._tool.name}: {error}"))
        return failed("egress_failed", f"{said} {advice}", transient=error.transient)

    def _without_secret(self, error: SecretError) -> Executed:
        said = ended(f"{self._tool.name} was not executed: {error}")
        transient = isinstance(error, SecretUnavailable)
        return failed(error.code, said, transient=transient)

    def _timed_out(self) -> Executed:
        limit = f"{self._tool.timeout_seconds:g} s"
        advice = "It may work later; do not repeat it at once." if self._is_safe else PERHAPS
        message = f"{self._tool.name} took longer than {limit} and was given up. {advice}"
        failure = Failure(code="tool_timeout", transient=False)
        return Executed("timed_out", ToolResult(message=message), failure)
