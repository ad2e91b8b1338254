"""Answers and events for Runs: checked before they are taken, once, whenever they come (R-13)."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from psych_runtime._arguments import check_page, check_text
from psych_runtime._system import System, ambient_system
from psych_runtime.core.codec import decode
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import (
    CorruptLog,
    InvalidArgument,
    RunSettled,
    RunStopping,
    VersionNotFound,
    WaitNotFound,
    WaitOver,
)
from psych_runtime.ports.store import Store
from psych_runtime.runtime.outside import Request, opened, write_several
from psych_runtime.runtime.requests import (
    JsonLike,
    check_actor,
    check_json,
    check_key,
    request_digest,
)
from psych_schema.common import Scope
from psych_schema.receipt import Receipt
from psych_schema.record import EventReceived, Record, WaitOpened, WaitResolved
from psych_schema.spec import Event
from psych_schema.store import RunRow

__all__ = ["deliver"]

_BY_ITSELF = ("timer", "children")


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

    `status().pending_waits` lists what it waits for. An event may come before anybody waits for
    it: it is kept, and meets its wait. The payload is checked first, and nothing is written of
    one that does not fit.

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
        WaitNotFound: the Run waits for no such thing, or for several and none was named.
        WaitOver: it has come already, or its time is over.
        RunSettled, RunStopping, IdempotencyConflict, StoreUnavailable: as for `interrupt`.
    """
    system = ambient_system() if system is None else system
    check_page(run_id, scope)
    check_text(wait, what="wait", problem="pass the id of a wait")
    check_text(event, what="event", problem="pass the name of an event")
    if wait is not None and event is not None:
        raise InvalidArgument(what="wait", problem="name a wait or an event, not both")
    check_actor(by)
    check_key(key, what="key")
    given = _Given(check_json(payload, what="payload"), wait, event, by, key)

    async def make(header: RunRow) -> Sequence[Record]:
        _check_alive(header)
        waits = await _open_waits(store, header)
        if event is None:
            return (_resolve(await _chosen(store, header, waits, wait), given, system),)
        declared = await _declared(store, header, event)
        for one in waits:
            if one.kind == "event" and one.ask == {"event": event}:
                return (_resolve(one, given, system),)
        _check_payload(given.payload, declared.payload_schema)
        return (_received(header, given, event, system),)

    request = Request(scope.tenant, run_id, key, request_digest("deliver", *given[:4]))
    return await write_several(store, request, make, system=system)


def _check_alive(header: RunRow) -> None:
    if header.state == "settled":
        raise RunSettled(run_id=header.run_id)
    if header.state == "corrupt":
        raise CorruptLog(reason="corrupt", run_id=header.run_id, seq=header.head)
    if header.abort is not None:
        raise RunStopping(run_id=header.run_id)


async def _open_waits(store: Store, header: RunRow) -> list[WaitOpened]:
    """Return the waits that somebody can end."""
    ids = [one for one in header.open if one.startswith("wait_")]
    found = await opened(store, header, ids)
    return [r for r in found if isinstance(r, WaitOpened) and r.kind not in _BY_ITSELF]


async def _chosen(
    store: Store, header: RunRow, waits: Sequence[WaitOpened], name: str | None
) -> WaitOpened:
    """Return the wait that is meant. Raises WaitNotFound, WaitOver."""
    if name is None:
        if len(waits) == 1:
            return waits[0]
        raise WaitNotFound(run_id=header.run_id, wait=None, open=[one.wait_id for one in waits])
    for one in waits:
        if one.wait_id == name:
            return one
    rows = await store.read(header.tenant, header.run_id, limit=header.head)
    for record in (decode(row).record for row in rows):
        if isinstance(record, WaitResolved) and record.wait_id == name:
            raise WaitOver(run_id=header.run_id, wait=name, how=record.how)
    raise WaitNotFound(run_id=header.run_id, wait=name, open=[one.wait_id for one in waits])


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
    # loaded here, because jsonschema costs a fifth of a second that others need not pay
    from psych_runtime.core.json_schema import check_instance

    check_instance(payload, schema, what="payload")
