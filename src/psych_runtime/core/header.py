"""The header beside the log: what each record changes in it (protocol.md, section 3).

It changes only in the commit of the record that explains the change, and `open` names the
record that last moved each object that an outside writer may name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from psych_runtime.core.fold import Changes, Object, RunState, brought
from psych_runtime.ports.store import REMAINING, UNSET, After, HeaderChange
from psych_schema.record import (
    AbortRequested,
    AttemptEnded,
    AttemptStarted,
    Record,
    RunSettled,
    RunSuspended,
)
from psych_schema.store import RunRow
from psych_schema.transitions import ObjectKind

__all__ = [
    "OPEN_PHASES",
    "claim_change",
    "header_change",
    "pause_seconds",
    "state_from_header",
    "wake_change",
]

OPEN_PHASES: Final[Mapping[ObjectKind, tuple[str, ...]]] = {
    "approval": ("open", "granted"),
    "wait": ("open",),
    "entry": ("queued",),
    "event": ("kept",),
    "child": ("live",),
}
"""Objects that a header names as open, and in which phases."""

_COLUMNS: Final = frozenset(
    {"attempt.started", "attempt.ended", "run.suspended", "run.settled", "abort.requested"}
)
"""Records that change a column beside `open`."""

_LONGEST_PAUSE_SECONDS: Final = 60.0  # after an attempt that ended with an error

_PREFIXES: Final[Mapping[str, tuple[ObjectKind, str]]] = {
    "apr_": ("approval", "open"),
    "wait_": ("wait", "open"),
    "ent_": ("entry", "queued"),
    "evt_": ("event", "kept"),
    "run_": ("child", "live"),
}


def header_change(
    written: Iterable[tuple[Record, Changes]], *, first_seq: int, crashes: int
) -> HeaderChange:
    """Return what an attempt's records change; `crashes` is the header's count before."""
    change = HeaderChange()
    opened: dict[str, int] = {}
    closed: dict[str, None] = {}
    for seq, (record, changes) in enumerate(written, first_seq):
        if vars(record)["type"] in _COLUMNS:  # most records change no column
            before = crashes if change.crashes is UNSET else change.crashes
            change = _of_record(change, record, before)
        for kind, key, new in changes:
            if kind not in OPEN_PHASES:
                continue
            if new.phase in OPEN_PHASES[kind]:
                opened[key] = seq
            else:
                opened.pop(key, None)
                closed[key] = None
    if not opened and not closed:
        return change
    return replace(change, opened=opened, closed=tuple(closed))


def _of_record(change: HeaderChange, record: Record, crashes: int) -> HeaderChange:
    match record:
        case AttemptStarted():
            return replace(change, state="running", worker=record.worker, crashes=record.crashes)
        case AttemptEnded():
            change = replace(change, state="ready", worker=None, crashes=0)
            if record.reason == "error":
                pause = After(pause_seconds(crashes))
                return replace(change, crashes=crashes + 1, wake_at=pause)
            return change
        case RunSuspended():
            change = replace(
                change, state="suspended", worker=None, crashes=0, wake_at=record.wake_at
            )
            if record.waits:
                return replace(change, deadline_at=None, remaining_seconds=REMAINING)
            return change
        case RunSettled():
            change = replace(
                change,
                state="settled",
                worker=None,
                crashes=0,
                wake_at=None,
                deadline_at=None,
                remaining_seconds=None,
            )
            return change if record.next_run is None else replace(change, referenced=True)
        case AbortRequested():
            return replace(change, abort="forced" if record.force else "requested")
        case _:
            return change


def pause_seconds(crashes: int) -> float:
    """Return how long a Run is left alone whose attempt ended with an error."""
    return min(_LONGEST_PAUSE_SECONDS, 2.0 ** min(crashes, 6))


def wake_change(change: HeaderChange, header: RunRow) -> HeaderChange:
    """Return `change` by an outside record: a suspended Run becomes ready, its clock runs on."""
    if header.state != "suspended":
        return change
    return _resume(replace(change, state="ready", wake_at=None), header)


def claim_change(header: RunRow, *, worker: str, crashes: int) -> HeaderChange:
    """Return what a claim changes: held by `worker` under the next epoch, its clock runs on."""
    change = HeaderChange(
        state="running", worker=worker, epoch=header.epoch + 1, crashes=crashes, wake_at=None
    )
    return _resume(change, header)


def _resume(change: HeaderChange, header: RunRow) -> HeaderChange:
    if header.remaining_seconds is None:
        return change
    deadline = After(header.remaining_seconds)
    return replace(change, deadline_at=deadline, remaining_seconds=None)


def state_from_header(header: RunRow, moved: Iterable[Record] = ()) -> RunState:
    """Return a state that judges outside records as the whole log would (R-20).

    `moved` are records that `open` names: a decision needs that of its approval, a delivery
    that of its wait, whatever else comes needs none. Objects that `open` does not name are in
    phase none: a record that names one is refused.
    """
    state = RunState(epoch=header.epoch)
    state.put([("run", "", Object(header.state)), ("abort", "", Object(header.abort or "none"))])
    known = {
        (kind, key): new
        for record in moved
        for kind, key, new in brought(record)
        if header.open.get(key) == record.seq
    }
    for key in header.open:
        kind, phase = _PREFIXES.get(key[: key.find("_") + 1], (None, ""))
        if kind is not None:  # another kind is a newer build's: nothing here names it
            state.put([(kind, key, known.get((kind, key), Object(phase)))])
    return state
