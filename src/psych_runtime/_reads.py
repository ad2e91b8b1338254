"""The reading half of the API: every read takes its tenant from the scope, and writes nothing.

What decides anything is read from the header, consistently (ST-7); the rest is the log up to
that head, so that one answer is of one moment.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from psych_runtime._arguments import (
    check_instant,
    check_limit,
    check_page,
    check_scope_type,
    check_state,
    check_text,
    check_timeout,
    check_until,
)
from psych_runtime._follow import (
    WAIT_SECONDS,
    TextChunk,
    patiently,
    raise_corrupt,
    stream,
    stream_text,
)
from psych_runtime._kin import known
from psych_runtime._shown import shown, without_erased
from psych_runtime.core.codec import Entry, decode
from psych_runtime.core.fold import RunState, fold
from psych_runtime.core.validation import read_spec
from psych_runtime.errors import (
    CorruptLog,
    InvalidPayload,
    InvalidSpec,
    NewerRecord,
    RunNotFound,
    WaitTimeout,
)
from psych_runtime.ports.store import Page, RunFilter, Store
from psych_runtime.runtime.requests import check_store
from psych_runtime.views import (
    answer_view,
    messages_passed_on,
    report_view,
    status_view,
    thread_run,
    thread_view,
)
from psych_schema.common import RunPhase, Scope
from psych_schema.record import Record, RunAdmitted
from psych_schema.store import RecordRow, RunRow
from psych_schema.view import AnswerView, ReportView, StatusView, ThreadRun, ThreadView

__all__ = [
    "TextChunk",
    "answer",
    "list_runs",
    "records",
    "report",
    "state",
    "status",
    "stream",
    "stream_text",
    "thread",
    "wait",
]

type Until = Literal["settled", "suspended"] | int


class _Log(NamedTuple):
    """A header and its log up to the header's head, as far as this build can read it."""

    header: RunRow
    entries: list[Entry]


async def _log(store: Store, run_id: str, scope: Scope) -> _Log:
    check_store(store)
    check_page(run_id, scope)
    return await _log_of(store, await store.header(scope.tenant, run_id))


async def _log_of(store: Store, header: RunRow, rows: Sequence[RecordRow] | None = None) -> _Log:
    """Return the log up to the head; `rows` if they were read already."""
    if rows is None:
        rows = await store.read(header.tenant, header.run_id, limit=header.head)
    return _Log(header, list(_readable(without_erased(rows)[: header.head])))


def _readable(rows: Iterable[RecordRow]) -> Iterable[Entry]:
    """Yield entries up to the first row that cannot be read; views say what that means."""
    for row in rows:
        try:
            yield decode(row)
        except (CorruptLog, NewerRecord):
            return


async def status(store: Store, run_id: str, *, scope: Scope) -> StatusView:
    """Say where the Run stands now, what it waits for and what blocks it.

    A corrupt log is a status, too (LOG-3): `failed`, with `blocked_on.code` corrupt_log.

    Raises RunNotFound for a Run of another tenant, too.
    """
    check_store(store)
    check_page(run_id, scope)
    return await _status_of(store, await store.header(scope.tenant, run_id))


async def _status_of(
    store: Store, header: RunRow, rows: Sequence[RecordRow] | None = None
) -> StatusView:
    _, entries = await _log_of(store, header, rows)
    if header.state not in ("ready", "running"):
        return status_view(header, entries)
    workers = await store.workers()
    tools = await _granted(store, header) if workers else None
    return status_view(header, entries, spec_tools=tools, workers=workers)


async def _granted(store: Store, header: RunRow) -> list[str] | None:
    """Return the identities of the tools that a Run's Version grants, None when unknown."""
    text = await store.version(header.tenant, header.version)
    try:
        spec = None if text is None else read_spec(text)
    except InvalidSpec:  # a newer build published it
        return None
    return None if spec is None else [f"{tool.kind}:{tool.name}" for tool in spec.tools]


async def answer(store: Store, run_id: str, *, scope: Scope) -> AnswerView:
    """Return what the Run has answered so far; `hint` says what to do next.

    Raises RunNotFound for a Run of another tenant, too.
    """
    return answer_view(*await _log(store, run_id, scope))


async def report(store: Store, run_id: str, *, scope: Scope) -> ReportView:
    """Return what happened in the Run and what it cost, whatever became of it.

    Raises RunNotFound for a Run of another tenant, too.
    """
    return report_view(*await _log(store, run_id, scope))


async def state(store: Store, run_id: str, *, scope: Scope) -> RunState:
    """Return the fold of the Run's log: every object and its phase. For tools that look inside.

    Raises:
        RunNotFound: not in this tenant.
        CorruptLog: the log is illegal or cannot be read; `reason` and `seq` say where.
        NewerRecord: a newer build wrote a part of it.
    """
    check_store(store)
    check_page(run_id, scope)
    header = await store.header(scope.tenant, run_id)
    rows = await store.read(scope.tenant, run_id, limit=header.head)
    folded = fold(decode(row) for row in rows)
    if header.state == "corrupt":
        raise CorruptLog(reason="marked_corrupt", run_id=run_id, seq=header.head)
    return folded


async def records(
    store: Store, run_id: str, *, scope: Scope, after: int = 0, limit: int | None = None
) -> list[Record]:
    """Return the committed records with seq > `after`, at most `limit`; it does not wait.

    Args:
        after: the last seq that is known already; 0 is from the beginning.
        limit: how many, 1 or more; None is all that there are.

    Raises:
        InvalidArgument: `after` or `limit` is none of these.
        RunNotFound: not in this tenant.
        CorruptLog, NewerRecord: a record cannot be read; ask for those before it with `limit`.
    """
    check_store(store)
    check_page(run_id, scope, after=after, limit=limit)
    rows = await store.read(scope.tenant, run_id, after=after, limit=limit)
    if any(row.content is not None for row in rows):
        rows = await shown(store, await store.header(scope.tenant, run_id), rows)
    return [decode(row).record for row in rows]


async def list_runs(
    store: Store,
    *,
    scope: Scope,
    state: RunPhase | None = None,
    version: str | None = None,
    thread: str | None = None,
    parent: str | None = None,
    created_after: datetime | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page:
    """Return headers of the tenant's Runs, newest first, and where the next page begins (ST-5).

    Args:
        state: only Runs in this state: ready, running, suspended, settled or corrupt; the
            others likewise. None is any.
        created_after: only Runs admitted later, by their own clock; with a time zone.
        cursor: of the page before; None is the first page.
        limit: how many headers a page has at most, 1 or more.

    Raises InvalidArgument for an unknown state or a limit below 1, InvalidPayload for a cursor
    of something else.
    """
    check_store(store)
    check_scope_type(scope)
    check_state(state)
    check_text(version, what="version", problem="pass its hash: version.hash")
    check_text(thread, what="thread", problem="pass the id of a thread")
    check_text(parent, what="parent", problem="pass the id: run.run_id")
    check_instant(created_after, what="created_after")
    check_text(cursor, what="cursor", problem="pass the cursor of the page before, unchanged")
    check_limit(limit)
    wanted = RunFilter(state, version, thread, parent, created_after)
    return await store.list_runs(scope.tenant, filter=wanted, cursor=cursor, limit=limit)


async def thread(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    cursor: str | None = None,
    limit: int = 20,
) -> ThreadView:
    """Return the newest Runs of the thread that a Run belongs to, and what was said in them.

    The Runs stand in the order of the thread, each with its messages, answers, calls and aborts
    in order. Words that have been erased are `gone`.

    Args:
        run_id: any Run of the thread.
        cursor: of the page with the Runs behind these; None is the end of the thread.
        limit: how many Runs a page has at most, 1 or more; the log of each is read, and for the
            oldest that of the Run before it where that has who began it.

    Raises:
        RunNotFound: not in this tenant.
        InvalidArgument, InvalidPayload: the limit, or a cursor of something else.
    """
    check_store(store)
    check_page(run_id, scope, limit=limit)
    check_text(cursor, what="cursor", problem="pass the cursor of the page before, unchanged")
    tenant = scope.tenant
    name = (await store.header(tenant, run_id)).thread
    row = await (store.tail(tenant, name) if cursor is None else known(store, tenant, cursor))
    if row is None and cursor is None:
        raise RunNotFound(run_id=run_id)
    if row is None or row.thread != name:
        raise InvalidPayload(what="cursor", problem="it is of no page of this thread")
    runs: list[ThreadRun] = []
    log: _Log | None = await _log_of(store, row)
    while log is not None and len(runs) < limit:
        row = await known(store, tenant, log.header.previous)
        read_on = row is not None and (len(runs) + 1 < limit or _has_no_author(log))
        before = await _log_of(store, row) if row is not None and read_on else None
        passed_on = messages_passed_on(before.entries if before else (), log.header.run_id)
        runs.append(thread_run(*log, passed_on=passed_on))
        log = before
    return thread_view(name, runs, cursor=row.run_id if row else None)


def _has_no_author(log: _Log) -> bool:
    """Tell whether the input may be messages that the Run before has, with whoever said them."""
    first = log.entries[0].record if log.entries else None
    return isinstance(first, RunAdmitted) and first.by is None


async def wait(
    store: Store,
    run_id: str,
    *,
    scope: Scope,
    until: Until = "settled",
    timeout_seconds: float | None = None,
) -> StatusView:
    """Return the Run's status once it is what `until` says; it need not be executed here.

    A store that does not answer is asked again within the time.

    Args:
        until: "settled"; "suspended", when it waits for somebody's consent, answer or event, or
            has settled (a Run that tries its model again later does not count); or a seq, when
            the log has come so far or the Run has settled.
        timeout_seconds: how long to wait; 0 looks once, None waits as long as it takes.

    Raises:
        InvalidArgument: `until` or `timeout_seconds` is none of these.
        WaitTimeout: the time is over; the Run goes on, wait again.
        RunNotFound: not in this tenant.
        CorruptLog: the Run will never get there.
        StoreUnavailable: the store was away when the time was over.
    """
    check_store(store)
    check_page(run_id, scope)
    check_until(until)
    check_timeout(timeout_seconds)
    clock = asyncio.get_running_loop().time
    end = None if timeout_seconds is None else clock() + timeout_seconds
    over, ended = until == "settled", False
    while True:
        look = partial(_look, store, scope.tenant, run_id, log=ended)
        header, rows = await patiently(look, until=end)
        if _reached(header, until):
            return await patiently(partial(_status_of, store, header, rows), until=end)
        if header.state == "corrupt":
            await raise_corrupt(store, header)
        left = WAIT_SECONDS if end is None else min(WAIT_SECONDS, end - clock())
        if left <= 0:
            name = f"at seq {until}" if isinstance(until, int) else until
            seconds = timeout_seconds or 0.0
            raise WaitTimeout(run_id=run_id, until=name, timeout_seconds=seconds)
        hint = partial(store.wait, scope.tenant, {run_id: header.head}, left, over=over)
        ended = bool(await patiently(hint, until=end)) and over


async def _look(
    store: Store, tenant: str, run_id: str, *, log: bool
) -> tuple[RunRow, Sequence[RecordRow] | None]:
    """Return the header, and the log beside it where it will be wanted."""
    if not log:
        return await store.header(tenant, run_id), None
    return await asyncio.gather(store.header(tenant, run_id), store.read(tenant, run_id))


def _reached(header: RunRow, until: Until) -> bool:
    if header.state == "settled":
        return True
    if isinstance(until, int):
        return header.head >= until
    waits = any(name.startswith(("apr_", "wait_")) for name in header.open)
    return until == "suspended" and header.state == "suspended" and waits
