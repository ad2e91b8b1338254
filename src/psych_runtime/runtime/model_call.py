"""One model call: asked, streamed, recorded whatever comes of it (R-8, R-19, RUN-11)."""

import asyncio
import logging
import math
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from psych_runtime.core.codec import MAX_CONTENT_BYTES
from psych_runtime.core.model_fields import takes_of, unsendable
from psych_runtime.core.models import altered, trusted
from psych_runtime.errors import (
    BlobError,
    BlobUnavailable,
    ContextOverflow,
    ModelError,
    ModelPermanent,
    ModelTransient,
    UnsendableRequest,
)
from psych_runtime.ports.model import ModelClient
from psych_runtime.runtime.access import permitted_tools
from psych_runtime.runtime.asked import (
    Asked,
    asked_next,
    has_stand_in,
    make_request,
    params_of,
)
from psych_runtime.runtime.attempt import Attempt
from psych_runtime.runtime.deltas import Deltas
from psych_runtime.runtime.offer import Offer, make_offer, store_offer
from psych_runtime.runtime.output import OUTPUT_INVALID
from psych_runtime.runtime.signals import Stale
from psych_runtime.runtime.silence import Silence
from psych_runtime.runtime.streaming import Incoming, clean_text
from psych_schema.common import Cost, Usage
from psych_schema.model import AskedCall, ModelRequest, Part, ReasoningPart
from psych_schema.record import (
    Broken,
    Failure,
    History,
    ModelCompleted,
    ModelFailed,
    ModelStarted,
    QueueConsumed,
    Record,
    Said,
    Timings,
    TurnStarted,
)

__all__ = ["call_model"]

_MISTAKES: Final = (AttributeError, ImportError, LookupError, NameError, TypeError)
"""What a client raises that is written wrong: trying again changes nothing."""

_NO_PRICE: Final = Cost(source="missing", reason="no_price")

_history: Final = trusted(History)
_model_completed: Final = trusted(ModelCompleted)
_model_started: Final = trusted(ModelStarted)
_said: Final = trusted(Said)
_timings: Final = trusted(Timings)
_turn_started: Final = trusted(TurnStarted)

_log: Final = logging.getLogger("psych_runtime")

_CLOSING_SECONDS: Final = 2.0
_FIRST_BACKOFF_SECONDS: Final = 0.5
_LONGEST_BACKOFF_SECONDS: Final = 60.0
_LONGEST_RETRY_AFTER_SECONDS: Final = 365 * 86_400.0
_MESSAGE_CHARACTERS: Final = 2000


@dataclass(slots=True)
class _Call:
    """A call under way."""

    attempt: Attempt
    call: str
    turn: int
    model: str  # as the Spec calls it
    incoming: Incoming
    deltas: Deltas


async def call_model(attempt: Attempt, entries: tuple[str, ...]) -> None:
    """Make the next model call of the Run and note what came of it.

    `entries` are the queued messages that it reads first. Raises Stale when they, or the state,
    have changed; Lost.
    """
    offer = make_offer(attempt, await permitted_tools(attempt))
    if attempt.state.last_offer != offer.hash and await store_offer(attempt, offer):
        raise Stale
    asked, failed = asked_next(attempt.spec.model, attempt.state)
    started = await _begin(attempt, offer, entries, asked, failed)
    call = _under_way(attempt, started)
    try:
        client, request = _request(call, asked, offer)
    except ModelPermanent as error:
        _fail(call, error)
        return
    if attempt.stop() is None:
        await attempt.guard()
    if attempt.stop() is not None:
        _interrupted(call)
        return

    work = _consume(call, client, request)
    task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
    try:
        while not task.done() and not attempt.cuts_model():
            await attempt.wait_any((task,))
    finally:
        call.deltas.close()
        cut = not task.done()
        if cut:
            await _close(attempt, task)
    attempt.check_held()
    if cut:
        _interrupted(call)
    else:
        _record(call, task)


def _request(call: _Call, asked: Asked, offer: Offer) -> tuple[ModelClient, ModelRequest]:
    """Return who is called, and with what. Raises ModelPermanent, UnsendableRequest."""
    attempt = call.attempt
    client, name = attempt.host.runtime.client(asked.model)
    request = make_request(
        attempt.spec,
        asked,
        name=name,
        turn=call.turn,
        offer=offer,
        messages=attempt.conversation.complete(),
    )
    refused = unsendable(request, takes_of(client), client=type(client).__name__)
    if refused is not None:
        raise UnsendableRequest(refused)
    return client, request


async def _consume(call: _Call, client: ModelClient, request: ModelRequest) -> None:
    """Take what the model says until it is whole, or can be none any more. Raises BlobError."""
    incoming, idle = call.incoming, request.stream_idle_seconds
    attached = await call.attempt.attachments.of(call.attempt)
    if attached:
        request = altered(request, {"attachments": attached})
    try:
        async with Silence(idle) as silence, aclosing(client.stream(request)) as events:
            async for event in events:
                seen = incoming.add(event)
                if seen is not None:
                    call.deltas.add(*seen)
                if incoming.too_large:
                    return
                whole = incoming.finish is not None
                silence.heard(min(idle, _CLOSING_SECONDS) if whole else idle)
    except SystemExit as error:  # foreign code: it must not end the worker
        raise RuntimeError(f"SystemExit: {error}") from error


async def _begin(
    attempt: Attempt, offer: Offer, entries: tuple[str, ...], asked: Asked, failed: str | None
) -> ModelStarted:
    """Write what the call starts with: noted, or decided when it consumes entries (R-8)."""
    state, run_id = attempt.state, attempt.run_id
    before: list[Record] = []
    turn = state.last_turn
    repairs = not entries and OUTPUT_INVALID in attempt.conversation.advised
    purpose: Literal["answer", "repair"] = "repair" if repairs else "answer"
    if not state.any("turn", "open"):
        turn += 1
        before.append(
            _turn_started(
                run_id=run_id,
                id=attempt.new_id("rec"),
                at=attempt.now(),
                turn=turn,
                purpose=purpose,
            )
        )
    if state.last_offer != offer.hash:
        before.append(offer.record(attempt))
    last = state.get("model", state.last_model)
    tries = last.number("tries") + 1 if last.get("turn") == turn else 1
    call = attempt.new_id("mc")
    consumed = (
        QueueConsumed(
            run_id=run_id, id=attempt.new_id("rec"), at=attempt.now(), entries=entries, into=call
        )
        if entries
        else None
    )
    started = _model_started(
        run_id=run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call=call,
        turn=turn,
        purpose=purpose,
        model=asked.model,
        tries=tries,
        fallback_of=failed,
        offer=offer.hash,
        history=_history(
            base=attempt.conversation.base,
            upto=consumed.id if consumed else attempt.conversation.last,
        ),
        params=params_of(attempt.spec, asked, turn),
    )
    if consumed is None:
        attempt.journal.note(*before, started)
    else:
        attempt.journal.note(*before)
        await attempt.journal.decide(consumed, started)
    return started


def _under_way(attempt: Attempt, started: ModelStarted) -> _Call:
    incoming = Incoming(attempt.host.system)
    deltas = Deltas(attempt, started.call, incoming)
    return _Call(attempt, started.call, started.turn or 0, started.model, incoming, deltas)


async def _close(attempt: Attempt, task: asyncio.Task[None]) -> None:
    """Close a stream; a client that does not let go is left behind (its result is not read)."""
    attempt.host.keep(task)
    task.cancel()
    await asyncio.wait((task,), timeout=_CLOSING_SECONDS)


def _record(call: _Call, task: asyncio.Task[None]) -> None:
    """Note what came of a call that ended; one that finished is whole, however it was closed."""
    attempt = call.attempt
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None or call.incoming.finish is not None:
        _complete(call)
    elif isinstance(error, ModelError):
        _fail(call, error)
    elif isinstance(error, BlobUnavailable):
        _fail(call, ModelTransient(str(error)), code=error.code)
    elif isinstance(error, BlobError):
        _fail(call, UnsendableRequest(str(error)), code=error.code)
    elif isinstance(error, TimeoutError):
        silent = attempt.spec.limits.stream_idle_seconds
        _fail(call, ModelTransient(f"the model said nothing for {silent:g} s"))
    else:
        _log.error("run %s: the model client failed", attempt.run_id, exc_info=error)
        message = f"the model client failed: {type(error).__name__}: {error}"
        kind = ModelPermanent if isinstance(error, _MISTAKES) else ModelTransient
        _fail(call, kind(message), code="client_error")


def _complete(call: _Call) -> None:
    incoming = call.incoming
    if incoming.finish is None and not incoming.too_large:
        _fail(call, ModelTransient("the stream ended without a finish"))
        return
    parts, calls = _parts(call), incoming.calls()
    if incoming.finish is None or _size(parts, calls) > MAX_CONTENT_BYTES:
        message = f"the answer is larger than {MAX_CONTENT_BYTES} bytes"
        call.attempt.journal.note(
            _failed(call, Failure(code="output_too_large", transient=False), message, ())
        )
        return
    call.attempt.journal.note(
        _model_completed(
            run_id=call.attempt.run_id,
            id=call.attempt.new_id("rec"),
            at=call.attempt.now(),
            call=call.call,
            turn=call.turn,
            calls=tuple(one.call_id for one in calls),
            said=_said(parts=parts, calls=calls),
            finish=incoming.finish,
            usage=incoming.usage or Usage(),
            cost=incoming.cost or _NO_PRICE,
            timings=_timings(
                first_token_seconds=incoming.first_token_seconds, seconds=incoming.seconds
            ),
            served_by=incoming.served_by,
        )
    )


def _parts(call: _Call) -> tuple[Part, ...]:
    """Return what was said, with the thoughts marked as this model's: no other can read them."""
    return tuple(
        part.model_copy(update={"by": call.model}) if isinstance(part, ReasoningPart) else part
        for part in call.incoming.parts()
    )


def _size(parts: tuple[Part, ...], calls: tuple[AskedCall, ...]) -> int:
    """Return an upper bound of the content's bytes."""
    return sum(len(one.model_dump_json()) for one in (*parts, *calls)) + 100


def _interrupted(call: _Call) -> None:
    """Note a call that we closed ourselves; it is made again unless the Run ends."""
    ending = call.attempt.stop() in ("aborted", "timed_out")
    failure = Failure(code="interrupted", transient=False)
    following: Literal["retry", "give_up"] = "give_up" if ending else "retry"
    failed = _failed(call, failure, None, _parts(call), following=following)
    call.attempt.journal.note(failed)


def _fail(call: _Call, error: ModelError, *, code: str | None = None) -> None:
    transient = isinstance(error, ModelTransient)
    found = "context_overflow" if isinstance(error, ContextOverflow) else error.code
    failure = Failure(code=code or found, transient=transient, status=error.status)
    spec = call.attempt.spec
    following: Literal["retry", "fallback", "give_up"] = "give_up"
    wait = None
    if (
        isinstance(error, ModelTransient)
        and call.attempt.state.turn_failures < spec.limits.transient_retry_budget
    ):
        following, wait = "retry", _wait_seconds(call.attempt, error)
    elif has_stand_in(spec.model, call.model, error):
        following = "fallback"
    text = clean_text(str(error))[:_MESSAGE_CHARACTERS]
    call.attempt.journal.note(
        _failed(call, failure, text, _parts(call), following=following, wait_seconds=wait)
    )


def _wait_seconds(attempt: Attempt, error: ModelTransient) -> float:
    """Return how long to wait: what the provider says, else a back-off with jitter."""
    said = error.retry_after_seconds
    if said is not None and not math.isnan(said):
        return min(max(0.0, said), _LONGEST_RETRY_AFTER_SECONDS)
    failures: int = min(attempt.state.turn_failures, 16)
    backoff = min(_LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0**failures)
    return backoff * (0.5 + attempt.host.system.random() / 2)


def _failed(
    call: _Call,
    failure: Failure,
    message: str | None,
    parts: tuple[Part, ...],
    *,
    following: Literal["retry", "fallback", "give_up"] = "give_up",
    wait_seconds: float | None = None,
) -> ModelFailed:
    attempt = call.attempt
    retry_at = None
    if wait_seconds is not None:
        retry_at = attempt.store_now() + timedelta(seconds=wait_seconds)
    if _size(parts, ()) > MAX_CONTENT_BYTES // 2:
        parts = ()
    return ModelFailed(
        run_id=attempt.run_id,
        id=attempt.new_id("rec"),
        at=attempt.now(),
        call=call.call,
        turn=call.turn,
        failure=failure,
        said=Broken(parts=parts, message=message),
        usage=call.incoming.usage,
        next=following,
        retry_at=retry_at,
    )
