"""Where a Run stands now."""

from collections.abc import Iterable, Sequence
from typing import Final

from psych_runtime.core.codec import Entry
from psych_runtime.core.models import trusted
from psych_runtime.views._lifecycle import blocked_on, ended, lifecycle
from psych_runtime.views._pending import pending_approvals, pending_waits
from psych_runtime.views._survey import Survey, survey
from psych_schema.record import ThreadRef
from psych_schema.store import RunRow, WorkerRow
from psych_schema.view import QueuedEntry, RunningCall, StatusView

__all__ = ["status_view"]

_status_view: Final = trusted(StatusView)
_thread_ref: Final = trusted(ThreadRef)


def status_view(
    header: RunRow,
    entries: Iterable[Entry],
    *,
    spec_tools: Sequence[str] | None = None,
    workers: Sequence[WorkerRow] = (),
) -> StatusView:
    """Say where the Run stands, what runs, what it waits for, and what blocks it.

    A corrupt log is `failed` with `blocked_on.code` corrupt_log and no `ended`: it did not end,
    it cannot go on. Tools block only among workers that are known: without any the Run is
    `queued`.

    Args:
        header: the Run's header.
        entries: its log from the first record to the header's head; what a newer build wrote,
            and everything behind it, is left out.
        spec_tools: identities of the tools that the Run's Version grants; None is unknown.
        workers: the live workers; none known is no reason to call a Run blocked.
    """
    found = survey(header, entries)
    blocked = blocked_on(found, spec_tools=spec_tools, workers=workers)
    return _status_view(
        run_id=header.run_id,
        version=header.version,
        lifecycle=lifecycle(found, blocked),
        state=header.state,
        head=header.head,
        head_hash=header.head_hash,
        epoch=header.epoch,
        crashes=header.crashes,
        worker=header.worker,
        thread=_thread_ref(id=header.thread, position=header.position, previous=header.previous),
        turn=found.state.last_turn,
        created_at=header.created_at,
        head_at=header.head_at,
        wake_at=header.wake_at,
        deadline_at=header.deadline_at,
        remaining_seconds=header.remaining_seconds,
        abort=header.abort,
        running_calls=_running_calls(found),
        queued=_queued(found),
        pending_approvals=pending_approvals(found),
        pending_waits=pending_waits(found),
        blocked_on=blocked,
        ended=ended(found),
    )


def _running_calls(found: Survey) -> tuple[RunningCall, ...]:
    calls = (found.started[call] for call in found.state.ids("call", "started"))
    return tuple(
        RunningCall(call_id=one.call_id, identity=one.identity, tries=one.tries, started_at=one.at)
        for one in calls
    )


def _queued(found: Survey) -> tuple[QueuedEntry, ...]:
    entries = (found.entries[entry] for entry in found.state.ids("entry", "queued"))
    return tuple(
        QueuedEntry(entry_id=one.entry_id, queue=one.queue, enqueued_at=one.at) for one in entries
    )
