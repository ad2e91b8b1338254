"""Answers and events for Runs: checked before they are taken, once, whenever they come (R-13)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from psych_runtime._arguments import check_page, check_text
from psych_runtime._system import System, ambient_system
from psych_runtime.core.json_schema import check_instance
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import (
    CorruptLog,
    InvalidArgument,
    QueueFull,
    RunStopping,
    VersionNotFound,
    WaitNotFound,
    WaitOver,
)
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, opened, run_settled, whole_log, write_outside
from psych_runtime.runtime.requests import (
    JsonLike,
    check_actor,
    check_json,
    check_key,
    check_store,
    request_digest,
)
from psych_schema.base import format_instant
from psych_schema.common import Scope
from psych_schema.receipt import Receipt
from psych_schema.record import (
    ApprovalRequested,
    EventReceived,
    Record,
    WaitOpened,
    WaitResolved,
)
from psych_schema.spec import Event
from psych_schema.store import RunRow

__all__ = ["deliver"]

_MOST: Final = 16  # events that are kept for a Run; a header names 128 things as open


class _Given(NamedTuple):
    """What is delivered, and to what."""

    payload: JsonValue
    wait: str | None
    event: str | None
    by: str | None
    key: str | None


async def deliver(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    payload: JsonLike,
    wait: str | None = None,
    event: str | None = None,
    by: str | None = None,
    key: str | None = None,
    system: System | None = None,
) -> Receipt:
    """Give a Run what it waits for; return once that is in its log (R-13, SUS-1, SUS-2).

    `status().pending_waits` lists what it waits for; a timer ends by itself. An event may come
    before anybody waits for it: it is kept, and meets its wait; a Run keeps at most 16. The
    payload is checked first, and nothing is written of one that does not fit.

    Args:
        payload: of a question `{"answers": [...]}`, one for each; of an event what its schema
            in the Spec says.
        wait: the wait's id; without it and without `event` it must be the only one that is open.
        event: the name of an event that the Run's Spec declares.
        by: who answers, for the log.
        key: the same request again gives the same receipt, also after the Run has settled. An
            event without a key that comes twice is two events.

    Raises:
        InvalidArgument, InvalidPayload, PayloadTooLarge: an argument, or a payload that does not
            fit its schema; nothing was written.
        WaitNotFound: the Run waits for no such thing, for several, or for what ends by itself.
        QueueFull: 16 events are kept that the Run has not waited for.
        CorruptLog: the Run's log cannot be trusted; nothing can follow in it.
        WaitOver: it has come already, or its time is over.
        RunSettled, RunStopping, IdempotencyConflict, StoreUnavailable: as for `interrupt`.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_page(run_id, scope)
    check_text(wait, what="wait", problem="pass the id of a wait")
    check_text(event, what="event", problem="pass the name of an event")
    if wait is not None and event is not None:
        raise InvalidArgument(what="wait", problem="name a wait or an event, not both")
    check_actor(by)
    check_key(key, what="key")
    given = _Given(check_json(payload, what="payload"), wait, event, by, key)

    async def make(header: RunRow) -> Sequence[Record]:
        await _check_alive(store, header)
        waits = await _open_waits(store, header)
        if event is None:
            return (_resolve(await _chosen(store, header, waits, wait), given, system),)
        return (await _happened(store, header, waits, given, event, system),)

    request = Request(scope.tenant, run_id, key, request_digest("deliver", *given[:4]))
    return await write_outside(store, request, make, system=system)


async def _check_alive(store: Store, header: RunRow) -> None:
    if header.state == "settled":
        raise await run_settled(store, header)
    if header.state == "corrupt":
        raise CorruptLog(reason="corrupt", run_id=header.run_id, seq=header.head)
    if header.abort is not None:
        raise RunStopping(run_id=header.run_id)


async def _happened(
    store: Store,
    header: RunRow,
    waits: Sequence[WaitOpened],
    given: _Given,
    event: str,
    system: System,
) -> Record:
    """Return the record of an event: the end of the wait for it, or that it is kept."""
    declared = await _declared(store, header, event)
    for one in waits:
        if one.kind == "event" and one.ask == {"event": event}:
            return _resolve(one, given, system)
    _check_payload(given.payload, declared.payload_schema)
    _check_room(header)
    return _received(header, given, event, system)


async def _open_waits(store: Store, header: RunRow) -> list[WaitOpened]:
    ids = [one for one in header.open if one.startswith("wait_")]
    return [one for one in await opened(store, header, ids) if isinstance(one, WaitOpened)]


def _by_itself(wait: WaitOpened) -> str | None:
    """Return how a wait ends to which nobody delivers; None for any other."""
    if wait.kind == "timer":
        at = "" if wait.due is None else f" at {format_instant(wait.due)}"
        return f"{wait.wait_id} is a timer: nobody delivers to it, it ends by itself{at}"
    if wait.kind == "children":
        return f"{wait.wait_id} waits for other runs: it ends by itself, when they have"
    return None


async def _chosen(
    store: Store, header: RunRow, waits: Sequence[WaitOpened], name: str | None
) -> WaitOpened:
    """Return the wait that is meant. Raises WaitNotFound, WaitOver."""
    named = [one for one in waits if name in (None, one.wait_id)]
    given = [one for one in named if _by_itself(one) is None]
    if len(given) == 1:
        return given[0]
    why = _by_itself(named[0]) if named and not given else None
    if name is not None and why is None:
        why = await _why_not(store, header, name)
    ids = [one.wait_id for one in waits if _by_itself(one) is None]
    raise WaitNotFound(run_id=header.run_id, wait=name, open=ids, why=why)


async def _why_not(store: Store, header: RunRow, name: str) -> str | None:
    """Return what is meant by a name that is no open wait's. Raises WaitOver."""
    for record in await whole_log(store, header):
        match record:
            case WaitResolved() if record.wait_id == name:
                raise WaitOver(run_id=header.run_id, wait=name, how=record.how)
            case WaitOpened() if record.call == name and record.wait_id in header.open:
                return f"{name} is a call: name its wait, {record.wait_id}"
            case ApprovalRequested() if name in (record.approval_id, record.call_id):
                return f"{name} needs consent: that is for decide()"
            case _:
                continue
    return None


def _check_room(header: RunRow) -> None:
    """Raise QueueFull for a Run for which no further event is kept."""
    if sum(1 for name in header.open if name.startswith("evt_")) >= _MOST:
        raise QueueFull(run_id=header.run_id, reason="events", bound=_MOST)


def _resolve(wait: WaitOpened, given: _Given, system: System) -> WaitResolved:
    if wait.expires_at is not None and wait.expires_at <= system.now():
        raise WaitOver(run_id=wait.run_id, wait=wait.wait_id, how="expired")
    _check_payload(given.payload, wait.payload_schema)
    return WaitResolved(
        run_id=wait.run_id,
        id=system.new_id("rec"),
        at=system.now(),
        by=given.by,
        wait_id=wait.wait_id,
        how="delivered",
        payload=given.payload,
        key=given.key,
    )


def _received(header: RunRow, given: _Given, name: str, system: System) -> EventReceived:
    return EventReceived(
        run_id=header.run_id,
        id=system.new_id("rec"),
        at=system.now(),
        by=given.by,
        event_id=system.new_id("evt"),
        name=name,
        payload=given.payload,
        key=given.key,
    )


async def _declared(store: Store, header: RunRow, name: str) -> Event:
    """Return an event as the Run's Spec declares it. Raises InvalidArgument."""
    text = await store.version(header.tenant, header.version)
    if text is None:
        raise VersionNotFound(version=header.version)
    events = {one.name: one for one in read_spec(text).events}
    if name not in events:
        known = ", ".join(sorted(events)) or "none"
        problem = f"the Run's Spec declares no event {name!r:.80}; there are: {known}"
        raise InvalidArgument(what="event", problem=problem)
    return events[name]


def _check_payload(payload: JsonValue, schema: JsonValue) -> None:
    """Raise InvalidPayload where a payload is not what is waited for."""
    if schema is None:
        return
    check_instance(payload, schema, what="payload")
