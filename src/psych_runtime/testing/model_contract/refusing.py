"""A refusal is sorted: repeat, give up or compact; with status and Retry-After (RUN-11, MOD-6)."""

import math
from collections.abc import Mapping
from datetime import timedelta
from email.utils import format_datetime
from typing import Final

from psych_runtime._system import System
from psych_runtime.errors import ContextOverflow, ModelError, ModelPermanent, ModelTransient
from psych_runtime.testing.model_contract._check import Harness, check, same
from psych_runtime.testing.model_contract._http import answer, refuse
from psych_runtime.testing.model_contract._scene import (
    Outcome,
    ask,
    hello,
    outcome,
    scene,
    stream,
)
from psych_runtime.testing.model_contract._server import Flood, Script, Stop
from psych_runtime.testing.model_contract.dialect import Refusal
from psych_runtime.testing.model_contract.wire import Message

__all__ = [
    "a_refusal_in_any_shape_keeps_its_status",
    "a_refusal_that_stalls_is_no_reason_to_wait",
    "a_refusal_without_end_is_cut",
    "a_request_that_is_too_long_is_an_overflow",
    "a_retry_after_that_says_nothing_is_ignored",
    "a_status_that_passes_is_worth_another_try",
    "a_status_that_stays_is_permanent",
    "retry_after_may_be_a_date",
    "retry_after_may_be_seconds",
    "what_only_speaks_of_tokens_is_no_overflow",
]

_PERMANENT: Final = (400, 401, 403, 404, 413, 422)
_TRANSIENT: Final = (408, 409, 429, 500, 502, 503, 504, 529)
_FLOOD_BYTES: Final = 32 << 20
_SHAPES: Final = (
    b"",
    b"Bad Gateway",
    b"<html><body><h1>502 Bad Gateway</h1></body></html>",
    b"null",
    b"7",
    b"[]",
    b'"no"',
    b'{"error": null}',
    b'{"error": []}',
    b'{"error": "no"}',
    b'{"error": {"message": {"a": 1}, "code": [], "type": 7, "status": {}}}',
    b'[{"error": {"message": "no"}}]',
    b'{"message": ["no"], "detail": [{"msg": "no"}]}',
    b'{"error": {"message": "cut',
    b'{"error": {"message": "\\ud83d"}}',
    b'{"error": {"message": "\xff\xfe"}}',
    b"[" * 100_000,
)


@check("RUN-11")
async def a_status_that_stays_is_permanent(harness: Harness) -> None:
    """The same request would fail again; the status comes along."""
    scripts = [refuse(harness.dialect.refusal(status, "No.")) for status in _PERMANENT]
    async with scene(harness, *scripts) as (_, client):
        for status in _PERMANENT:
            failure = _refused(await ask(client), ModelPermanent, status)
            if status != 413:  # some take any request that is too large for an overflow
                same(type(failure), ModelPermanent, f"the error of {status}")


@check("RUN-11")
async def a_status_that_passes_is_worth_another_try(harness: Harness) -> None:
    """The status comes along; without a Retry-After nobody invents one."""
    scripts = [refuse(harness.dialect.refusal(status, "Later.")) for status in _TRANSIENT]
    async with scene(harness, *scripts) as (_, client):
        for status in _TRANSIENT:
            failure = _refused(await ask(client), ModelTransient, status)
            same(_wait(failure), None, f"the wait after {status}")


@check("RUN-11")
async def retry_after_may_be_seconds(harness: Harness) -> None:
    """On every status that may carry it."""
    for status in (429, 503, 529):
        for value, seconds in (("7", 7.0), ("0", 0.0)):
            failure = await _later(harness, status, {"Retry-After": value})
            same(_wait(failure), seconds, f"the wait after {status} with Retry-After: {value}")


@check("RUN-11")
async def retry_after_may_be_a_date(harness: Harness) -> None:
    """A time to come, and one that has passed."""
    now = System().now()
    date = format_datetime(now, usegmt=True)
    for seconds in (120, -3600):
        until = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
        failure = await _later(harness, 429, {"Retry-After": until, "Date": date})
        wait = _wait(failure)
        passed = seconds < 0 and wait in (None, 0.0)
        to_come = seconds > 0 and wait is not None and 60 <= wait <= seconds + 1
        if not passed and not to_come:
            raise AssertionError(f"the wait until {until}, at {date}: {wait}")


@check("RUN-11")
async def a_retry_after_that_says_nothing_is_ignored(harness: Harness) -> None:
    """It is foreign text: no crash, and no wait that is none."""
    values = ("", "soon", "-5", "nan", "inf", "1e400", "9" * 400, "Wed, 99 Foo 2026 25:61:61 GMT")
    scripts = [_refusal(harness, 429, {"Retry-After": value}) for value in values]
    async with scene(harness, *scripts) as (_, client):
        for value in values:
            wait = _wait(_refused(await ask(client), ModelTransient, 429))
            if wait is not None and not (math.isfinite(wait) and wait >= 0):
                raise AssertionError(f"the wait with Retry-After: {value[:20]}: {wait}")


@check("RUN-11", "SEC-3")
async def a_refusal_in_any_shape_keeps_its_status(harness: Harness) -> None:
    """No body, another format, or garbage: the status alone decides."""
    for status, kind in ((502, ModelTransient), (400, ModelPermanent)):
        scripts = [refuse(Refusal(status, body)) for body in _SHAPES]
        async with scene(harness, *scripts) as (_, client):
            for body in _SHAPES:
                _refused(await ask(client), kind, status, f"{status} with {body[:40]!r}")


@check("RUN-11", "SEC-3")
async def a_refusal_without_end_is_cut(harness: Harness) -> None:
    """The client leaves before 32 MiB of it; its error is short."""
    flood = Flood(b"x" * (1 << 16), _FLOOD_BYTES)
    script = answer(flood, Stop.CLOSE, content_type="text/plain", status=500, framing="close")
    async with scene(harness, script) as (server, client):
        _refused(await ask(client), ModelTransient, 500)
        if server.floods:
            raise AssertionError(f"all {_FLOOD_BYTES} bytes of a refusal were taken")


@check("RUN-11", "MOD-5")
async def a_refusal_that_stalls_is_no_reason_to_wait(harness: Harness) -> None:
    """It is over after the silence of a stream, or sooner."""
    refusal = harness.dialect.refusal(500, "No.")
    script = answer(
        refusal.body[:9],
        Stop.STALL,
        content_type=refusal.content_type,
        status=500,
        framing="length",
        length=len(refusal.body),
    )
    found = await outcome(harness, script, idle_seconds=0.3)
    found.failed(ModelTransient, "a refusal that stalls")


@check("MOD-6")
async def a_request_that_is_too_long_is_an_overflow(harness: Harness) -> None:
    """In the words of each provider: the runtime compacts then."""
    overflows = harness.dialect.overflows()
    if not overflows:
        raise AssertionError("the dialect names no overflow")
    scripts = [_played(harness, told) for told in overflows.values()]
    async with scene(harness, *scripts) as (_, client):
        for name, told in overflows.items():
            found = await ask(client)
            found.failed(ContextOverflow, f"an overflow of {name}")
            if isinstance(told, Refusal):
                assert found.failure is not None
                same(found.failure.status, told.status, f"the status of an overflow of {name}")


@check("MOD-6")
async def what_only_speaks_of_tokens_is_no_overflow(harness: Harness) -> None:
    """A rate limit passes by itself, a bad parameter stays: compacting helps neither."""
    kinds: Mapping[str, type[ModelError]] = {
        "permanent": ModelPermanent,
        "transient": ModelTransient,
    }
    near = harness.dialect.near_overflows()
    scripts = [_played(harness, told) for told, _ in near.values()]
    async with scene(harness, *scripts) as (_, client):
        for name, (_, kind) in near.items():
            found = await ask(client)
            same(type(found.failure), kinds[kind], f"the error of {name}")


def _played(harness: Harness, told: Refusal | Message) -> Script:
    """Return a refusal, or an answer that is broken off."""
    if isinstance(told, Refusal):
        return refuse(told)
    first, *_ = hello(harness.dialect)
    return stream(harness.dialect, first, harness.dialect.wire.write([told]))


def _refusal(harness: Harness, status: int, headers: Mapping[str, str]) -> Script:
    return refuse(harness.dialect.refusal(status, "Later."), headers=headers)


async def _later(harness: Harness, status: int, headers: Mapping[str, str]) -> ModelError:
    found = await outcome(harness, _refusal(harness, status, headers))
    return _refused(found, ModelTransient, status)


def _refused(
    found: Outcome, kind: type[ModelError], status: int, what: str | None = None
) -> ModelError:
    """Return the error, which must be a `kind` that knows the status."""
    what = what or f"an answer of {status}"
    found.failed(kind, what)
    assert found.failure is not None
    same(found.failure.status, status, f"the status told of {what}")
    same(found.events, (), f"events of {what}")
    return found.failure


def _wait(failure: ModelError) -> float | None:
    return failure.retry_after_seconds if isinstance(failure, ModelTransient) else None
