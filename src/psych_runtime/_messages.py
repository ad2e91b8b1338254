"""Messages to a Run while it lives, and to its thread when it has ended (R-18).

A message is read once: before the next model call, where the answer would end, or by the next
Run. Until then it can be taken back.
"""

import re
from collections.abc import Sequence
from typing import Final, get_args

from pydantic import ValidationError
from pydantic_core import to_json

from psych_runtime._arguments import check_page, check_text
from psych_runtime._shown import is_erased
from psych_runtime._system import System, ambient_system
from psych_runtime.core.codec import MAX_CONTENT_BYTES, decode
from psych_runtime.errors import (
    ContentErased,
    CorruptLog,
    EntryNotFound,
    EntryOver,
    InvalidArgument,
    InvalidPayload,
    PayloadTooLarge,
    QueueFull,
    RunNotFound,
)
from psych_runtime.ports.store import Change, HeaderChange, Store, Unit
from psych_runtime.runtime.admission import admit
from psych_runtime.runtime.outside import (
    Request,
    opened,
    outside_unit,
    request_keys,
    whole_log,
    write_outside,
    write_unit,
)
from psych_runtime.runtime.requests import (
    JsonLike,
    check_actor,
    check_json,
    check_key,
    check_message_parts,
    check_store,
    request_digest,
)
from psych_runtime.runtime.settle import next_input, next_key, next_key_row, successor
from psych_schema.common import Queue, Scope
from psych_schema.model import TextPart, UserMessage
from psych_schema.receipt import Receipt
from psych_schema.record import (
    QueueCancelled,
    QueueConsumed,
    QueueEnqueued,
    Record,
    RunAdmitted,
    RunSettled,
)
from psych_schema.store import RunRow

__all__ = ["cancel", "send"]

_MOST: Final = 64  # entries that the queues of a Run hold together
_QUEUES: Final[Sequence[str]] = get_args(Queue.__value__)
_ENTRY_ID: Final = "pass the id: receipt.entry_id"
_ENTRY: Final = re.compile("ent_[0-9a-z]{26}")


async def send(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    message: str | Sequence[JsonLike],
    queue: Queue = "steer",
    by: str | None = None,
    key: str | None = None,
    system: System | None = None,
) -> Receipt:
    """Give a Run, or its thread, another message; return once it is stored.

    The receipt names the Run that took it, which may be a new one: with `next_run` the end of
    the thread is addressed, whichever of its Runs is named. Where that has settled, a Run like
    it is admitted at once; where it lives, that Run's end admits one for all that wait.

    Args:
        message: a text, or parts: `[{"kind": "text", "text": ...}, ...]`; at most 256 KiB, counted
            as the record keeps it: as JSON in UTF-8.
        queue: "steer" is read before the next model call, "follow_up" when the model has
            answered, "next_run" by the next Run of the thread.
        by: who says it.
        key: one per named Run; the same request again gives the same receipt, also after the
            Run has settled.

    Raises:
        InvalidArgument, InvalidPayload, PayloadTooLarge: an argument; nothing was written.
        RunSettled, RunStopping: nobody will read it in this Run; send it with `next_run`.
        QueueFull: 64 messages wait, or those for the next Run are together above 256 KiB as JSON.
        IdempotencyConflict: the key belongs to another request.
        CorruptLog: the Run's log cannot be trusted; nothing can follow in it.
        ContentErased: the thread's last Run was erased: begin another thread.
        RunNotFound: not in this tenant.
        StoreUnavailable: it may or may not be stored; repeat with the same key.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_page(run_id, scope)
    said = _message(message)
    if queue not in _QUEUES:
        problem = f"pass one of {', '.join(_QUEUES)}; {queue!r:.60} is none of them"
        raise InvalidArgument(what="queue", problem=problem)
    check_actor(by)
    check_key(key, what="key")
    request = Request(scope.tenant, run_id, key, request_digest("send", said, queue, by))
    sending = _Sending(store, request, said, queue, by, system)
    return await write_unit(store, request, sending.propose, system=system)


async def cancel(
    store: Store,
    run_id: str,
    entry_id: str,
    *,
    scope: Scope,
    by: str | None = None,
    key: str | None = None,
    system: System | None = None,
) -> Receipt:
    """Take back a message that is still queued; return once that is stored: nobody reads it.

    Args:
        run_id: the Run that took it, as `entry_id` of the receipt of `send`.
        key: the same request again gives the same receipt; without one it is EntryOver.

    Raises:
        EntryNotFound: this Run was never sent it.
        EntryOver: it is consumed, cancelled, passed on to the next Run, or the Run ended first.
        InvalidArgument, IdempotencyConflict, RunNotFound, StoreUnavailable: as for `send`.
    """
    system = ambient_system() if system is None else system
    check_store(store)
    check_page(run_id, scope)
    if entry_id is None:
        raise InvalidArgument(what="entry_id", problem=_ENTRY_ID)
    check_text(entry_id, what="entry_id", problem=_ENTRY_ID)
    check_actor(by)
    check_key(key, what="key")

    async def make(header: RunRow) -> Sequence[Record]:
        if entry_id not in header.open or not _ENTRY.fullmatch(entry_id):
            raise await _why_over(store, header, entry_id)
        record = QueueCancelled(
            run_id=header.run_id, id=system.new_id("rec"), at=system.now(), by=by, entry_id=entry_id
        )
        return (record,)

    request = Request(scope.tenant, run_id, key, request_digest("cancel", entry_id, by))
    return await write_outside(store, request, make, system=system)


def _message(given: object) -> UserMessage:
    """Return what a caller says as a message that fits into one record."""
    if isinstance(given, str):
        check_json(given, what="message")
        said = UserMessage(parts=(TextPart(text=given),))
    else:
        said = _of_parts(given)
    if all(isinstance(part, TextPart) and not part.text for part in said.parts):
        raise InvalidPayload(what="message", problem="it is empty: pass a text, or parts")
    size = len(to_json(said))  # as the input of a Run it is smaller
    if size > MAX_CONTENT_BYTES:
        bound = MAX_CONTENT_BYTES
        raise PayloadTooLarge(what="message", size_bytes=size, bound_bytes=bound, as_json=True)
    return said


def _of_parts(given: object) -> UserMessage:
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
        problem = f'pass a text, or parts like {{"kind": "text", "text": ...}}, not {given!r:.60}'
        raise InvalidPayload(what="message", problem=problem)
    parts = check_json(given, what="message")
    if isinstance(parts, list):
        check_message_parts(parts, what="message")
    try:
        return UserMessage.model_validate_json(to_json({"role": "user", "parts": parts}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = next((one for one in first["loc"] if isinstance(one, int)), 0)
        raise InvalidPayload(what="message", problem=f"part {place}: {first['msg']}") from None


class _Sending:
    """One message on its way; what it has read of a Run's queues it keeps."""

    def __init__(
        self,
        store: Store,
        request: Request,
        said: UserMessage,
        queue: Queue,
        by: str | None,
        system: System,
    ) -> None:
        self._store = store
        self._request = request
        self._said = said
        self._queue = queue
        self._by = by
        self._system = system
        self._entry_id = system.new_id("ent")
        self._known: dict[str, UserMessage | None] = {}  # by entry; None: not for the next Run

    async def propose(self) -> tuple[Unit, Receipt]:
        """Return the unit that brings the message to the Run, or to the end of its thread."""
        header = await self._store.header(self._request.tenant, self._request.run_id)
        if self._queue == "next_run":
            header = await _tail(self._store, header)
            if header.state == "settled":
                return await self._begin_next(header)
        record = QueueEnqueued(
            run_id=header.run_id,
            id=self._system.new_id("rec"),
            at=self._system.now(),
            by=self._by,
            entry_id=self._entry_id,
            queue=self._queue,
            message=self._said,
            key=self._request.key,
        )
        found = await outside_unit(self._store, header, [record], self._request, self._system)
        await self._check_room(header)
        return found

    async def _begin_next(self, tail: RunRow) -> tuple[Unit, Receipt]:
        """Return the unit that admits the Run behind a settled one, with the message as input."""
        [row] = await self._store.read(tail.tenant, tail.run_id, limit=1)
        first = decode(row).record
        if not isinstance(first, RunAdmitted):
            raise CorruptLog(reason="not_admitted", run_id=tail.run_id, seq=1)
        record = successor(first, [self._said], self._system, by=self._by)
        commit_id = self._system.new_id("com")
        admission = admit(record, commit_id=commit_id, system=self._system)
        receipt = Receipt(
            run_id=record.run_id,
            seq=1,
            entry_id=self._entry_id,
            head_hash=admission.header.head_hash,
        )
        kept = Change(tail.run_id, tail.head, None, (), HeaderChange(referenced=True))
        key = next_key(tail.run_id, self._entry_id)
        line = next_key_row(tail.tenant, tail.run_id, key, receipt)
        keys = (line, *request_keys(self._request, receipt))
        return Unit(commit_id, tail.tenant, (admission, kept), keys), receipt

    async def _check_room(self, header: RunRow) -> None:
        """Raise QueueFull for a Run whose queues do not hold one message more."""
        queued = [name for name in header.open if name.startswith("ent_")]
        if len(queued) >= _MOST:
            raise QueueFull(run_id=header.run_id, reason="entries", bound=_MOST)
        if self._queue != "next_run":
            return
        unknown = [name for name in queued if name not in self._known]
        for record in await opened(self._store, header, unknown):
            if isinstance(record, QueueEnqueued):
                following = record.queue == "next_run"
                self._known[record.entry_id] = record.message if following else None
        waiting = [one for name in queued if (one := self._known.get(name)) is not None]
        if len(to_json(next_input([*waiting, self._said]))) > MAX_CONTENT_BYTES:
            raise QueueFull(run_id=header.run_id, reason="bytes", bound=MAX_CONTENT_BYTES)


async def _tail(store: Store, header: RunRow) -> RunRow:
    """Return the header of the last Run of the thread, behind which it can go on."""
    tail = await store.tail(header.tenant, header.thread)
    if tail is None:
        raise RunNotFound(run_id=header.run_id)
    if await is_erased(store, tail):
        raise ContentErased(run_id=tail.run_id)
    return tail


async def _why_over(store: Store, header: RunRow, entry_id: str) -> Exception:
    """Return why a message cannot be cancelled, as the log says."""
    if header.state == "corrupt":
        return CorruptLog(reason="corrupt", run_id=header.run_id, seq=header.head)
    reason: str | None = None
    queue: Queue | None = None
    for record in await whole_log(store, header):
        match record:
            case QueueEnqueued() as one if one.entry_id == entry_id:
                queue = one.queue
            case QueueConsumed() as one if entry_id in one.entries:
                reason = "consumed"
            case QueueCancelled() as one if one.entry_id == entry_id:
                reason = "cancelled"
            case RunSettled() as one if queue is not None and reason is None:
                reason = "passed_on" if queue == "next_run" and one.next_run else "left"
            case _:
                continue
    if (
        reason is None
        and _ENTRY.fullmatch(entry_id)
        and await _began_a_run(store, header, entry_id)
    ):
        reason = "passed_on"
    if reason is None:
        return EntryNotFound(run_id=header.run_id, entry_id=entry_id)
    return EntryOver(run_id=header.run_id, entry_id=entry_id, reason=reason)


async def _began_a_run(store: Store, header: RunRow, entry_id: str) -> bool:
    """Tell whether the message is the input of this Run, or of the one behind it."""
    for run_id in (header.run_id, header.previous):
        if run_id is not None and await store.key(
            header.tenant, run_id, next_key(run_id, entry_id)
        ):
            return True
    return False
