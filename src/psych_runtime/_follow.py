"""Following a Run: every committed record in order, then what comes, until it settles (STR-1).

Readers see committed records only, hold nothing, and delay nobody: whoever goes away cancels
nothing (STR-2). Hints that get lost cost latency only, since every wait is bounded. Readers whom
the same commit wakes ask the store once, so that a thousand of them cost what one does.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple, NoReturn
from weakref import WeakValueDictionary

from psych_runtime._arguments import check_page
from psych_runtime._shown import shown
from psych_runtime.core.codec import decode
from psych_runtime.core.fold import fold
from psych_runtime.errors import CorruptLog, RunFailed, StoreUnavailable
from psych_runtime.ports.store import Store
from psych_runtime.runtime.requests import check_store
from psych_schema.common import Scope
from psych_schema.model import TextPart
from psych_schema.record import (
    ModelCompleted,
    ModelDelta,
    ModelStarted,
    Record,
    RunErased,
    RunSettled,
)
from psych_schema.store import RecordRow, RunRow

__all__ = ["WAIT_SECONDS", "TextChunk", "patiently", "raise_corrupt", "stream", "stream_text"]

WAIT_SECONDS: Final = 2.0
"""How long one wait lasts at most: what a lost hint costs."""

_PAGE: Final = 500
_FIRST_WINDOW: Final = 64
_FIRST_DELAY_SECONDS: Final = 0.05
_LONGEST_DELAY_SECONDS: Final = 2.0


class TextChunk(NamedTuple):
    """A piece of what the model says.

    `replaces` names a call whose text is void from here on: a failed call that is made again
    takes its text back. `seq` is the record's: `after=seq` goes on behind this chunk.
    """

    call: str
    text: str
    replaces: str | None
    seq: int


class _Together[T]:
    """Asks once for all who ask the same in the same moment, as all do whom one commit wakes.

    It keeps nothing: a question is found for one turn of its loop, before it is asked, and goes
    with its task if that never comes.
    """

    def __init__(self) -> None:
        self._gathering: WeakValueDictionary[tuple[object, ...], asyncio.Task[T]] = (
            WeakValueDictionary()
        )

    async def ask(
        self, question: tuple[object, ...], ask: Callable[[], Coroutine[object, object, T]]
    ) -> T:
        """Return what `ask` returns, from then or later; being cancelled cancels no other."""
        loop = asyncio.get_running_loop()
        question = (id(loop), *question)  # what it names by id, its task keeps alive
        task = self._gathering.get(question)
        if task is None:  # begun by the loop's next turn: never eagerly
            task = asyncio.Task(self._begin(question, ask), loop=loop)
            self._gathering[question] = task
            task.add_done_callback(partial(self._ended, question))
        return await asyncio.shield(task)

    async def _begin(
        self, question: tuple[object, ...], ask: Callable[[], Coroutine[object, object, T]]
    ) -> T:
        del self._gathering[question]  # who comes now may not be told what was read before
        return await ask()

    def _ended(self, question: tuple[object, ...], task: asyncio.Task[T]) -> None:
        if self._gathering.get(question) is task:  # cancelled before it began
            del self._gathering[question]
        if not task.cancelled():
            task.exception()  # perhaps nobody is left who would hear of it


# Readers share only the store, and any adapter or wrapper of one is good enough: what they ask
# together cannot be kept there without becoming a duty of each. So this module finds it, by store
# and loop; without it every reader would ask for itself, and nothing else would change.
_rows: Final = _Together[list[RecordRow]]()
_headers: Final = _Together[RunRow]()


async def patiently[T](ask: Callable[[], Awaitable[T]], *, until: float | None = None) -> T:
    """Return what `ask` returns, however long the store is away; back-off up to 2 s.

    Raises StoreUnavailable when the loop's clock would be past `until`; None is never.
    """
    delay = _FIRST_DELAY_SECONDS
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            if until is not None and asyncio.get_running_loop().time() + delay > until:
                raise
            await asyncio.sleep(delay)
            delay = min(_LONGEST_DELAY_SECONDS, delay * 2)


async def stream(
    store: Store, run_id: str, *, scope: Scope, after: int = 0
) -> AsyncGenerator[Record]:
    """Yield every record with seq > `after`, in order, each once; return when the Run settles.

    Closing the generator cancels nothing. Go on anywhere else with the last seq seen. A store
    that does not answer is asked again until it does.

    Raises, when it is iterated:
        InvalidArgument: `after` is no seq.
        RunNotFound: not in this tenant.
        CorruptLog: the log cannot be read, or its header says so; what could be read came first.
        NewerRecord: a newer build wrote the next record.
    """
    check_store(store)
    check_page(run_id, scope, after=after)
    tenant, head = scope.tenant, after
    last: str | None = None
    looked = False  # at the header, which alone tells that a log is corrupt
    behind = True  # what the Run does now: what it did before may have been erased
    while True:
        rows = await _next_rows(store, tenant, run_id, head)
        header: RunRow | None = None
        if behind:
            header = await _header(store, tenant, run_id)
            rows = await _shown(store, header, rows)
        behind = len(rows) == _PAGE
        settled = False
        for row in rows:
            entry = decode(row)
            if row.seq != head + 1:
                raise CorruptLog(reason="seq_not_next", run_id=run_id, seq=row.seq)
            if last is not None and entry.record.prev != last:
                raise CorruptLog(reason="prev_does_not_fit", run_id=run_id, seq=row.seq)
            head, last = row.seq, entry.hash
            settled = isinstance(entry.record, RunSettled | RunErased)
            yield entry.record
        if behind:
            continue
        if not settled and not (rows and looked):
            header = header or await _header(store, tenant, run_id)
            settled = await _is_over(store, header, head)
        if settled:
            return
        looked = True
        await patiently(partial(store.wait, tenant, {run_id: head}, WAIT_SECONDS))


async def _next_rows(store: Store, tenant: str, run_id: str, after: int) -> list[RecordRow]:
    read = partial(store.read, tenant, run_id, after=after, limit=_PAGE)
    return await patiently(partial(_rows.ask, (id(store), tenant, run_id, after), read))


async def _header(store: Store, tenant: str, run_id: str) -> RunRow:
    look = partial(store.header, tenant, run_id)
    return await patiently(partial(_headers.ask, (id(store), tenant, run_id), look))


async def _shown(store: Store, header: RunRow, rows: list[RecordRow]) -> list[RecordRow]:
    """Return rows as they may be shown: together with those who were given the very same."""
    ask = partial(shown, store, header, rows)
    return await patiently(partial(_rows.ask, (id(header), id(rows)), ask))


async def _is_over(store: Store, header: RunRow, head: int) -> bool:
    """Tell whether nothing will come behind `head`. Raises CorruptLog for a corrupt Run."""
    if header.state == "corrupt" and header.head <= head:
        await raise_corrupt(store, header)
    return header.state == "settled" and header.head <= head


async def raise_corrupt(store: Store, header: RunRow) -> NoReturn:
    """Raise CorruptLog with what is wrong with a log whose header says that it is corrupt."""
    rows = await patiently(partial(store.read, header.tenant, header.run_id))
    fold(decode(row) for row in rows)
    raise CorruptLog(reason="marked_corrupt", run_id=header.run_id, seq=header.head)


async def stream_text(
    store: Store, run_id: str, *, scope: Scope, after: int = 0
) -> AsyncGenerator[TextChunk]:
    """Yield what the model says, piece by piece where the Run has deltas, else call by call.

    Append each chunk to its call's text; first drop the text of the call that `replaces` names.
    Texts of all turns come, each under its own call. Chunks of records up to `after` are left
    out.

    Raises:
        RunFailed: the Run ended without completing; what was said before stands.
        InvalidArgument, RunNotFound, CorruptLog, NewerRecord: as `stream`.
    """
    check_store(store)
    check_page(run_id, scope, after=after)
    text = _Text()
    start = await _turn_start(store, scope.tenant, run_id, after)
    async with aclosing(stream(store, run_id, scope=scope, after=start)) as records:
        async for record in records:
            chunk = text.take(record)
            if chunk is not None and record.seq > after:
                yield chunk
            if isinstance(record, RunSettled) and record.state != "completed":
                reason = record.reason.code if record.reason else None
                raise RunFailed(run_id=run_id, state=record.state, reason=reason)


async def _turn_start(store: Store, tenant: str, run_id: str, after: int) -> int:
    """Return a seq behind which everything lies that a reader at `after` needs to know."""
    window = _FIRST_WINDOW
    while (start := after - window) > 0:
        read = partial(store.read, tenant, run_id, after=start, limit=window)
        for row in reversed(await patiently(read)):
            if row.type == "turn.started":
                return row.seq - 1
        window *= 4
    return 0


class _Text:
    """Turns records into chunks; knows which text a reader has that must be taken back."""

    def __init__(self) -> None:
        self._turn: int | None = None
        self._call: str | None = None
        self._pieces: list[str] = []  # of the call under way
        self._shown: str | None = None  # the turn's call whose text the reader has
        self._void: str | None = None  # the call whose text the next chunk takes back

    def take(self, record: Record) -> TextChunk | None:
        """Return what a record adds to the text."""
        match record:
            case ModelStarted():
                self._begin(record)
            case ModelDelta() if record.call == self._call and record.channel == "text":
                if record.text:
                    self._pieces.append(record.text)
                    return self._chunk(record, record.text, self._void)
            case ModelCompleted() if record.call == self._call:
                return self._complete(record)
            case _:
                return None
        return None

    def _begin(self, record: ModelStarted) -> None:
        self._call = None if record.turn is None else record.call
        self._pieces = []
        if record.turn is None:
            return
        if record.turn != self._turn:
            self._turn, self._shown = record.turn, None
        self._void = self._shown

    def _complete(self, record: ModelCompleted) -> TextChunk | None:
        """Return what the deltas did not bring: they may lag behind, or have failed to fit."""
        if record.said is None:
            return None
        whole = "".join(part.text for part in record.said.parts if isinstance(part, TextPart))
        told = "".join(self._pieces)
        if not whole.startswith(told):
            return self._chunk(record, whole, record.call)
        if len(whole) > len(told) or self._void is not None:
            return self._chunk(record, whole[len(told) :], self._void)
        return None

    def _chunk(
        self, record: ModelDelta | ModelCompleted, text: str, replaces: str | None
    ) -> TextChunk:
        self._shown, self._void = record.call, None
        return TextChunk(record.call, text, replaces, record.seq)
